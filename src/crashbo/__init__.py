"""crashbo: Bayesian optimisation that learns from crashes."""

from crashbo import models
from crashbo.version import __version__

__all__ = ["__version__", "models"]
