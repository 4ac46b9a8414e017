"""crashbo's figures in optuna-dashboard: what they show, and that a real browser shows them."""

import shutil
import subprocess
import threading
from wsgiref.simple_server import WSGIRequestHandler, make_server

import numpy as np
import optuna
import optuna_dashboard
import pytest
from studies import TRIPS_AT, jumps

import crashbo
from crashbo.integrations.optuna import CrashSampler, dashboard, insight, records

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def study():
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    return jumps(16, storage=optuna.storages.InMemoryStorage())


def test_the_levels_are_the_learnt_ones(study):
    (level,) = dashboard.levels(insight(study))
    assert level.name == "current"
    low, high = level.interval
    assert low <= TRIPS_AT <= high
    assert len(level.trials) == sum(t.state == "success" for t in records(study))


def test_the_map_of_p_safe_is_the_insights(study):
    seen = insight(study)
    safe = dashboard.safe_map(seen)
    assert set(safe.names) == {"knee", "hip"}
    i, j = 3, 20
    params = {safe.names[0]: safe.values[0][i], safe.names[1]: safe.values[1][j]}
    assert safe.p_safe[j, i] == pytest.approx(seen.p_safe(params))
    assert np.ptp(safe.p_safe) > 0.9
    assert safe.title == "P(safe)"


def test_of_many_parameters_the_map_shows_those_that_matter():
    study = optuna.create_study(sampler=CrashSampler(seed=0, strategy="random"))  # sees crashes enough to tell

    def objective(trial):
        x = [trial.suggest_float(name, 0, 1) for name in "abc"]
        if x[1] > 0.6:
            raise crashbo.Crash
        return sum(x)

    study.optimize(objective, n_trials=25, catch=(crashbo.Crash,))
    safe = dashboard.safe_map(insight(study))
    assert safe.names[0] == "b"
    assert "the other parameters" in safe.title


def test_blame_and_calibration_count_the_crashes(study):
    crashes = [t.number for t in records(study) if t.state == "crash"]
    assert dashboard.blames(insight(study)).numbers == crashes
    known = dashboard.calibration(insight(study))
    assert known.crashed[-1] == len(crashes)
    assert known.predicted == sorted(known.predicted)


def test_one_parameter_with_choices_is_drawn_as_a_curve():
    study = optuna.create_study(sampler=CrashSampler(seed=0))

    def objective(trial):
        if trial.suggest_categorical("kind", ["a", None, True]) == "a":
            raise crashbo.Crash
        return 1.0

    study.optimize(objective, n_trials=6, catch=(crashbo.Crash,))
    safe = dashboard.safe_map(insight(study))
    assert (safe.names, safe.values[0]) == (("kind",), ["a", None, True])
    assert list(dashboard.draw_safe_map(safe).data[0].x) == ["a", "None", "True"]
    assert set(dashboard.publish(study)) >= {"crashbo-p-safe", "crashbo-blame"}


def test_a_note_of_somebody_else_is_left_alone(study):
    dashboard.publish(study)
    assert "crashes above" in optuna_dashboard.get_note(study)
    dashboard.publish(study)  # ours is renewed
    other = optuna.create_study()
    other.add_trials(study.trials)
    optuna_dashboard.save_note(other, "mine")
    dashboard.publish(other)
    assert optuna_dashboard.get_note(other) == "mine"


def test_the_callback_publishes_every_so_often():
    study = optuna.create_study(sampler=CrashSampler(seed=0))
    callback = dashboard.publisher(every=3)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2, callbacks=[callback])
    assert not any("plot_data" in key for key in study._storage.get_study_system_attrs(study._study_id))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1, callbacks=[callback])
    assert any("crashbo-p-safe" in key for key in study._storage.get_study_system_attrs(study._study_id))


class _Silent(WSGIRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def address(study):
    """The dashboard of the study, served on this machine."""
    server = make_server("127.0.0.1", 0, optuna_dashboard.wsgi(study._storage), handler_class=_Silent)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/dashboard"
    server.shutdown()
    server.server_close()


def page(url, folder, *expected):
    """The page as the browser has it once its scripts have run; again, with more time, if something is missing."""
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    command += [f"--user-data-dir={folder}", "--window-size=1400,4000", "--dump-dom", url]
    for budget in (20_000, 60_000, 120_000):
        timed = [*command, f"--virtual-time-budget={budget}"]
        shown = subprocess.run(timed, capture_output=True, text=True, timeout=120, check=True).stdout
        if all(words in shown for words in expected):
            break
    return shown


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here: apt install chromium")
@pytest.mark.filterwarnings("default")  # the dashboard's own
def test_a_browser_shows_our_figures_reasons_and_measurements(study, address, tmp_path):
    names = dashboard.publish(study)
    told = records(study)
    crash, good = (next(t for t in told if t.state == state) for state in ("crash", "success"))
    value = str(good.measured["current"])[:6]
    for path, expected in {
        "": [*names, "learnt crash threshold", "Blame: P(constraint violated", "announced by"],
        "/note": ["crashes above"],
        f"/trials?numbers={crash.number}": ["crashbo:reason", "boards tripped"],
        f"/trials?numbers={good.number}": ["measured:current", value],
    }.items():
        shown = page(f"{address}/studies/{study._study_id}{path}", tmp_path / "profile", *expected)
        assert [words for words in expected if words not in shown] == []


def test_stops_are_drawn_and_counted():
    study = optuna.create_study(sampler=CrashSampler(seed=0, constraints=["current"]))

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        if x > 0.6:
            raise crashbo.Stopped({"current": 60.0})
        crashbo.integrations.optuna.measure(trial, current=100.0 * x)
        return -x

    study.optimize(objective, n_trials=8, catch=(crashbo.Stopped,))
    seen = insight(study)
    stops = sum(t.state == "stopped" for t in seen.trials)
    assert stops > 0
    assert f"{stops} stopped before they could crash" in dashboard.note(seen)
    for name in ("crashbo-threshold-0", "crashbo-p-safe"):
        (drawn,) = (trace for trace in dashboard.figures(seen)[name].data if trace.name == "stopped")
        assert len(drawn.x) == stops
