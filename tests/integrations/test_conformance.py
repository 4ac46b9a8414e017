"""Optuna's own test classes for samplers."""

import pytest

pytest.importorskip("optuna", reason="the Optuna door needs optuna (pip install 'crashbo[optuna]')")

import optuna  # noqa: E402
from optuna.testing.pytest_samplers import (  # noqa: E402
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

from crashbo.integrations.optuna import CrashSampler  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)


class TestCrashSampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return CrashSampler
