"""BoTorch's PairwiseGP with EUBO, where a crash counts as a loss against the winner: without a model of crashes."""

import warnings
from typing import Any

import numpy as np
import torch
from botorch.acquisition.preference import AnalyticExpectedUtilityOfBestOption
from botorch.fit import fit_gpytorch_mll
from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
from botorch.optim import optimize_acqf
from judged import Judged

from crashbo.search.space import Space

_FIRST = 5  # trials that fill the space, as ours has


def pairwise(machine: Judged, trials: int) -> dict[str, Any]:
    """One study; every trial is compared with the winner so far, and loses if it crashes."""
    warnings.simplefilter("ignore")
    torch.manual_seed(machine.seed)
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    space = Space.of(machine.problem.space)
    D, rng = space.dimension, np.random.default_rng([machine.seed, 5])
    X, pairs, succeeded = [space.encode(machine.start)], [], []
    succeeded.append(machine.run(machine.start) is not None)
    model, winner = None, 0
    for number in range(1, trials):
        x = rng.random(D) if model is None or number < _FIRST else _next(model, X[winner], D)
        params = space.decode(np.clip(x, 0.0, 1.0))
        X.append(space.encode(params))
        succeeded.append(machine.run(params) is not None)
        won = succeeded[number] and machine.prefers(number, winner)
        pairs.append([number, winner] if won else [winner, number])
        model = _fitted(np.array(X), np.array(pairs))
        winner = _winner(model, np.array(X), succeeded)
    return {"recommended": machine.params[winner], "best": machine.params[winner]}


def _fitted(X: Any, pairs: Any) -> PairwiseGP:
    model = PairwiseGP(torch.from_numpy(X), torch.from_numpy(pairs))
    try:
        fit_gpytorch_mll(PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model))
    except Exception:  # its own line search may fail: the prior's hyperparameters do for one trial
        model = PairwiseGP(torch.from_numpy(X), torch.from_numpy(pairs))
    model.eval()
    return model


def _winner(model: PairwiseGP, X: Any, succeeded: list[bool]) -> int:
    with torch.no_grad():
        mean = model.posterior(torch.from_numpy(X)).mean.numpy().ravel()
    return int(np.argmax(np.where(succeeded, mean, -np.inf)))


def _next(model: PairwiseGP, winner: Any, D: int) -> Any:
    acquisition = AnalyticExpectedUtilityOfBestOption(model, previous_winner=torch.from_numpy(winner)[None])
    bounds = torch.stack([torch.zeros(D), torch.ones(D)])
    best, _ = optimize_acqf(acquisition, bounds=bounds, q=1, num_restarts=4, raw_samples=64)
    return best.detach().numpy()[0]
