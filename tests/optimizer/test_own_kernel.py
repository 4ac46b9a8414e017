"""A kernel of one's own: given by its profile, used by both models, and passed again where a study is loaded."""

import numpy as np
import pytest

import crashbo
from crashbo.models import GP, Hyperprior, Kernel
from crashbo.models.hyperpriors import weak
from crashbo.numerics.kernels import MATERN52, SQUARED_EXPONENTIAL

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def rational_quadratic(r2):
    return (1.0 + 0.5 * r2) ** -1.0, -0.5 * (1.0 + 0.5 * r2) ** -2.0


OWN = Kernel("rational_quadratic", rational_quadratic)


def told(**said):
    optimizer = crashbo.Optimizer(SPACE, ["load"], **said)
    for _ in range(9):
        trial = optimizer.ask()
        load = trial.params["x"] + trial.params["y"]
        if load > 1.5:
            optimizer.tell(trial, crash=True)
        else:
            optimizer.tell(trial, cost=(trial.params["x"] - 0.7) ** 2, measured={"load": load})
    return optimizer


def test_both_models_and_whatever_is_asked_of_them_use_it():
    optimizer = told(kernel=OWN)
    models = optimizer.view.models
    assert models.cost.kernel is OWN
    assert {post.kernel for post in models.ensemble.members} == {OWN}
    assert models.measured.kernel is OWN
    assert optimizer.thresholds["load"].interval is not None
    assert optimizer.recommend() is not None
    assert optimizer.gain_left() is not None
    assert len(optimizer.ask_batch(3)) == 3


def test_a_study_with_it_goes_on_where_it_is_passed_again():
    optimizer = told(kernel=OWN)
    with pytest.raises(ValueError, match="kernel must be passed again"):
        crashbo.Optimizer.from_json(optimizer.to_json())
    again = crashbo.Optimizer.from_json(optimizer.to_json(), kernel=OWN)
    assert again.ask().params == optimizer.ask().params
    assert crashbo.Optimizer.from_json(told(kernel="squared_exponential").to_json()).study.kernel is SQUARED_EXPONENTIAL
    assert optimizer.changed(kernel="matern52").study.kernel is MATERN52


def test_evidence_and_gradient_agree_with_finite_differences():
    X = np.random.default_rng(0).random((12, 2))
    y = np.sin(4.0 * X[:, 0]) + X[:, 1]
    prior = weak(2)
    fitted = GP.fit(X, y, prior=Hyperprior(**(vars(prior) | {"kernel": OWN})))
    assert fitted.posterior.kernel is OWN
    h = fitted.hyperparameters

    def evidence(e):
        from crashbo.models import latent

        moved = vars(h) | {"lengthscales": h.lengthscales * np.array([1.0 + e, 1.0])}
        return latent.condition(fitted.posterior.data, (type(h)(**moved),)).log_evidence

    slope = (evidence(1e-5) - evidence(-1e-5)) / 2e-5
    assert fitted.log_evidence_gradient()["lengthscales"][0] * h.lengthscales[0] == pytest.approx(
        slope, rel=1e-4, abs=1e-5
    )


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        (lambda r2: 1.0 / (1.0 + r2), "map an array"),
        (lambda r2: (np.exp(-r2), -np.exp(-r2)[:1]), "of their shape"),
        (lambda r2: (2.0 * np.exp(-r2), -2.0 * np.exp(-r2)), "be one at distance zero"),
        (lambda r2: (np.exp(-r2), np.exp(-r2)), "dk/dr2 as its second array"),
        (lambda r2: (np.cos(r2), -np.sin(r2)), "be positive definite"),
    ],
)
def test_what_is_no_kernel_is_refused_in_a_sentence(profile, words):
    with pytest.raises(ValueError, match=rf"kernel must .*{words}.*; got 'mine'\. Mend"):
        crashbo.Optimizer(SPACE, kernel=Kernel("mine", profile))


@pytest.mark.parametrize("said", ["matern", 5, rational_quadratic])
def test_other_things_are_refused(said):
    with pytest.raises(ValueError, match="kernel must be 'matern52', 'squared_exponential' or a Kernel; got"):
        crashbo.Optimizer(SPACE, kernel=said)
