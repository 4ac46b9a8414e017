"""Data drawn from the model itself, so that the truth is known."""

from typing import Any, NamedTuple

import numpy as np

from crashbo.numerics.kernels import MATERN52


class Draw(NamedTuple):
    """Trials of a function drawn from its GP, and the hyperparameters they were drawn with."""

    X: np.ndarray
    y: np.ndarray
    crashed: np.ndarray
    hypers: dict[str, Any]

    @property
    def data(self):
        return self.X, self.y, self.crashed


def draw(rng, n, dimension=2, *, successes=(1, None), crash_noise_std=0.0, unmeasured=0.0) -> Draw:
    """n trials, with at least and at most as many successes as told; `unmeasured` is the share of those without y."""
    least, most = successes[0], successes[1] or n
    while True:
        hypers = {
            "lengthscales": np.exp(rng.normal(np.log(0.4 * np.sqrt(dimension)), 0.4, dimension)),
            "outputscale": float(np.exp(rng.normal(0.0, 0.7))),
            "mean": float(0.3 * rng.standard_normal()),
            "noise_std": float(np.exp(rng.uniform(np.log(0.02), np.log(0.3)))),
        }
        hypers["noise_std"] *= np.sqrt(hypers["outputscale"])
        hypers["threshold"] = hypers["mean"] + np.sqrt(hypers["outputscale"]) * 0.5 * float(rng.standard_normal())
        hypers["crash_noise_std"] = crash_noise_std * np.sqrt(hypers["outputscale"])
        X = rng.random((n, dimension))
        K = hypers["outputscale"] * MATERN52.gram(X, hypers["lengthscales"])[0]
        g = hypers["mean"] + np.linalg.cholesky(K + 1e-9 * np.eye(n)) @ rng.standard_normal(n)
        crashed = g + hypers["crash_noise_std"] * rng.standard_normal(n) > hypers["threshold"]
        if least <= np.sum(~crashed) <= most:
            y = g + hypers["noise_std"] * rng.standard_normal(n)
            return Draw(X, np.where(crashed | (rng.random(n) < unmeasured), np.nan, y), crashed, hypers)
