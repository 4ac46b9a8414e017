"""The command `crashbo demo`: what it tells is what happened, and what it leaves behind can be looked at."""

import base64
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("matplotlib")

from PIL import Image

import crashbo
from crashbo.app import animation, demo, demo_files, jump_plots, plots, slices
from crashbo.app.cli import main
from crashbo.app.demo import Learnt, Repeats, Story
from crashbo.optimizer.records import Trial
from crashbo.problems.solo8 import camera
from crashbo.problems.solo8 import problem as solo8

TRIP = 112.34


def told(number, values, cost=None, current=None, reason=""):
    params = dict(zip(solo8.RANGES, values, strict=True))
    if cost is None:
        return Trial(number, params, state="crash", reason=reason, p_safe=0.6)
    return Trial(number, params, state="success", cost=cost, measured={"current": current}, p_safe=0.9)


@pytest.fixture(scope="module")
def story():
    """A study made up by hand: five jumps, a trip and a fall."""
    problem = crashbo.problems.get("solo8-jump")
    trials = (
        told(0, (0.0, 0.0, 1.0, 1.0), -0.28, 51.0),
        told(1, (0.95, 0.95, 0.3, 0.3), reason="boards tripped at 0.49 s"),
        told(2, (0.5, 0.5, 0.5, 0.5), -0.66, 92.0),
        told(3, (0.3, 0.0, 0.0, 0.6), reason="fell: pitch 51 deg"),
        told(4, (0.6, 0.6, 0.4, 0.3), -0.73, 104.0),
        told(5, (0.2, 0.8, 0.5, 0.5), -0.58, 98.0),
        told(6, (0.8, 0.2, 0.5, 0.5), -0.61, 84.0),
    )
    optimizer = crashbo.Optimizer(problem.space, problem.constraints, noise={"cost": 0.002, "current": 0.6})
    for t in trials:
        if t.state == "success":
            optimizer.tell(t.params, cost=t.cost, measured=t.measured)
        else:
            optimizer.tell(t.params, crash=t.reason, blame="fall" if t.reason.startswith("fell") else "current")
    learnt = (Learnt(None, None), *(Learnt(115.0 - k, (105.0, 130.0 - k)) for k in range(6)))
    best = Repeats(4, trials[4].params, (0.731, 0.729), (104.0, 104.5), 0)
    repeats = (Repeats(4, trials[4].params, (0.73,), (104.0,), 1), best)
    return Story(0, optimizer, trials, learnt, repeats, TRIP, 12.0)


@pytest.fixture(scope="module")
def played():
    said = []
    return demo.play(4, 0, said.append), said


