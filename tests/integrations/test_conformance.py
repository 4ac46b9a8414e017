"""Optuna's own test classes for samplers."""

import pytest

pytest.importorskip("optuna.testing.pytest_samplers", reason="Optuna has its tests of samplers since 4.8")
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
)

from crashbo.integrations.optuna import CrashSampler


class TestCrashSampler(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return CrashSampler
