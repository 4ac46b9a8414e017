"""What the reliability and blame plots show, before they are drawn."""

import numpy as np
import pytest

import crashbo
from crashbo.app import blame, plots, reliability

SPACE = {"x": (0.0, 1.0)}


def test_honest_predictions_lie_on_the_diagonal_and_boasts_above_it():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    honest = reliability.gather(p, rng.random(20_000) < p)
    boast = reliability.gather(p, rng.random(20_000) < 0.8 * p)
    assert honest.counts.sum() == 20_000
    assert honest.worst() < 0.04
    assert np.all(np.abs(honest.gaps) < 4.0 * honest.std)
    assert boast.worst() == pytest.approx(boast.gaps[-1])
    assert boast.gaps[-1] == pytest.approx(0.19, abs=0.03)


def test_bins_hold_their_lower_edge_and_empty_ones_are_nan():
    found = reliability.gather([0.0, 0.1, 0.95, 1.0], [False, True, True, True])
    assert found.counts.tolist() == [1, 1, 0, 0, 0, 0, 0, 0, 0, 2]
    assert np.isnan(found.observed[5])
    assert found.observed[9] == 1.0
    assert found.worst(least=100) == 0.0
    assert "0.9 to 1.0" in reliability.table([found])


@pytest.mark.parametrize("p", [[0.5, 1.2], [0.5], [np.nan, 0.5]])
def test_what_is_no_probability_is_refused(p):
    with pytest.raises(ValueError, match=r"^p_safe must be probabilities, one an outcome; got .+\. "):
        reliability.gather(p, [True, False])


def study():
    optimizer = crashbo.Optimizer(SPACE, ["load", crashbo.Unmeasured("other")], seed=0)
    for x in (0.1, 0.4, 0.6):
        optimizer.tell({"x": x}, cost=-x, measured={"load": x})
    optimizer.tell({"x": 0.95}, crash=True, blame="load")
    optimizer.tell({"x": 0.9}, crash=True)
    return optimizer


def test_the_blame_of_every_crash_is_gathered_and_drawn(tmp_path):
    optimizer = study()
    seen = blame.gather(optimizer)
    assert (seen.numbers, seen.constraints) == ((3, 4), ("load", "other"))
    assert seen.told.tolist() == [[True, False], [False, False]]
    assert seen.p[0, 0] == 1.0
    assert seen.p[1].tolist() == list(optimizer.blame(4).values())
    axes = plots.draw_blame(seen).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["trial 3", "trial 4"]
    drawn = [line.get_xdata().tolist() for line in axes.lines if line.get_label() in seen.constraints]
    assert drawn == [seen.p[:, 0].tolist(), seen.p[:, 1].tolist()]
    assert blame.gather(crashbo.Optimizer(SPACE, ["load"])).p.shape == (0, 1)


def test_a_study_s_own_reliability_is_drawn(tmp_path):
    trials = [crashbo.Trial(i, {}, "success" if i % 4 else "crash", p_safe=0.75) for i in range(8)]
    trials.append(crashbo.Trial(8, {}, "success", p_safe=0.2, origin="told"))
    found = reliability.of_trials(trials)
    assert found.counts.sum() == 8
    assert found.observed[7] == 0.75
    figure = plots.draw_reliability([found, found])
    assert len(figure.axes) == 4
    plots.save(figure, tmp_path / "reliability.png")
    assert (tmp_path / "reliability.png").stat().st_size > 5_000


def test_a_stop_is_no_success():
    trials = [crashbo.Trial(0, {"x": 0.1}, "stopped", 0.9), crashbo.Trial(1, {"x": 0.1}, "success", 0.9, 1.0)]
    found = reliability.of_trials([*trials, crashbo.Trial(2, {"x": 0.1}, "void", 0.9)])
    assert found.counts.sum() == 2
    assert found.observed[9] == 0.5
