"""The paper's one-dimensional illustration (its figure 2): three successes, two crashes, the next trial.

May import every other layer. Gathers the data that `plots` draws.

The machine is a simulated spindle. Its speed is tuned for minimum cost per part; it draws more current when it turns
slowly (torque) and when it turns fast (friction), and above 14 A its drive trips and the part is lost. It was designed
as a teaching example: the cheapest speed lies beyond the trip level, and the success that came closest to tripping is
not the one next to the crashes, so that there is something to gain and to risk. The models see only five readings, and
all curves drawn from them follow from those.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crashbo.models import GP, GPCR
from crashbo.numerics.gaussians import log_expected_improvement

Array = NDArray[np.float64]

SLOWEST, FASTEST = 2.0, 12.0  # 1000 rpm
SPEEDS = (2.5, 4.5, 6.0, 9.5, 11.0)  # the five trials
TRIP_LEVEL = 14.0  # A, hidden from the models
COST_NOISE, CURRENT_NOISE = 0.02, 0.2  # standard deviations of the readings, in EUR and A
_STEP = 0.01  # of the speed's dial


@dataclass(frozen=True)
class Illustration:
    """The data of the figure; curves are on the grid `speeds`, trials in the order of `tried`."""

    speeds: Array
    true_cost: Array
    true_current: Array
    tried: Array
    crashed: NDArray[np.bool_]
    costs: Array  # NaN where crashed
    currents: Array  # NaN where crashed
    cost_mean: Array
    cost_std: Array
    current_mean: Array
    current_std: Array
    threshold: float
    threshold_interval: tuple[float, float]  # 90 %
    p_safe: Array
    expected_improvement: Array
    acquisition: Array  # expected improvement x P(safe)

    @property
    def best(self) -> int:
        """Index of the cheapest success."""
        return int(np.nanargmin(self.costs))

    @property
    def next(self) -> int:
        """Index on the grid where the acquisition is highest: the next trial."""
        return int(np.argmax(self.acquisition))

    @property
    def greedy(self) -> int:
        """Index where the expected improvement alone is highest: the next trial if crashes did not matter."""
        return int(np.argmax(self.expected_improvement))


def cost_per_part(speed: Array) -> Array:
    """Cost of a part in EUR: machine time, and tools that wear faster at speed."""
    return 0.6 + 9.0 / speed + 0.005 * speed**2


def drive_current(speed: Array) -> Array:
    """Current of the drive in A: torque at low speed, friction at high."""
    return 30.0 / speed + 0.14 * speed**2


def gather() -> Illustration:
    """Run the five trials, fit both models to the readings, and evaluate every speed on the dial."""
    tried = np.array(SPEEDS)
    crashed = drive_current(tried) > TRIP_LEVEL
    costs = np.where(crashed, np.nan, cost_per_part(tried).round(2))  # rounded as on the instruments
    currents = np.where(crashed, np.nan, drive_current(tried).round(1))
    cost_model = GP.fit(_unit(tried[~crashed]), costs[~crashed], noise_std=COST_NOISE)
    crash_model = GPCR.fit(_unit(tried), currents, crashed, noise_std=CURRENT_NOISE)
    assert crash_model.threshold is not None  # currents were measured
    assert crash_model.threshold_interval is not None

    speeds = np.linspace(SLOWEST, FASTEST, round((FASTEST - SLOWEST) / _STEP) + 1)
    cost_mean, cost_var = cost_model.predict(_unit(speeds))
    current_mean, current_var = crash_model.predict(_unit(speeds))
    p_safe = crash_model.p_safe(_unit(speeds))
    log_ei = log_expected_improvement(cost_mean, cost_var, best=np.nanmin(costs))
    return Illustration(
        speeds=speeds,
        true_cost=cost_per_part(speeds),
        true_current=drive_current(speeds),
        tried=tried,
        crashed=crashed,
        costs=costs,
        currents=currents,
        cost_mean=cost_mean,
        cost_std=np.sqrt(cost_var),
        current_mean=current_mean,
        current_std=np.sqrt(current_var),
        threshold=crash_model.threshold,
        threshold_interval=crash_model.threshold_interval,
        p_safe=p_safe,
        expected_improvement=np.exp(log_ei),
        acquisition=np.exp(log_ei + np.log(p_safe)),  # eq. 2
    )


def summary(seen: Illustration) -> str:
    """What the figure shows, in a few lines."""
    low, high = seen.threshold_interval
    best, there = seen.best, seen.next
    return "\n".join(
        [
            f"Trials      {np.sum(~seen.crashed)} successes, {np.sum(seen.crashed)} crashes",
            f"Threshold   the drive trips above {seen.threshold:.1f} A (90 % interval {low:.1f} to {high:.1f} A)",
            f"Best so far {seen.costs[best]:.2f} EUR per part at {_rpm(seen.tried[best])}",
            f"Next trial  {_rpm(seen.speeds[there])}, safe with probability {seen.p_safe[there]:.2f}",
        ]
    )


def _rpm(speed: float) -> str:
    return f"{1000.0 * speed:.0f} rpm"


def _unit(speed: Array) -> Array:
    """Speeds as rows of the unit cube."""
    return ((speed - SLOWEST) / (FASTEST - SLOWEST))[:, None]
