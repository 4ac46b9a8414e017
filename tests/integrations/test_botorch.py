"""GPCR as a BoTorch model: its numbers are crashbo's, its gradients true, and BoTorch's acquisitions take it."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test EXTRAS=botorch")
pytest.importorskip("botorch", reason="botorch is not installed: make test EXTRAS=botorch")

from botorch.acquisition import qKnowledgeGradient
from botorch.acquisition.analytic import LogConstrainedExpectedImprovement
from botorch.acquisition.logei import qLogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.acquisition.objective import GenericMCObjective
from botorch.models.model import ModelList
from botorch.optim import optimize_acqf
from botorch.sampling import IIDNormalSampler
from botorch.sampling.list_sampler import ListSampler

import crashbo
from crashbo.integrations.botorch import GPCRModel
from crashbo.models import GP, GPCR, CrashModel
from crashbo.search.acquisition import LogEI, LogGamma

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("default")  # warnings of torch and its neighbours are not ours


def machine(n=14, seed=0):
    """Trials of a machine that crashes where x0 + x1 > 1.1."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    g = X.sum(axis=1)
    crashed = g > 1.1
    cost = (X[:, 0] - 0.9) ** 2 + (X[:, 1] - 0.7) ** 2
    return X, np.where(crashed, np.nan, g), crashed, cost


@pytest.fixture(scope="module")
def models():
    X, y, crashed, cost = machine()
    return GP.fit(X[~crashed], cost[~crashed]), GPCR.fit(X, y, crashed)


def points(*shape, seed=1):
    return torch.as_tensor(np.random.default_rng(seed).random((*shape, 2)))