@pytest.fixture(scope="module")
def folder(story, tmp_path_factory):
    """Saved on a machine without graphics library."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(camera, "LIBRARIES", ())
        patch.setattr(animation, "_EVERY", 0.1)
        assert demo_files.save(story, folder) == folder / "report.html"
    return folder


class TestPlay:
    def test_it_starts_where_the_paper_does_and_runs_as_many_trials_as_asked(self, played):
        story, _ = played
        assert len(story.trials) == 4
        assert story.trials[0].params == solo8.START
        assert len(story.learnt) == 4

    def test_every_trial_is_told_with_what_it_did(self, played):
        story, said = played
        for trial in story.trials:
            line = next(words for words in said if re.match(rf"\s*{trial.number}\s", words))
            assert (f"{-trial.cost:.3f} m" if trial.cost is not None else trial.reason) in line
        assert f"{TRIP:.2f} A" in said[-1]

    def test_the_best_is_repeated_ten_times_until_one_holds(self, played):
        story, _ = played
        for again in story.repeats:
            assert len(again.heights) + again.crashes == 10
        assert all(again.crashes for again in story.repeats[:-1])
        heights = [-t.cost for t in story.trials if t.cost is not None]
        assert -story.trials[story.repeats[0].number].cost == max(heights)

    def test_the_same_seed_tells_the_same_story(self, played):
        story, _ = played
        again = demo.play(4, 0, lambda _: None)
        assert again.trials == story.trials


class TestSlice:
    def test_models_see_successes_and_trips_and_are_cut_at_the_best(self, story):
        seen = slices.gather(story)
        assert len(seen.successes) == 5
        np.testing.assert_array_equal(seen.tripped, [[0.95, 0.95, 0.3, 0.3]])
        np.testing.assert_array_equal(seen.fallen, [[0.3, 0.0, 0.0, 0.6]])
        assert seen.held == (0.4, 0.3)
        near = np.argmin(np.abs(seen.grid - 0.6))
        assert seen.height[near, near] == pytest.approx(0.73, abs=0.03)
        assert seen.current[near, near] == pytest.approx(104.0, abs=4.0)
        assert seen.current[-1, -1] > seen.current[near, near]  # a crash pushes it up

    def test_its_trip_level_is_the_one_that_was_told(self, played):
        story, _ = played
        assert slices.gather(story).threshold == story.learnt[-1].value

    def test_both_panels_show_successes_and_one_the_crashes(self, story):
        figure = jump_plots.draw_slice(slices.gather(story))
        left, right = figure.axes[:2]
        labels = [[line.get_label() for line in axes.lines] for axes in (left, right)]
        assert labels == [["success", "best"], ["success", "best", "boards tripped", "fell"]]

    def test_the_course_shows_every_trial(self, story):
        upper, lower = jump_plots.draw_course(story).axes[:2]
        jumps = next(line for line in upper.lines if line.get_label() == "jump")
        crashes = next(line for line in upper.lines if line.get_label() == "crash")
        assert np.sum(np.isfinite(jumps.get_ydata())) == 5
        np.testing.assert_array_equal(crashes.get_xdata(), [1, 3])
        assert any(np.all(np.asarray(line.get_ydata()) == TRIP) for line in lower.lines)


class TestKeepsakes:
    @pytest.mark.parametrize("name", ["first.gif", "best.gif", "crash.gif"])
    def test_films_move(self, folder, name):
        with Image.open(folder / name) as film:
            assert film.n_frames > 5
            assert film.size == (animation.WIDTH, animation.HEIGHT)
            first = np.asarray(film.convert("RGB"))
            film.seek(4)
            assert np.any(first != np.asarray(film.convert("RGB")))

    def test_the_page_needs_no_other_file(self, folder):
        page = (folder / "report.html").read_text()
        sources = re.findall(r"src='([^']*)'", page)
        assert len(sources) == 5
        assert all(source.startswith("data:image/") for source in sources)
        for source, name in zip(
            sources, ["first.gif", "best.gif", "crash.gif", "course.png", "slice.png"], strict=True
        ):
            assert base64.b64decode(source.split(",", 1)[1]) == (folder / name).read_bytes()
        assert "http" not in page
        assert "stick figures" in page

    def test_the_page_tells_every_trial_and_both_thresholds(self, folder, story):
        page = (folder / "report.html").read_text()
        assert page.count("<tr") == 1 + len(story.trials)
        for trial in story.trials:
            assert (f"{-trial.cost:.3f}" if trial.cost is not None else trial.reason) in page
        assert "110.0 A" in page
        assert "112.34 A" in page
        assert "fitted" in page

    def test_an_earlier_film_is_not_left_beside_a_report_without_it(self, story, tmp_path, monkeypatch):
        (tmp_path / "crash.gif").write_bytes(b"old")
        (tmp_path / "mine.txt").write_text("kept")
        monkeypatch.setattr(demo_files, "_films", lambda *_: [])
        monkeypatch.setattr(animation, "save", lambda films: False)
        monkeypatch.setattr(plots, "save", lambda figure, path: path.write_bytes(b""))
        trials = tuple(t for t in story.trials if t.state == "success")
        learnt = story.learnt[: len(trials)]
        demo_files.save(replace(story, trials=trials, learnt=learnt), tmp_path)
        assert not (tmp_path / "crash.gif").exists()
        assert (tmp_path / "mine.txt").read_text() == "kept"

    def test_on_a_phone_nothing_but_the_table_scrolls_sideways(self, folder):
        page = (folder / "report.html").read_text()
        assert re.search(r"<div class='scroll'><table>.*</table></div>", page)
        assert ".scroll { overflow-x: auto; }" in page


class TestCommand:
    def test_one_is_one(self, story):
        one = replace(story, trials=story.trials[:2], learnt=story.learnt[:2])
        assert "1 jump, 1 crash\n" in demo.summary(one)
        assert "5 jumps, 2 crashes\n" in demo.summary(story)

    @pytest.mark.parametrize("word", ["-1", "1.5", "some"])
    def test_a_seed_is_a_whole_number(self, word, capsys):
        with pytest.raises(SystemExit) as exit_:
            main(["demo", "--seed", word])
        assert exit_.value.code == 2
        said = capsys.readouterr().err
        assert f"argument --seed: must be a whole number from 0 on; got '{word}'. Write --seed 1" in said

    def test_who_stops_it_hears_what_there_was(self, story, tmp_path, capsys, monkeypatch):
        steps = iter(story.trials[:3])

        def stopped(*_):
            try:
                return next(steps)
            except StopIteration:
                raise KeyboardInterrupt from None

        monkeypatch.setattr(demo, "_measured_noise", lambda *_: {"cost": 0.002, "current": 0.6})
        monkeypatch.setattr(demo, "step", stopped)
        (tmp_path / "report.html").write_text("of an earlier study")
        assert main(["demo", "--output", str(tmp_path)]) == 130
        last = capsys.readouterr().out.splitlines()[-1]
        words = "Stopped after 3 trials (2 jumps, 1 crash): best so far 0.660 m (trial 2). Nothing was saved."
        assert last == words
        assert (tmp_path / "report.html").read_text() == "of an earlier study"

    def test_an_output_that_cannot_be_a_directory_is_refused_before_any_jump(self, tmp_path, capsys):
        occupied = tmp_path / "occupied"
        occupied.write_text("a file")
        assert main(["demo", "--output", str(occupied)]) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("--output must be a directory that can be written to; got ")

    @pytest.mark.parametrize("word", ["0", "-3", "some"])
    def test_trials_are_a_whole_number(self, word, capsys):
        with pytest.raises(SystemExit) as exit_:
            main(["demo", "--trials", word])
        assert exit_.value.code == 2
        assert "must be a whole number from 1 on" in capsys.readouterr().err

    @pytest.mark.parametrize("module", ["mujoco", "matplotlib"])
    def test_without_an_extra_one_sentence_names_all_that_it_needs(self, module, tmp_path):
        code = f"import sys; sys.modules['{module}'] = None\nfrom crashbo.app.cli import main; sys.exit(main(['demo']))"
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.splitlines() == [done.stderr.strip()]
        assert "pip install 'crashbo[robot,plot]'" in done.stderr
        assert list(tmp_path.iterdir()) == []


def test_with_a_guard_the_story_has_stops_and_its_page_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(camera, "LIBRARIES", ())
    monkeypatch.setattr(animation, "_EVERY", 0.1)
    monkeypatch.setattr(
        crashbo.Optimizer, "guard", lambda self, trial: crashbo.Guard({"current": 70.0}, {"current": "above"})
    )
    said = []
    told = demo.play(4, 0, said.append, guarded=True)
    assert told.stops
    assert any("stopped at" in line for line in said)
    assert "stopped by the guard" in demo.summary(told)
    page = demo_files.save(told, tmp_path).read_text()
    assert "stopped by the guard" in page
