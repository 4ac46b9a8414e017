"""Costs of several goals: a GP for each, on the successes that measured it.

May import models and below.

Each is fitted alone, as the only cost of a study would be. Together they are one posterior of several functions, in
which a success that lacks a goal has no measurement of it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crashbo.models import latent
from crashbo.models.hybrid import HybridData
from crashbo.models.hyperpriors import Hyperprior
from crashbo.models.latent import Hyperparameters, Posterior, Warm
from crashbo.numerics.hypervolume import on_front
from crashbo.search.costs import CostFit, Costs

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GoalCosts:
    """What n successes say of M goals."""

    X: Array  # (n, D)
    parts: tuple[Costs, ...]  # of each goal, on the successes that measured it
    known: NDArray[np.bool_]  # (M, n), which did

    @staticmethod
    def of(X: Array, goals: Array) -> "GoalCosts":
        """From goals, (n, M), at X, (n, D), in the unit cube; NaN where one is not known.

        What is bad in one goal may be the best in another: what the front has of a goal is kept as it is.
        """
        known = ~np.isnan(goals).T
        whole = goals[known.all(axis=0)]
        worst = whole[on_front(whole)].max(axis=0, initial=-np.inf)
        parts = (Costs.of(X[rows], y[rows], float(most)) for y, rows, most in zip(goals.T, known, worst, strict=True))
        return GoalCosts(X, tuple(parts), known)

    @property
    def kind(self) -> tuple[bool, ...]:
        """Of a warm start that it may begin from."""
        return (True,) * len(self.parts)

    def fit(self, noise_std: tuple[float | None, ...], prior: Hyperprior, start: Warm | None = None) -> CostFit:
        """The posterior of all goals, their hyperparameters learnt."""
        starts = self._starts(start)
        fits = [part.fit(std, prior, warm) for part, std, warm in zip(self.parts, noise_std, starts, strict=True)]
        return CostFit(self._together([f.posterior for f in fits]), any(f.noise_is_open for f in fits))

    def refined(
        self,
        noise_std: tuple[float | None, ...],
        prior: Hyperprior,
        start: Warm | None,
        enough: float,
        evaluations: int,
    ) -> Posterior:
        """The posterior of all goals by a few more steps from the fit of fewer trials."""
        fits = [
            part.refined(std, prior, warm, enough, evaluations)
            for part, std, warm in zip(self.parts, noise_std, self._starts(start), strict=True)
        ]
        return self._together(fits)

    def _starts(self, start: Warm | None) -> list[Warm | None]:
        if start is None or len(start.hypers) != len(self.parts):
            return [None] * len(self.parts)
        return [Warm((h,), (True,)) for h in start.hypers]

    def given(self, hypers: tuple[Hyperparameters, ...]) -> Posterior:
        """The posterior of all goals at these hyperparameters."""
        return self._together([part.given((h,)) for part, h in zip(self.parts, hypers, strict=True)])

    def _together(self, posteriors: list[Posterior]) -> Posterior:
        Y = np.full(self.known.shape, np.nan)
        for y, rows, post in zip(Y, self.known, posteriors, strict=True):
            y[rows] = post.data.Y[0]
        return latent.condition(stacked_data(self.X, Y), tuple(post.hypers[0] for post in posteriors))


def stacked_data(X: Array, Y: Array) -> HybridData:
    """Data of functions that are only measured, Y (M, n), NaN where one was not."""
    return HybridData(X, Y, np.zeros_like(Y), np.zeros(len(X), dtype=bool))
