"""Parameters that do not always exist: imputed, on an arc, or with a conditional kernel? Held-out log densities.

    python benchmarks/conditions.py 0 12        # seeds; minutes

A cost has two branches, with one and two parameters of their own beside two that they share. Encodings of those that do
not exist: "centre" and "zero" put them there; "arc" puts a parameter on an arc of a circle, one that does not exist at
its centre, at the same distance from all (Swersky et al., 2013); "conditional" is a kernel of its own, in which the
distance to what does not exist is a constant that is learnt:

    k = k(shared, branch) prod_c f_c,  f_c = rho^2 + (1 - rho^2) k_c(u, u') beside each other, rho across, else 1
"""

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from crashbo.models import GP
from crashbo.models.hyperpriors import of_cost

HOT = 0.5**0.5  # as a Choice has it
KINDS = [(way, scale) for way in ("additive", "joint") for scale in ("smooth", "rough")]
ENCODINGS = ("centre", "zero", "arc")
Array = np.ndarray


class Points(NamedTuple):
    """Branches, what both share, and what one of them has: the first in branch 0, the others in branch 1."""

    branch: Array  # (n,)
    shared: Array  # (n, 2)
    own: Array  # (n, 3)

    @property
    def exists(self) -> Array:
        """Which of those do."""
        return np.stack([self.branch == 0, self.branch == 1, self.branch == 1], axis=1)

    @property
    def common(self) -> Array:
        """The branch, one-hot, and what both share."""
        return np.column_stack([HOT * (self.branch == 0), HOT * (self.branch == 1), self.shared])


def wave(rng: np.random.Generator, D: int, scale: Array | float, count: int = 200) -> Callable[[Array], Array]:
    W, b = rng.standard_normal((count, D)) / scale, rng.uniform(0, 2 * np.pi, count)
    a = rng.standard_normal(count) * np.sqrt(2 / count)
    return lambda X: np.cos(X @ W.T + b) @ a


def cost(rng: np.random.Generator, kind: tuple[str, str]) -> Callable[[Points], Array]:
    ls, shared, level = {"smooth": 1.0, "rough": 0.25}[kind[1]], wave(rng, 2, 0.5), rng.standard_normal(2)
    own = [wave(rng, 2, 0.6) for _ in range(2)]
    alone = [wave(rng, 1, ls), wave(rng, 2, ls)]
    joint = [wave(rng, 3, np.array([0.5, 0.5, ls])), wave(rng, 4, np.array([0.5, 0.5, ls, ls]))]

    def additive(p: Points) -> Array:
        branches = [0.3 * own[b](p.shared) + alone[b](p.own[:, s]) for b, s in enumerate((slice(0, 1), slice(1, 3)))]
        return shared(p.shared) + 0.7 * level[p.branch] + np.where(p.branch == 0, *branches)

    def together(p: Points) -> Array:
        parts = [joint[b](np.column_stack([p.shared, p.own[:, s]])) for b, s in enumerate((slice(0, 1), slice(1, 3)))]
        return 0.5 * shared(p.shared) + 0.5 * level[p.branch] + np.where(p.branch == 0, *parts)

    return additive if kind[0] == "additive" else together


def encoded(p: Points, how: str) -> Array:
    if how == "arc":
        angle = np.pi / 2 * (p.own - 0.5)
        return np.column_stack([p.common, *(HOT * np.where(p.exists, f(angle), 0.0) for f in (np.sin, np.cos))])
    return np.column_stack([p.common, np.where(p.exists, p.own, 0.5 if how == "centre" else 0.0)])


def matern(r2: Array) -> Array:
    a = np.sqrt(5.0 * np.maximum(r2, 0.0))
    return (1.0 + a + a * a / 3.0) * np.exp(-a)


