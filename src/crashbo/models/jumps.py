"""A hypothesis to be compared with the crash model's: the machine jumps over its threshold.

May import numerics only.

The crash model's labels are those of the measured function g: g above c. A machine that becomes unstable, or touches
something, crashes before g comes near c, and mostly where g is high: its labels follow a function e that goes along
with g, but is not g. Such an e has g's prior and a correlation with it below one,

    cov(e(x), g(x')) = rho k(x, x'),    cov(e(x), e(x')) = k(x, x'),

and crashes lie where e is above a level of its own. Of g's threshold they say nothing but that no success passed it.
With rho = 1 this is the crash model; with rho = 0 that of `bystander`, at g's hyperparameters.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from crashbo.models import latent
from crashbo.models.hybrid import HybridData
from crashbo.models.latent import Posterior
from crashbo.models.parametrisation import Parametrisation

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

_ABOVE = 3.0  # judgement: spreads of the measurements above the highest one, up to which e's level may lie
_LEVELS = 16  # judgement: of e's level, evenly from the median of the measurements; e is smooth, and so is its evidence
_TOLERANCE, _MAX_SWEEPS = 1e-2, 20  # judgement: of EP, as for a threshold's density


def log_posterior(posterior: Posterior, p: Parametrisation, rho: float) -> float:
    """Log evidence of the hypothesis and log prior, at the hyperparameters of a crash model's one function.

    The level of e is integrated over, evenly. Comparable with a crash model's whose threshold is integrated over.
    """
    h = posterior.hypers[0]
    rows, of_label = _rows(posterior.data)
    data = _apart(posterior.data, rows, of_label)
    along = np.where(of_label[:, None] == of_label, 1.0, rho)
    grams = tuple(gram[np.ix_(rows, rows)] * along for gram in posterior.grams[0])
    if np.ndim(h.noise_std):
        h = replace(h, noise_std=np.asarray(h.noise_std)[rows])
    logs, start = [], None
    for level in _levels(posterior.data):
        here = latent.condition(
            data,
            (replace(h, threshold=level),),
            kernel=posterior.kernel,
            start=start,
            grams=((grams[0], grams[1]),),
            tolerance=_TOLERANCE,
            max_sweeps=_MAX_SWEEPS,
        )
        start = here.sites()
        logs.append(here.log_evidence)
    others = tuple(name for name in p.learnt if name != "threshold")
    prior, _ = p.prior.log_density(p.inside(posterior.hypers[0]), others, p.reference)
    return float(logsumexp(logs) - np.log(len(logs)) + prior)


def _rows(data: HybridData) -> tuple[Rows, NDArray[np.bool_]]:
    """Rows with a measurement or a bound of one, then those with a label; and which are the latter."""
    measured = np.flatnonzero(data.measured[0] | data.bounded)
    labelled = np.flatnonzero(((data.sign[0] != 0.0) | data.joint) & ~data.bounded)
    return np.append(measured, labelled), np.arange(len(measured) + len(labelled)) >= len(measured)


def _apart(data: HybridData, rows: Rows, of_label: NDArray[np.bool_]) -> HybridData:
    """The data with measurements and labels in rows of their own; what came before a crash says nothing here."""
    bounded = data.bounded[rows]
    return HybridData(
        np.column_stack([data.X[rows], of_label]),  # else rows at one x would be taken for repeats
        np.where(of_label, np.nan, data.Y[:, rows]),
        np.where(of_label | bounded, data.sign[:, rows], 0.0),
        data.joint[rows] & of_label,
        None if data.lower is None else np.where(of_label, np.nan, data.lower[:, rows]),
        others=None if data.others is None else data.others[:, rows],
    )


def _levels(data: HybridData) -> Array:
    seen = data.Y[0][data.measured[0]]
    return np.linspace(np.median(seen), seen.max() + _ABOVE * np.std(seen), _LEVELS)
