"""Bayesian optimization that learns from failed trials; the work is done by the package crashbo."""

from crashbo.integrations.optuna import CrashSampler, declare, insight, measure, tell

__all__ = ["CrashSampler", "declare", "insight", "measure", "tell"]