class Conditional:
    """theta: seven log lengthscales, log outputscale, log noise, and logits of rho."""

    def __init__(self, p: Points, y: Array) -> None:
        self.p, self.mean, self.std = p, y.mean(), y.std()
        self.y = (y - self.mean) / self.std
        starts = [
            np.r_[np.full(4, np.log(a)), np.full(3, np.log(b)), 0.0, np.log(0.03), np.zeros(3)]
            for a, b in ((0.8, 0.6), (1.5, 0.3))
        ]
        found = [minimize(self.lost, start, method="L-BFGS-B", options={"maxiter": 60}) for start in starts]
        self.theta = min(found, key=lambda f: f.fun).x

    def kernel(self, a: Points, b: Points, theta: Array) -> Array:
        """Between all pairs."""
        ls, rho = np.exp(theta[:7]), 1.0 / (1.0 + np.exp(-theta[9:]))
        K = matern((((a.common / ls[:4])[:, None] - (b.common / ls[:4])[None]) ** 2).sum(axis=2))
        for c in range(3):
            both, either = a.exists[:, None, c] & b.exists[None, :, c], a.exists[:, None, c] | b.exists[None, :, c]
            k = matern(((a.own[:, None, c] - b.own[None, :, c]) / ls[4 + c]) ** 2)
            K = K * np.where(both, rho[c] ** 2 + (1.0 - rho[c] ** 2) * k, np.where(either, rho[c], 1.0))
        return K * np.exp(theta[7])

    def root(self, theta: Array) -> Array:
        """Cholesky factor of the covariance of what was measured."""
        K = self.kernel(self.p, self.p, theta)
        return np.linalg.cholesky(K + (np.exp(2.0 * theta[8]) + 1e-8) * np.eye(len(K)))

    def lost(self, theta: Array) -> float:
        """Minus the log posterior."""
        try:
            L = self.root(theta)
        except np.linalg.LinAlgError:
            return 1e6
        z = np.linalg.solve(L, self.y)
        prior = np.sum((theta[:7] - np.log(0.4 * 7**0.5)) ** 2) + theta[7] ** 2 + (theta[8] - np.log(0.01)) ** 2
        return float(0.5 * z @ z + np.log(np.diag(L)).sum() + 0.5 * (prior + np.sum((theta[9:] / 1.5) ** 2)))

    def predict(self, p: Points) -> tuple[Array, Array]:
        """Mean and variance."""
        L, k = self.root(self.theta), self.kernel(self.p, p, self.theta)
        v, z = np.linalg.solve(L, k), np.linalg.solve(L, self.y)
        var = np.maximum(np.exp(self.theta[7]) - np.sum(v * v, axis=0), 1e-10)
        return self.mean + self.std * (v.T @ z), self.std**2 * var


def density(y: Array, mean: Array, var: Array) -> float:
    """Mean log density of what was held out, in units of its spread."""
    var = var + 1e-4 * y.var()
    return float(np.mean(-0.5 * np.log(2.0 * np.pi * var / y.var()) - 0.5 * (y - mean) ** 2 / var))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    said = parser.parse_args()
    for kind in KINDS:
        for n in (12, 30):
            rows = []
            for seed in range(said.first, said.last):
                rng = np.random.default_rng([seed, 7])
                truth = cost(rng, kind)
                tried, other = (Points(rng.integers(0, 2, m), rng.random((m, 2)), rng.random((m, 3))) for m in (n, 300))
                y, held = truth(tried), truth(other)
                row = []
                for how in ENCODINGS:
                    X = encoded(tried, how)
                    row.append(density(held, *GP.fit(X, y, prior=of_cost(X.shape[1])).predict(encoded(other, how))))
                rows.append([*row, density(held, *Conditional(tried, y).predict(other))])
            gain = np.array(rows) - np.array(rows)[:, :1]
            shown = zip(
                (*ENCODINGS, "conditional"), gain.mean(axis=0), gain.std(axis=0) / len(gain) ** 0.5, strict=True
            )
            words = ", ".join(f"{name} {mean:+.3f} ± {error:.3f}" for name, mean, error in shown)
            print(f"{' '.join(kind)}, {n} trials, nats more than centre: {words}", flush=True)


if __name__ == "__main__":
    main()
