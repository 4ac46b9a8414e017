"""Optuna's own test classes for samplers."""

import pytest

pytest.importorskip("optuna", reason="the Optuna door needs optuna (pip install 'crashbo[optuna]')")

import optuna
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

from crashbo.integrations.optuna import CrashSampler

optuna.logging.set_verbosity(optuna.logging.ERROR)


class TestCrashSampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return CrashSampler
