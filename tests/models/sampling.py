"""The crash model's posterior by brute force: importance sampling of several latent functions under labels."""

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri

from crashbo.numerics.kernels import MATERN52


class Sampled(NamedTuple):
    """What sampling gives, and how many independent samples it is worth."""

    mean: np.ndarray  # (n, G), of g at the trials
    var: np.ndarray
    blame: np.ndarray  # (n, G), P(violated)
    log_evidence: float
    effective: float


def gaussian_part(X, y, hypers):
    """Moments of g given its measurements alone, and their log evidence, by dense algebra."""
    K = hypers["outputscale"] * MATERN52.gram(X, hypers["lengthscales"])[0]
    seen = ~np.isnan(y)
    A = K[np.ix_(seen, seen)] + hypers["noise_std"] ** 2 * np.eye(seen.sum())
    r = y[seen] - hypers["mean"]
    gain = np.linalg.solve(A, K[seen]).T
    log_evidence = -0.5 * (r @ np.linalg.solve(A, r) + np.linalg.slogdet(2.0 * np.pi * A)[1])
    return hypers["mean"] + gain @ r, K - gain @ K[seen], log_evidence


def sampled(X, Y, sign, parts, rng, *, joint=None, lower=None, samples=100_000) -> Sampled:
    """Posterior of G latent functions at X, given measurements Y (n, G) and labels.

    sign (n, G): +1 below the threshold, -1 above, 0 nothing said. joint (n,): at least one above. lower (n, G): a
    reading that g and the measurement's noise together exceeded, NaN where there is none.

    Each function's trip level h = g + crash noise is drawn coordinate by coordinate, cut where its label says so
    (Geweke, Hajivassiliou and Keane). What couples functions, and lower bounds, enter the weights.
    """
    n = len(X)
    log_weight = np.zeros(samples)
    log_measured, draws, above = 0.0, [], []
    for j, hypers in enumerate(parts):
        m, V, log_own = gaussian_part(X, Y[:, j], hypers)
        C = V + (hypers.get("crash_noise_std", 0.0) ** 2 + 1e-12 * hypers["outputscale"]) * np.eye(n)
        L = np.linalg.cholesky(C)
        u = np.zeros((samples, n))
        for i in range(n):
            uniform = rng.random(samples)
            if sign[i, j] == 0.0:
                u[:, i] = ndtri(uniform)
                continue
            z = sign[i, j] * (hypers["threshold"] - m[i] - u[:, :i] @ L[i, :i]) / L[i, i]
            log_weight += log_ndtr(z)
            drawn = ndtri(ndtr(z) * uniform)
            u[:, i] = sign[i, j] * np.where(np.isfinite(drawn), drawn, z)
        h = m + u @ L.T
        back = np.linalg.solve(C, V).T  # of g on h
        g = m + (h - m) @ back.T
        left = V - back @ V
        if lower is not None:  # the noise of reading is a fresh one; g itself is drawn given h
            g = g + rng.standard_normal((samples, n)) @ np.linalg.cholesky(left + 1e-12 * np.eye(n)).T
            left = np.zeros_like(left)
            for i in np.flatnonzero(~np.isnan(lower[:, j])):
                log_weight += log_ndtr((g[:, i] - lower[i, j]) / hypers["noise_std"])
        draws.append((g, np.diag(left)))
        above.append(h > hypers["threshold"])
        log_measured += log_own
    violated = np.stack(above, axis=2)  # (samples, n, G)
    if joint is not None:
        kept = np.all(violated[:, joint, :].any(axis=2), axis=1)
        log_weight = np.where(kept, log_weight, -np.inf)
    w = np.exp(log_weight - logsumexp(log_weight))
    mean = np.stack([w @ g for g, _ in draws], axis=1)
    var = np.stack([w @ (g - mean[:, j]) ** 2 + left for j, (g, left) in enumerate(draws)], axis=1)
    blame = np.einsum("s,snj->nj", w, violated)
    total = log_measured + logsumexp(log_weight) - np.log(samples)
    return Sampled(mean, var, blame, float(total), float(1.0 / np.sum(w**2)))
