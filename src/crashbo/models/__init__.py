"""Models: GP regression, compared costs, GPCR, the crash model and what they share. May import numerics only."""

from crashbo.models.compared import ComparedGP
from crashbo.models.crash import CrashModel
from crashbo.models.gpcr import GPCR
from crashbo.models.hyperpriors import Hyperprior
from crashbo.models.latent import Hyperparameters
from crashbo.models.regression import GP
from crashbo.numerics.kernels import Kernel

__all__ = ["GP", "GPCR", "ComparedGP", "CrashModel", "Hyperparameters", "Hyperprior", "Kernel"]
