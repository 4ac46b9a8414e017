"""The demonstration in which nobody measures a height: jumps of Solo8 are compared, film beside film.

May import every other layer. The robot jumps whatever is asked for, and tells that it worked or that it crashed; who
was better is said on the page by a person, or here by a simulated judge.
"""

import contextlib
import shutil
import threading
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from crashbo.app import animation, report
from crashbo.app.animation import Film
from crashbo.app.bench import Bench, Conflict, Definition, Told
from crashbo.app.server import serve
from crashbo.app.text import counted
from crashbo.optimizer.records import Trial
from crashbo.problems.solo8 import problem as solo8
from crashbo.problems.solo8.jump import Flight, jump

_STORE, _NAME = "compare.db", "solo8"
_A_FALL = 10.0  # trials: judgement, of a robot that somebody has to pick up
_BLAME = {"boards": "current", "fell": "fall"}  # the first word of a crash's reason names its cause
_LOOK = 0.3  # seconds between two looks of the robot at what is asked for
_PATIENCE = 10  # looks with nothing to do before it asks by itself, after whoever sits at the page
_ROBOT = "robot"


def begin(folder: Path) -> Bench:
    """The study in this folder: a new one, or the one that is there."""
    store = str(folder / _STORE)
    if Path(store).exists():
        return Bench.open(store, _NAME)
    problem = solo8.make()
    said = {
        "name": _NAME,
        "compared": True,
        "parameters": {name: [0.0, 1.0] for name in problem.space},
        "constraints": {"current": {"unit": "A"}, "fall": {"measured": False}},
        "start": [dict(solo8.START)],
        "risk": {"price": _A_FALL},
    }
    return Bench.create(store, Definition.of(said))


@dataclass
class Robot:
    """Jumps what is asked for, films it, and tells how it ended. It knows its heights, and tells nobody."""

    bench: Bench
    films: Path | None  # where films go; None films nothing
    rng: np.random.Generator
    heights: dict[int, float] = field(default_factory=dict)  # of the successes

    def jump(self, trial: Trial) -> Trial:
        """One jump, told, unless somebody told it in the meantime."""
        flight = jump(solo8.gains(trial.params), solo8.SETUP, rng=self.rng, record=self.films is not None)
        if self.films is not None:
            self._film(trial.number, flight, self.films)
        if not flight.crash:
            self.heights[trial.number] = flight.height
            told = Told.of(success=True, measured={"current": flight.current})
        else:
            told = Told.of(crash=flight.crash, blame=_BLAME[flight.crash.split()[0].rstrip(":")])
        with contextlib.suppress(Conflict):
            return self.bench.tell(trial.number, told, who=_ROBOT)
        return self.bench.entry(trial.number).trial

    def _film(self, number: int, flight: Flight, folder: Path) -> None:
        assert flight.tape is not None
        making = folder / f"making-{number}.gif"  # a film is there when it is complete
        animation.save([Film(making, f"Trial {number}", flight.tape, flight.crash)])
        making.replace(folder / f"{number}.gif")

    def work(self, trials: int, stopped: threading.Event) -> None:
        """Jump whatever is asked for, and ask for the next jump when nobody else does, until there were so many."""
        idle = _PATIENCE
        while not stopped.wait(_LOOK):
            entries = self.bench.entries()
            running = [e.trial for e in entries if e.open]
            idle = 0 if running or any(e.choosing for e in entries) else idle + 1
            for trial in running:
                self.jump(trial)
            if idle >= _PATIENCE and self._is_free() and sum(e.trial.counts for e in entries) < trials:
                with contextlib.suppress(Conflict):  # the study was halted
                    self.bench.ask()
                idle = 0

    def _is_free(self) -> bool:
        """Whether no jump waits to be compared."""
        compared = {
            n for s in self.bench.comparisons() if not s.undone for n in (s.comparison.better, s.comparison.worse)
        }
        successes = [t.number for t in self.bench.trials if t.state == "success"]
        return all(number in compared for number in successes[1:])