def test_mean_variance_and_p_safe_are_crashbos(models):
    X = points(30)
    for model in models:
        posterior = GPCRModel(model).posterior(X.unsqueeze(1))
        mean, var = model.predict(X.numpy())
        np.testing.assert_allclose(posterior.mean.squeeze().numpy(), mean, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(posterior.variance.squeeze().numpy(), var, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(GPCRModel(models[1]).p_safe(X).numpy(), models[1].p_safe(X.numpy()), atol=1e-8)


def test_the_joint_covariance_is_that_of_the_dense_formula():
    X, _, _, cost = machine()
    gp = GP.condition(X, cost, lengthscales=[0.4, 0.7], outputscale=2.0, noise_std=0.1, mean=0.3)
    Z = points(5)
    posterior = GPCRModel(gp).posterior(Z)

    def kernel(A, B):
        r = np.sqrt(5.0) * np.linalg.norm((A[:, None] - B[None]) / np.array([0.4, 0.7]), axis=2)
        return 2.0 * (1 + r + r**2 / 3) * np.exp(-r)

    gain = kernel(Z.numpy(), X) @ np.linalg.inv(kernel(X, X) + 0.01 * np.eye(len(X)))
    cov = kernel(Z.numpy(), Z.numpy()) - gain @ kernel(X, Z.numpy())
    np.testing.assert_allclose(posterior.distribution.covariance_matrix.numpy(), cov, atol=1e-8)
    np.testing.assert_allclose(posterior.mean.squeeze().numpy(), 0.3 + gain @ (cost - 0.3), atol=1e-9)
    noisy = GPCRModel(gp).posterior(Z, observation_noise=True)
    np.testing.assert_allclose((noisy.variance - posterior.variance).numpy(), 0.01, atol=1e-9)


def test_the_posterior_is_differentiable_in_x(models):
    model = GPCRModel(models[1])
    X = points(3, 2).requires_grad_()

    def moments(X):
        posterior = model.posterior(X)
        return posterior.mean, posterior.distribution.covariance_matrix

    assert torch.autograd.gradcheck(moments, (X,), eps=1e-6, atol=1e-5)
    X = points(7).requires_grad_()
    model.p_safe(X).log().sum().backward()
    _, slope = LogGamma.of(models[1].posterior).with_gradient(X.detach().numpy())
    np.testing.assert_allclose(X.grad.numpy(), slope, rtol=1e-5, atol=1e-7)


def test_the_gradient_at_a_trial_is_finite(models):
    X = torch.as_tensor(machine()[0][:3]).unsqueeze(1).requires_grad_()
    posterior = GPCRModel(models[1]).posterior(X)
    (posterior.mean.sum() + posterior.variance.sum()).backward()
    assert torch.isfinite(X.grad).all()


def test_every_constraint_of_a_crash_model_is_a_model():
    X, y, crashed, _ = machine()
    parts = [
        {"lengthscales": [0.5, 0.5], "outputscale": 1.0, "threshold": 1.1, "noise_std": 0.05},
        {"lengthscales": [0.3, 0.9], "outputscale": 2.0, "threshold": 0.5, "noise_std": 0.05},
    ]
    model = CrashModel.condition(X, np.column_stack([y, y - 0.7]), crashed, parts=parts)
    Z = points(6)
    mean, var = model.predict(Z.numpy())
    for j in range(2):
        posterior = GPCRModel(model, j).posterior(Z.unsqueeze(1))
        np.testing.assert_allclose(posterior.mean.squeeze().numpy(), mean[:, j], atol=1e-8)
        np.testing.assert_allclose(posterior.variance.squeeze().numpy(), var[:, j], atol=1e-8)


class TestAcquisitions:
    """BoTorch's constrained acquisitions, on a cost and a constraint of crashbo."""

    @pytest.fixture
    def both(self, models):
        cost, crash = (GPCRModel(model) for model in models)
        return ModelList(cost, crash), crash

    def test_the_analytic_one_is_the_papers(self, models, both):
        model, crash = both
        h = models[1].hyperparameters
        sharp = GPCR.condition(
            *machine()[:3],
            lengthscales=h.lengthscales,
            outputscale=h.outputscale,
            threshold=h.threshold,
            noise_std=h.noise_std,
            mean=h.mean,
        )
        model = ModelList(model.models[0], GPCRModel(sharp))
        best = 0.2
        acquisition = LogConstrainedExpectedImprovement(
            model, best_f=best, objective_index=0, constraints={1: (None, crash.threshold)}, maximize=False
        )
        X = points(20)
        ours = LogEI(models[0].posterior, best)(X.numpy()) + LogGamma.of(sharp.posterior)(X.numpy())
        np.testing.assert_allclose(acquisition(X.unsqueeze(1)).detach().numpy(), ours, rtol=1e-4, atol=1e-4)

    def sampler(self, n):
        # Not Sobol's: two of its sequences, one a model, are not independent of each other.
        return ListSampler(*(IIDNormalSampler(torch.Size([n]), seed=seed) for seed in (1, 2)))

    def test_the_sampled_one_agrees_with_ei_times_p_safe(self, models, both):
        model, crash = both
        acquisition = qLogExpectedImprovement(
            model,
            best_f=-0.2,
            sampler=self.sampler(16384),
            objective=GenericMCObjective(lambda Y, X=None: -Y[..., 0]),
            constraints=[crash.constraint()],
            eta=1e-4,
        )
        X = points(10)
        p_safe = torch.special.ndtr(
            (crash.threshold - crash.posterior(X.unsqueeze(1)).mean) / crash.posterior(X.unsqueeze(1)).variance.sqrt()
        ).squeeze()
        ours = np.exp(LogEI(models[0].posterior, 0.2)(X.numpy())) * p_safe.detach().numpy()
        sampled = acquisition(X.unsqueeze(1)).exp().detach().numpy()
        np.testing.assert_allclose(sampled, ours, rtol=0.1, atol=0.03 * ours.max())

    def test_noisy_ei_proposes_a_batch_that_is_safer_than_without_the_constraint(self, both):
        model, crash = both
        X, _, crashed, _ = machine()
        box = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
        wary, bold = (
            qLogNoisyExpectedImprovement(
                model,
                X_baseline=torch.as_tensor(X[~crashed]),
                sampler=self.sampler(64),
                objective=GenericMCObjective(lambda Y, X=None: -Y[..., 0]),
                constraints=constraints,
                prune_baseline=False,
                cache_root=False,
            )
            for constraints in ([crash.constraint()], None)
        )
        batches = []
        for acquisition in (wary, bold):
            torch.manual_seed(0)
            batch, _ = optimize_acqf(
                acquisition, box, q=2, num_restarts=2, raw_samples=32, options={"maxiter": 30, "batch_limit": 2}
            )
            assert (batch[0] - batch[1]).abs().max() > 1e-3
            batches.append(batch)
        assert crash.p_safe(batches[0]).min() > 2 * crash.p_safe(batches[1]).min()
        assert wary(batches[0]) > wary(batches[1])


def test_observations_that_are_added_are_those_of_a_fit_with_them(models):
    X, _, _, cost = machine()
    hypers = {"lengthscales": [0.4, 0.7], "outputscale": 2.0, "noise_std": 0.1, "mean": 0.3}
    early = GPCRModel(GP.condition(X[:9], cost[:9], **hypers))
    added = early.condition_on_observations(torch.as_tensor(X[9:12]), torch.as_tensor(cost[9:12, None]))
    added = added.condition_on_observations(torch.as_tensor(X[12:]), torch.as_tensor(cost[12:, None]))
    whole = GPCRModel(GP.condition(X, cost, **hypers)).posterior(points(5))
    posterior = added.posterior(points(5))
    np.testing.assert_allclose(posterior.mean, whole.mean, atol=1e-7)
    np.testing.assert_allclose(posterior.covariance_matrix, whole.covariance_matrix, atol=1e-7)


def test_fantasies_have_a_batch_each_and_average_to_what_is_known(models):
    model = GPCRModel(models[0])
    X = points(3, 2)  # three batches of two
    fantasies = model.fantasize(X, IIDNormalSampler(torch.Size([512]), seed=0))
    assert fantasies.batch_shape == torch.Size([512, 3])
    at = points(1, seed=5)
    posterior, known = fantasies.posterior(at), model.posterior(at)
    assert posterior.mean.shape == (512, 3, 1, 1)
    error = posterior.mean.std(dim=0).max() / 512**0.5
    assert (posterior.mean.mean(dim=0) - known.mean).abs().max() < 4.0 * error + 1e-9
    assert (posterior.variance <= known.variance + 1e-9).all()


def test_the_knowledge_gradient_takes_it(models):
    gradient = qKnowledgeGradient(GPCRModel(models[0]), num_fantasies=8)
    X = points(2, 9).requires_grad_()  # one trial and eight fantasies
    value = gradient(X)
    value.sum().backward()
    assert value.shape == (2,)
    assert torch.isfinite(X.grad).all()


def test_a_study_gives_its_cost_and_its_constraints():
    optimizer = crashbo.Optimizer({"x": (0.0, 2.0), "y": (0.0, 1.0)}, ["load"])
    with pytest.raises(ValueError, match="must have been told a trial"):
        GPCRModel.from_study(optimizer)
    for x, y in np.random.default_rng(0).random((12, 2)):
        params = {"x": 2.0 * x, "y": y}
        optimizer.tell(params, **({"crash": True} if x + y > 1.3 else {"cost": x - y, "measured": {"load": x + y}}))
    params = {"x": 0.7, "y": 0.3}
    X = torch.as_tensor(optimizer.space.encode(params))[None]
    expected = optimizer.predict([params])
    for output, (mean, std) in {"cost": expected.cost, "load": expected.measured["load"]}.items():
        posterior = GPCRModel.from_study(optimizer, output).posterior(X)
        np.testing.assert_allclose(posterior.mean.ravel(), mean, rtol=1e-6)
        np.testing.assert_allclose(posterior.variance.ravel().sqrt(), std, rtol=1e-3)
    assert GPCRModel.from_study(optimizer).threshold == optimizer.view.models.crash.hypers[0].threshold
    with pytest.raises(ValueError, match="output must be one of load, cost; got 'speed'"):
        GPCRModel.from_study(optimizer, "speed")
    with pytest.raises(ValueError, match=r"must be an Optimizer; got .* Of a result it is result\.optimizer\."):
        GPCRModel.from_study(crashbo.minimize(lambda params: params["x"], {"x": (0.0, 1.0)}, trials=2))


def test_a_study_of_several_goals_gives_each_by_its_name():
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0)}, objectives={"time": "minimize", "yield": "maximize"})
    for x in np.linspace(0.0, 1.0, 6):
        optimizer.tell({"x": x}, cost={"time": x, "yield": 5.0 * x * x})
    X = torch.tensor([[0.4]], dtype=torch.float64)
    mean, sign = optimizer.predict([{"x": 0.4}]).cost, {"time": 1.0, "yield": -1.0}
    for goal in sign:
        found = GPCRModel.from_study(optimizer, goal).posterior(X).mean.item()
        assert found == pytest.approx(sign[goal] * mean[goal][0].item(), rel=1e-6)
    with pytest.raises(ValueError, match="output must be one of crash, time, yield; got 'cost'"):
        GPCRModel.from_study(optimizer, "cost")


def test_it_is_its_only_output(models):
    model = GPCRModel(models[0])
    assert model.subset_output([0]) is model
    with pytest.raises(ValueError, match=r"idcs must be \[0\]; got \[1\]"):
        model.subset_output([1])
