"""The demonstration in which jumps are compared: a simulated judge who errs, and a robot that films."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("matplotlib")
pytest.importorskip("fastapi")

from crashbo.app import animation, compare_demo
from crashbo.app.cli import main


def test_a_judge_compares_and_the_same_command_goes_on(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(compare_demo.report, "of_bench", lambda bench: "<html></html>")  # it has tests of its own
    for trials in (3, 5):
        assert main(["demo", "--judge", "0.1", "--trials", str(trials), "--output", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    bench = compare_demo.begin(tmp_path)
    told, successes = bench.trials, [t for t in bench.trials if t.state == "success"]
    assert sum(t.counts for t in told) == 5
    assert len(bench.comparisons()) == len(successes) - 1
    assert all(t.cost is None for t in told)
    assert all("current" in t.measured for t in successes)
    assert "there is nothing to compare it with yet" in said
    assert "Winner    trial" in said
    assert (tmp_path / "report.html").exists()
    compare_demo.forget(tmp_path)
    assert compare_demo.begin(tmp_path).trials[0].state == "pending"  # the start, queued


def test_a_judge_errs_at_the_stated_rate(tmp_path: Path) -> None:
    bench = compare_demo.begin(tmp_path)
    robot = compare_demo.Robot(bench, None, np.random.default_rng(0))
    robot.jump(bench.ask())
    trial = bench.ask()
    bench.tell(trial.number, compare_demo.Told.of(success=True))
    robot.heights |= {0: 0.5, trial.number: 0.7}
    rng, wrong = np.random.default_rng(1), 0
    for _ in range(100):
        words, mistaken = compare_demo._verdict(robot, trial, rng, 0.2)
        wrong += mistaken
        assert words.startswith("worse" if mistaken else "better")
    assert 10 <= wrong <= 32


def test_the_robot_jumps_what_is_asked_for_and_films_it(tmp_path: Path, monkeypatch: Any) -> None:
    made: list[Path] = []

    def save(films: list[animation.Film]) -> bool:
        made.extend(film.path for film in films)
        for film in films:
            film.path.write_bytes(b"GIF89a")
        return False

    monkeypatch.setattr(compare_demo.animation, "save", save)
    bench = compare_demo.begin(tmp_path)
    robot, stopped = compare_demo.Robot(bench, tmp_path, np.random.default_rng(0)), threading.Event()
    worker = threading.Thread(target=robot.work, args=(1, stopped))
    worker.start()
    while not any(t.counts for t in bench.trials):
        worker.join(0.1)
        assert worker.is_alive()
    stopped.set()
    worker.join()
    assert [p.name for p in tmp_path.glob("*.gif")] == ["0.gif"]
    assert bench.trials[0].state == "success"
    assert bench.entry(0).who == "robot"


@pytest.mark.parametrize("errs", ["0.5", "-0.1", "often"])
def test_a_rate_that_cannot_be_is_refused(errs: str, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main(["demo", "--judge=" + errs])
    assert "must be a rate from 0 to less than 0.5" in capsys.readouterr().err