def show(folder: Path, trials: int, seed: int, port: int, *, browser: bool = True) -> None:
    """Serve the page with the films until interrupted, while the robot jumps."""
    films = folder / "films"
    films.mkdir(exist_ok=True)
    bench = begin(folder)
    robot, stopped = Robot(bench, films, np.random.default_rng([seed, 1])), threading.Event()
    worker = threading.Thread(target=robot.work, args=(trials, stopped), daemon=True)

    def ready(address: str) -> None:
        worker.start()
        if browser:
            webbrowser.open(address)

    try:
        serve.run(str(folder / _STORE), _NAME, "127.0.0.1", port, None, films=str(films), ready=ready)
    finally:
        stopped.set()


def judged(folder: Path, trials: int, seed: int, errs: float, say: Callable[[str], None]) -> Path:
    """A simulated judge compares every jump with the winner so far, and errs at this rate; returns the report."""
    bench = begin(folder)
    rng, of_judge = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 3])
    robot = Robot(bench, None, rng)
    say("trial   p_knee p_hip d_knee d_hip   verdict of the judge, who sees the height and errs now and then")
    wrong = 0
    while sum(t.counts for t in bench.trials) < trials:
        running = [e.trial for e in bench.entries() if e.open]
        trial = robot.jump(running[0] if running else bench.ask())
        words = trial.reason
        if trial.state == "success":
            words, mistaken = _verdict(robot, trial, of_judge, errs)
            wrong += mistaken
        say(f"{trial.number:5d}   {'  '.join(f'{v:5.2f}' for v in trial.params.values())}   {words}")
    say(_summary(robot, wrong, rng))
    page = folder / "report.html"
    say("Writing the report ...")
    page.write_text(report.of_bench(bench), encoding="utf-8")
    return page


def _verdict(robot: Robot, trial: Trial, rng: np.random.Generator, errs: float) -> tuple[str, bool]:
    """What the judge says of a jump, in words, and whether that is wrong."""
    bench, heights = robot.bench, robot.heights
    if trial.against is None:
        return "jumped; there is nothing to compare it with yet", False
    if trial.against not in heights:  # of an earlier call of this command
        heights[trial.against] = -solo8.simulate(bench.entry(trial.against).trial.params)[0]
    mistaken = bool(rng.random() < errs)
    better = (heights[trial.number] > heights[trial.against]) != mistaken
    bench.prefer(*((trial.number, trial.against) if better else (trial.against, trial.number)), who="judge")
    return f"{'better' if better else 'worse'} than trial {trial.against}" + (
        " (an error)" if mistaken else ""
    ), mistaken


def _summary(robot: Robot, wrong: int, rng: np.random.Generator) -> str:
    """What the study found, by the heights that nobody told it."""
    best, trials = robot.bench.best(), robot.bench.trials
    crashes = counted(sum(t.state == "crash" for t in trials), "crash", "crashes")
    lines = ["", f"Trials    {len(trials)}, {crashes}; {counted(wrong, 'verdict')} wrong"]
    if best is not None:
        flights = [jump(solo8.gains(best.params), solo8.SETUP, rng=rng) for _ in range(10)]
        again = [f.height for f in flights if not f.crash]
        height = f"{np.mean(again):.3f} m over {len(again)} of 10 repeats" if again else "no repeat succeeded"
        lines.append(f"Winner    trial {best.number}: {height}")
    if robot.heights:
        lines.append(f"Highest   {max(robot.heights.values()):.3f} m, which nobody told")
    return "\n".join(lines)


def forget(folder: Path) -> None:
    """Remove an earlier study of this demonstration, with its films."""
    for path in folder.glob(_STORE + "*"):
        path.unlink()
    shutil.rmtree(folder / "films", ignore_errors=True)
