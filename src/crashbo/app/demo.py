"""The demonstration: Solo8 learns to jump, live in the terminal. May import every other layer.

Gathers the data that `jump_plots`, `animation` and `jump_report` show.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

import crashbo
from crashbo.app.text import counted
from crashbo.optimizer.records import Trial
from crashbo.problems.problem import Problem
from crashbo.problems.solo8 import problem as solo8
from crashbo.problems.solo8.jump import Flight, jump

REPEATS = 10
_A_FALL = 10.0  # trials: judgement, of a robot that somebody has to pick up
_BLAME = {"boards": "current", "fell": "fall"}  # the first word of a crash's reason names its cause
_TRIES = 8  # settings that are repeated, at most, to find one that always succeeds


@dataclass(frozen=True)
class Learnt:
    """The trip current as learnt after a trial."""

    value: float | None
    interval: tuple[float, float] | None  # 90 %


@dataclass(frozen=True)
class Repeats:
    """Repeats of one setting."""

    number: int  # of the trial that had this setting
    params: dict[str, float]
    heights: tuple[float, ...]
    currents: tuple[float, ...]
    crashes: int


@dataclass(frozen=True)
class Story:
    """A complete study: its trials, what was learnt after each, and the repeats of its best settings."""

    seed: int
    optimizer: crashbo.Optimizer = field(repr=False)  # after the last trial
    trials: tuple[Trial, ...]
    learnt: tuple[Learnt, ...]
    repeats: tuple[Repeats, ...]  # best first; the last one always succeeded, if any did
    trip: float  # the true trip level, which the optimiser never saw
    seconds: float
    guarded: bool = False

    @property
    def stops(self) -> int:
        """How many trials a guard stopped."""
        return sum(t.state == "stopped" for t in self.trials)

    @property
    def confirmed(self) -> Repeats | None:
        """The best setting for which every repeat succeeded."""
        return self.repeats[-1] if self.repeats and not self.repeats[-1].crashes else None

    @property
    def crashes(self) -> int:
        """How many trials crashed."""
        return sum(t.state == "crash" for t in self.trials)


class Interrupted(KeyboardInterrupt):
    """The user stopped the study; the message says how far it got."""


def play(trials: int, seed: int, say: Callable[[str], None], *, guarded: bool = False) -> Story:
    """Run the study and report on it as it goes; `guarded`, a guard stops jumps before the boards trip.

    Raises:
        Interrupted: when the user interrupts.
    """
    since = time.monotonic()
    problem = crashbo.problems.get("solo8-jump")
    rng = np.random.default_rng([seed, 1])  # of the robot; the optimiser has its own
    told: list[Trial] = []
    try:
        optimizer = begin(problem, seed, rng)
        noise = optimizer.study.noise
        say(
            f"Ten jumps at the start tell the noise: {1000 * noise['cost']:.1f} mm of height, {noise['current']:.1f} A."
        )
        say(_HEAD)
        learnt: list[Learnt] = []
        for _ in range(trials):
            told.append(step(optimizer, problem, rng, guarded))
            threshold = optimizer.thresholds["current"]
            learnt.append(Learnt(threshold.value, threshold.interval))
            say(_line(told[-1], optimizer.best, learnt[-1]))
        repeats = repeat_best(told, problem, rng)
    except KeyboardInterrupt:
        raise Interrupted(_so_far(told)) from None
    trip = problem.limits[0].threshold
    story = Story(seed, optimizer, tuple(told), tuple(learnt), repeats, trip, time.monotonic() - since, guarded)
    say(summary(story))
    return story


def begin(problem: Problem, seed: int, rng: np.random.Generator) -> crashbo.Optimizer:
    """A study without trials; ten jumps at the start have told the noise."""
    noise, risk = _measured_noise(problem, rng), crashbo.Price(_A_FALL)
    return crashbo.Optimizer(problem.space, problem.constraints, seed=seed, start=[solo8.START], noise=noise, risk=risk)


def record(params: dict[str, float], seed: int, limit: float = math.inf) -> Flight:
    """A recorded jump at params, which a guard with this limit would stop."""
    watch = solo8.watcher(crashbo.Guard({"current": limit}, {"current": "above"}))
    return jump(solo8.gains(params), solo8.SETUP, rng=np.random.default_rng([seed, 2]), record=True, watch=watch)


def summary(story: Story) -> str:
    """The results in a few lines."""
    lines = ["", f"Trials    {_counts(story.trials)}"]
    for again in story.repeats:
        fate = f"{again.crashes} of {REPEATS} repeats crash" if again.crashes else "all repeats succeed"
        lines.append(f"Trial {again.number:2d}  {_height(again)}: {fate}")
    last = story.learnt[-1] if story.learnt else Learnt(None, None)
    lines.append(f"Trip      {_threshold(last)}; the truth, which nobody told: {story.trip:.2f} A")
    return "\n".join(lines)


_HEAD = (
    "trial   p_knee p_hip d_knee d_hip      height  current                  best      boards trip at (90 % interval)"
)


def _line(told: Trial, best: Trial | None, learnt: Learnt) -> str:
    where = "  ".join(f"{value:5.2f}" for value in told.params.values())
    if told.state == "success":
        what = f"{-_cost(told):6.3f} m {told.measured['current']:6.1f} A"
    elif told.state == "stopped":
        what = f"stopped at {told.measured['current']:.1f} A"
    else:
        what = f"CRASH: {told.reason}"
    top = f"{-_cost(best):.3f} m" if best is not None else "   -   "
    return f"{told.number:5d}   {where}   {what:<33s} {top}   {_threshold(learnt)}"


def _counts(trials: Sequence[Trial]) -> str:
    count = {state: sum(t.state == state for t in trials) for state in ("success", "crash", "stopped")}
    words = f"{counted(count['success'], 'jump')}, {counted(count['crash'], 'crash', 'crashes')}"
    return words + (f", {count['stopped']} stopped by the guard" if count["stopped"] else "")


def _so_far(trials: Sequence[Trial]) -> str:
    """How far the study got when the user stopped it."""
    best = min((t for t in trials if t.state == "success"), key=_cost, default=None)
    top = "no jump yet" if best is None else f"best so far {-_cost(best):.3f} m (trial {best.number})"
    return f"Stopped after {counted(len(trials), 'trial')} ({_counts(trials)}): {top}. Nothing was saved."


def _threshold(learnt: Learnt) -> str:
    if learnt.value is None or learnt.interval is None:
        return "not known yet"
    low, high = learnt.interval
    return f"at least {low:.1f} A" if math.isinf(high) else f"{learnt.value:.1f} A ({low:.1f} to {high:.1f})"


def _height(again: Repeats) -> str:
    if not again.heights:
        return "no height"
    return f"{np.mean(again.heights):.3f} +- {np.std(again.heights):.3f} m, {np.mean(again.currents):.1f} A"


def _measured_noise(problem: Problem, rng: np.random.Generator) -> dict[str, float]:
    """Standard deviations of ten jumps at the start, measured as in the paper."""
    outcomes = [problem.evaluate(solo8.START, rng) for _ in range(REPEATS)]
    costs, currents = [o.cost for o in outcomes], [o.measured["current"] for o in outcomes]
    return {"cost": float(np.std(costs, ddof=1)), "current": float(np.std(currents, ddof=1))}


def step(optimizer: crashbo.Optimizer, problem: Problem, rng: np.random.Generator, guarded: bool) -> Trial:
    """One jump, told."""
    trial = optimizer.ask()
    try:
        if guarded:
            outcome = solo8.guarded(trial.params, rng, optimizer.guard(trial))
        else:
            outcome = problem.evaluate(trial.params, rng)
    except crashbo.Crash as crash:
        # An operator next to the robot sees which of the two it was.
        return optimizer.tell(trial, crash=crash, blame=_BLAME[crash.reason.split()[0].rstrip(":")])
    except crashbo.Stopped as stopped:
        return optimizer.tell(trial, stopped=stopped)
    return optimizer.tell(trial, cost=outcome.cost, measured=outcome.measured)


def repeat_best(trials: list[Trial], problem: Problem, rng: np.random.Generator) -> tuple[Repeats, ...]:
    """Ten repeats of the best setting; if some crash, of the next best, and so on."""
    done: list[Repeats] = []
    successes = sorted((t for t in trials if t.state == "success"), key=_cost)
    for trial in successes[:_TRIES]:
        heights, currents, crashes = [], [], 0
        for _ in range(REPEATS):
            try:
                outcome = problem.evaluate(trial.params, rng)
            except crashbo.Crash:
                crashes += 1
            else:
                heights.append(-outcome.cost)
                currents.append(outcome.measured["current"])
        done.append(Repeats(trial.number, trial.params, tuple(heights), tuple(currents), crashes))
        if not crashes:
            break
    return tuple(done)


def _cost(trial: Trial) -> float:
    assert trial.cost is not None
    return float(trial.cost)
