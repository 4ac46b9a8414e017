"""The command `crashbo illustrate`: what it gathers is right, and what it draws and prints is that."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import norm

from crashbo.app import illustration
from crashbo.app.cli import main
from crashbo.models import GP, GPCR
from crashbo.version import __version__

plots = pytest.importorskip("crashbo.app.plots")


@pytest.fixture(scope="module")
def seen():
    return illustration.gather()


def at(seen, curve, speeds):
    return np.interp(speeds, seen.speeds, curve)


def test_there_are_three_successes_and_two_crashes_that_report_nothing(seen):
    assert list(seen.crashed) == [False, False, False, True, True]
    np.testing.assert_array_equal(np.isnan(seen.costs), seen.crashed)
    np.testing.assert_array_equal(np.isnan(seen.currents), seen.crashed)


def test_readings_are_the_machines_and_labels_say_whether_it_tripped(seen):
    truth = 30.0 / seen.tried + 0.14 * seen.tried**2
    np.testing.assert_array_equal(seen.crashed, truth > 14.0)
    np.testing.assert_allclose(seen.currents[:3], truth[:3], atol=0.05)


def test_the_models_see_the_readings_alone(seen):
    X, ok = (seen.tried[:, None] - 2.0) / 10.0, ~seen.crashed
    grid = (seen.speeds[:, None] - 2.0) / 10.0
    mean, var = GP.fit(X[ok], seen.costs[ok], noise_std=0.02).predict(grid)
    np.testing.assert_allclose(seen.cost_mean, mean)
    np.testing.assert_allclose(seen.cost_std, np.sqrt(var))
    model = GPCR.fit(X, seen.currents, seen.crashed, noise_std=0.2)
    np.testing.assert_allclose(seen.current_mean, model.predict(grid)[0])
    assert seen.threshold == pytest.approx(model.threshold)
    assert seen.threshold_interval == pytest.approx(model.threshold_interval)


def test_the_acquisition_is_expected_improvement_times_p_safe(seen):
    z = (np.nanmin(seen.costs) - seen.cost_mean) / seen.cost_std
    improvement = seen.cost_std * (z * norm.cdf(z) + norm.pdf(z))
    tall = improvement > 1e-6  # the formula written out loses all digits below
    np.testing.assert_allclose(seen.acquisition[tall], (improvement * seen.p_safe)[tall], rtol=1e-6)
    np.testing.assert_allclose(seen.expected_improvement[tall], improvement[tall], rtol=1e-6)


def test_p_safe_is_high_at_successes_and_low_at_crashes(seen):
    p = at(seen, seen.p_safe, seen.tried)
    assert np.all(p[~seen.crashed] > 0.9)
    assert np.all(p[seen.crashed] < 0.2)
    assert np.all((seen.p_safe >= 0.0) & (seen.p_safe <= 1.0))


def test_crashes_push_the_current_above_the_threshold_and_successes_keep_it_at_the_readings(seen):
    current = at(seen, seen.current_mean, seen.tried)
    assert np.all(current[seen.crashed] > seen.threshold)
    np.testing.assert_allclose(current[:3], seen.currents[:3], atol=0.3)


def test_the_threshold_lies_just_above_the_highest_success_and_its_interval_holds_the_truth(seen):
    highest = np.nanmax(seen.currents)
    low, high = seen.threshold_interval
    assert low <= seen.threshold <= high
    assert highest - 0.4 < seen.threshold < highest + 2.0
    assert low < illustration.TRIP_LEVEL < high


def test_the_next_trial_is_the_maximiser_and_teaches(seen):
    best = float(np.nanmin(seen.costs))
    there = seen.next
    assert seen.acquisition[there] == seen.acquisition.max()
    assert 0 < there < len(seen.speeds) - 1
    assert seen.p_safe[there] > 0.6
    # Without P(safe) the next trial would have crashed; with it, it succeeds and is the best so far.
    assert seen.true_current[seen.greedy] > illustration.TRIP_LEVEL > seen.true_current[there]
    assert seen.true_cost[there] < best


def test_what_is_gathered_cannot_be_changed(seen):
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen.threshold = 0.0


def test_the_figure_has_the_papers_panels_and_marks_the_next_trial_in_each(seen):
    figure = plots.draw_illustration(seen)
    panels = figure.axes
    assert [axes.get_title(loc="left") for axes in panels] == ["Cost", "Constraint", "P(safe)", "Acquisition"]
    for axes in panels:
        assert any(np.all(np.asarray(line.get_xdata()) == seen.speeds[seen.next]) for line in axes.lines)


def test_the_command_writes_a_png_and_prints_its_path_and_a_summary(tmp_path, capsys, seen):
    folder = tmp_path / "not" / "yet there"
    assert main(["illustrate", "--output", str(folder)]) == 0
    printed = capsys.readouterr()
    path = folder / "illustration.png"
    assert printed.err == ""
    assert printed.out.splitlines()[-1].endswith(str(path))
    assert path.read_bytes().startswith(b"\x89PNG\r\n")
    assert f"{seen.threshold:.1f} A" in printed.out
    assert f"{1000 * seen.speeds[seen.next]:.0f} rpm" in printed.out
    assert f"{seen.costs[seen.best]:.2f} EUR" in printed.out


def test_the_figure_goes_to_a_folder_of_its_own_unless_told_otherwise(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["illustrate"]) == 0
    assert (tmp_path / "crashbo-illustration" / "illustration.png").is_file()


def test_an_output_that_cannot_be_a_directory_gets_one_sentence(tmp_path, capsys):
    occupied = tmp_path / "occupied"
    occupied.write_text("a file")
    assert main(["illustrate", "--output", str(occupied)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("--output must be a directory that can be written to; got ")
    assert str(occupied) in printed.err
    assert len(printed.err.splitlines()) == 1


def test_without_matplotlib_the_command_names_the_extra(tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None\nfrom crashbo.app.cli import main; sys.exit(main(['illustrate']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "pip install 'crashbo[plot]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_loads_neither_pyplot_nor_before_it_draws_matplotlib():
    code = "import sys, crashbo.app.cli as c\nassert 'matplotlib' not in sys.modules\nimport crashbo.app.plots\n"
    code += "assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_version_is_the_packages(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"crashbo {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["dance"], ["illustrate", "--colour", "red"]])
def test_a_command_line_that_is_not_understood_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert "usage: crashbo" in capsys.readouterr().err
