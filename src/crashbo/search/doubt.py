"""Expected improvement if the model of the cost is wrong, for a study with nothing left to gain.

May import models and below.

Such a study has mostly searched around its best trial, and its model may be overconfident. It doubts ever more of it,
until some point that is safe enough promises more than the noise:
- that the lengthscales are as long as learnt: there may be more to find between the trials;
- that the best basin is the only one. To a model that has seen one deep well in a plain, a second one is all but
  impossible. So the well is filled up to the level of the best trial away from it, and what counts is improvement
  over that. As the search finds better trials there, the level sinks with them.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from crashbo.models import latent
from crashbo.models.latent import Posterior
from crashbo.models.regression import measured_data
from crashbo.search.aims import Best, Improvement
from crashbo.search.candidates import MANY_TRIALS, Screen
from crashbo.search.preferences import Winner
from crashbo.search.risk import LEAST
from crashbo.search.surrogates import Surrogates

Array = NDArray[np.float64]

# judgement: checked together, not one by one: over 24 seeds fewer runs ended far off on hartmann6d and wells5d
_SHARES = (0.5, 0.35)  # of the lengthscales
_WELLS = 4  # filled at most
_AWAY = 0.1  # correlation with the best trial of a well below which another is away from it
_RARITY = 2.0  # standard deviations below the mean at which the level of a filled well lies
_LEAST_SPREAD = 3.0  # times the noise


def improvement(models: Surrogates, screened: Screen, floor: float, log_noise: float) -> tuple[Improvement, Array]:
    """Expected improvement under the least doubt that leaves something to gain, or the last; and the screen's."""
    admissible = screened.log_gamma >= np.log(max(floor, LEAST))
    for found in levels(models):
        worth = found(screened.X)
        if np.max(worth + screened.log_gamma, where=admissible, initial=-np.inf) > log_noise:
            break
    return found, worth


def levels(models: Surrogates) -> Iterator[Improvement]:
    """Expected improvement under ever more doubt."""
    for cost in chain(_shortened(models), _filled(models)):
        yield models.aim.doubted(cost)


def _shortened(models: Surrogates) -> Iterator[Posterior]:
    """The cost's posterior under ever shorter lengthscales."""
    cost = _cost(models)
    # Every doubt takes a Cholesky factor: after many trials the largest comes first.
    for share in _SHARES if models.successes <= MANY_TRIALS else _SHARES[-1:]:
        yield cost.at(tuple(replace(h, lengthscales=share * h.lengthscales) for h in cost.hypers))


def _filled(models: Surrogates) -> Iterator[Posterior]:
    """The cost's posterior with ever more wells filled up; a front is no well."""
    cost, aim = _cost(models), models.aim
    if not isinstance(aim, Best | Winner):
        return
    h, n = cost.hypers[0], models.successes
    mean = cost.mean_at_trials(0)[:n]
    away = np.ones(n, dtype=bool)
    for _ in range(_WELLS):
        deepest = int(np.argmin(np.where(away, mean, np.inf)))
        away &= cost.grams[0][0][deepest, :n] < _AWAY
        if not away.any():
            break
        level = float(mean[away].min())
        spread = max((h.mean - level) / _RARITY, _LEAST_SPREAD * aim.noise_std)
        shallow = replace(h, outputscale=min(spread**2, h.outputscale))
        # Where trials were compared, not all have a cost: the expected ones stand for them.
        known = np.where(np.isnan(cost.data.Y), cost.mean_at_trials(0), cost.data.Y)
        data = measured_data(cost.data.X, np.maximum(known, level)[0])
        yield latent.condition(data, (shallow,), grams=cost.grams)


def _cost(models: Surrogates) -> Posterior:
    assert models.cost is not None
    return models.cost
