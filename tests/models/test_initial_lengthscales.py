"""The ridge regression that a cold fit begins with."""

import numpy as np
import pytest

from crashbo.models import GPCR
from crashbo.models.gpcr import hybrid_data
from crashbo.models.hyperpriors import weak
from crashbo.models.initial_lengthscales import with_initial_lengthscales
from crashbo.models.parametrisation import parametrise


def glance(X, y, crashed):
    """Lengthscales over those of the prior."""
    data, prior = hybrid_data(X, y, crashed), weak(X.shape[1])
    parametrisation = parametrise(data.Y[0], data.sign[0], prior, dimension=X.shape[1])
    return with_initial_lengthscales(parametrisation, data, 0).start.lengthscales / prior.lengthscales.start


def trials(seed, n=80, D=6):
    """Of a function that the second and the fifth dimension decide: by a slope and by a bowl."""
    X = np.random.default_rng(seed).random((n, D))
    g = X[:, 1] + 4.0 * (X[:, 4] - 0.5) ** 2
    crashed = g > np.median(g)
    return X, np.where(crashed, np.nan, g), crashed


@pytest.mark.parametrize("seed", range(5))
def test_dimensions_that_matter_get_the_short_lengthscales(seed):
    lengthscales = glance(*trials(seed))
    assert set(np.argsort(lengthscales)[:2]) == {1, 4}
    assert np.all(lengthscales[[1, 4]] < 1.0)
    assert np.all(lengthscales[[0, 2, 3, 5]] > 1.2)


@pytest.mark.parametrize("seed", range(5))
def test_labels_alone_tell_as_well(seed):
    X, y, crashed = trials(seed)
    lengthscales = glance(X, np.full_like(y, np.nan), crashed)
    assert set(np.argsort(lengthscales)[:2]) == {1, 4}


def test_neither_units_nor_the_order_of_dimensions_or_trials_matter():
    X, y, crashed = trials(0)
    lengthscales = glance(X, y, crashed)
    order, dimensions = np.random.default_rng(1).permutation(len(X)), np.array([3, 1, 0, 5, 4, 2])
    np.testing.assert_allclose(glance(X, 1e9 * y - 7.0, crashed), lengthscales, rtol=1e-6)
    np.testing.assert_allclose(glance(X[order], y[order], crashed[order]), lengthscales, rtol=1e-9)
    np.testing.assert_allclose(glance(X[:, dimensions], y, crashed), lengthscales[dimensions], rtol=1e-9)


def test_where_nothing_is_explained_the_lengthscales_are_the_priors():
    X = np.random.default_rng(0).random((20, 3))
    np.testing.assert_allclose(glance(X, np.full(20, 2.0), np.zeros(20, dtype=bool)), 1.0)
    np.testing.assert_allclose(glance(np.full((20, 3), 0.4), X[:, 0], np.zeros(20, dtype=bool)), 1.0)
    np.testing.assert_allclose(glance(X[:1], X[:1, 0], np.zeros(1, dtype=bool)), 1.0)


@pytest.mark.parametrize("n", [2, 3, 5, 12])
def test_few_trials_make_no_lengthscale_extreme(n):
    lengthscales = glance(*trials(3, n=n))
    assert np.all((lengthscales > 0.4) & (lengthscales <= 5.0))


def test_a_start_from_other_data_is_screened_like_none():
    X, y, crashed = trials(0, n=30)
    classifier = GPCR.fit(X, np.full(30, np.nan), crashed)  # knows nothing of the scale of y
    assert GPCR.fit(X, y, crashed, start=classifier).log_posterior == GPCR.fit(X, y, crashed).log_posterior
