"""The paper's published results: its table I.

May import the public API and `problems`.
"""

from typing import NamedTuple


class Share(NamedTuple):
    """Safe trials in percent: mean and standard deviation over 100 runs."""

    mean: float
    std: float


def _row(michalewicz: Share | None, hartmann: Share | None, eggcrate: Share) -> dict[str, Share]:
    shares = {"michalewicz10d": michalewicz, "hartmann6d": hartmann, "eggcrate2d": eggcrate}
    return {problem: share for problem, share in shares.items() if share is not None}


_EICC = _row(Share(77.90, 7.78), Share(69.40, 5.44), Share(79.41, 12.98))

# By method and problem. PIBU's are in fact counts out of 101, as the authors' code shows.
TABLE_1: dict[str, dict[str, Share]] = {
    "eicc": _EICC,
    "eicc-paper": _EICC,
    "ei-mc": _row(Share(50.48, 5.28), Share(63.54, 7.65), Share(70.38, 5.87)),
    "ei-hc": _row(Share(53.02, 5.59), Share(64.53, 6.92), Share(69.98, 4.86)),
    "ei-ac": _row(Share(51.39, 5.11), Share(64.16, 7.20), Share(69.19, 6.19)),
    "pibu": _row(Share(86.13, 0.97), Share(80.86, 1.95), Share(96.12, 1.38)),
    "eic": _row(Share(92.92, 7.93), Share(48.14, 15.71), Share(75.12, 4.66)),
    "safeopt": _row(None, None, Share(100.00, 0.00)),
}
