"""Numerics: Gaussian tails, factorisations and kernels. May import numpy and scipy only."""
