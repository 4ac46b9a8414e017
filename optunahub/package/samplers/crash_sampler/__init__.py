"""Bayesian optimization that learns from failed trials; the work is done by the package crashbo."""

from crashbo.integrations.optuna import CrashSampler, insight, measure

__all__ = ["CrashSampler", "insight", "measure"]
