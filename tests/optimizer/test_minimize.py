"""minimize: experiments of every kind, workers, timeouts, stop rules and progress."""

import io
import multiprocessing
import signal
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest
from machines import SPACE, FirstWaitsForThree, Together, cost_of, press

import crashbo
from crashbo.optimizer.progress import TerminalProgress


def quick(experiment, **kwargs):
    """A study whose proposals cost nothing."""
    return crashbo.minimize(experiment, SPACE, **{"trials": 6, "strategy": "random", "progress": False, **kwargs})


def counted(experiment):
    """The experiment with the number of its calls before the params."""
    calls = iter(range(1000))
    return lambda params: experiment(next(calls), params)


def states(result):
    return [t.state for t in result.trials]


def test_a_plain_number_is_a_cost():
    result = crashbo.minimize(cost_of, SPACE, trials=12, progress=False)
    assert states(result) == ["success"] * 12
    assert result.best.cost == pytest.approx(cost_of(result.best.params))
    assert result.best.cost < 0.02
    assert result.ended == "12 trials"


def test_outcomes_and_crashes_are_told_with_all_they_carry():
    result = crashbo.minimize(press, SPACE, constraints=["load"], trials=14, progress=False)
    crash = next(t for t in result.trials if t.state == "crash")
    assert (crash.reason, crash.blame) == ("fuse", ("load",))
    assert crash.measured["load"] > 1.2
    assert result.best.measured["load"] <= 1.2
    assert result.thresholds["load"].value == pytest.approx(1.2, abs=0.3)
    assert result.recommend(0.2).p_safe > 0.7
    assert 0.5 < result.blame(crash)["load"] <= 1.0
    assert result.p_safe([{"x": 0.1, "y": 0.1}]).shape == (1,)


def test_maximize_looks_for_the_largest():
    result = crashbo.minimize(lambda p: -cost_of(p), SPACE, trials=12, direction="maximize", progress=False)
    assert result.best.cost == max(t.cost for t in result.trials)
    assert result.best.cost > -0.02


def test_a_void_is_kept_but_not_counted():
    def experiment(call, params):
        if call in (1, 2, 4):
            raise crashbo.Void("no power")
        return 1.0

    result = quick(counted(experiment))
    assert states(result) == ["success", "void", "void", "success", "void", *["success"] * 4]
    assert result.trials[1].reason == "no power"


@pytest.mark.filterwarnings("ignore:.* trials were void:RuntimeWarning")
def test_an_experiment_that_only_voids_is_given_up():
    def experiment(params):
        raise crashbo.Void("no power")

    result = quick(experiment)
    assert "void" in result.ended
    assert result.best is None
    assert len(result.trials) < 100


def test_the_experiment_may_do_as_it_likes_with_its_params():
    def experiment(params):
        params.clear()
        return 1.0

    assert all(set(t.params) == {"x", "y"} for t in quick(experiment).trials)


@pytest.mark.parametrize("answer", [None, "1.0", float("nan"), [1.0], True])
def test_an_answer_that_is_no_outcome_is_the_user_s_bug_and_said_so(answer):
    with pytest.raises(TypeError, match=r"^experiment must return an Outcome or a finite cost, .+; got .+\. A trial"):
        quick(lambda params: answer)


def test_with_the_same_seed_minimize_does_what_ask_and_tell_do():
    result = crashbo.minimize(cost_of, SPACE, trials=7, seed=3, progress=False)
    optimizer = crashbo.Optimizer(SPACE, seed=3)
    for told in result.trials:
        trial = optimizer.ask()
        assert trial.params == pytest.approx(told.params, abs=1e-9)
        optimizer.tell(trial, cost=cost_of(trial.params))


def test_minimize_announces_its_length_to_a_budget():
    result = quick(cost_of, strategy="eicc", risk=crashbo.Budget(2))
    assert result.optimizer.risk == crashbo.Budget(2, 6)


def test_ctrl_c_returns_what_there_is():
    def experiment(call, params):
        if call == 3:
            raise KeyboardInterrupt
        return float(call)

    result = quick(counted(experiment))
    assert result.ended == "interrupted"
    assert states(result) == ["success"] * 3 + ["pending"]
    assert result.best.cost == 0.0


@pytest.mark.usefixtures("python_s_own_interrupt")
def test_ctrl_c_while_workers_are_busy_returns_what_there_is():
    over = threading.Event()

    def experiment(call, params):
        if call == 4:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        if call >= 3:
            over.wait(30)
        return 1.0

    try:
        result = quick(counted(experiment), n_parallel=2)
    finally:
        over.set()
    assert result.ended == "interrupted"
    assert states(result).count("success") == 3


def test_a_result_can_be_confirmed():
    result = quick(lambda p: cost_of(p))
    report = result.confirm(lambda p: 2.0, n=3)
    assert (report.mean, report.std, report.crashes, report.done) == (2.0, 0.0, 0, True)
    assert report.params == min(result.trials[:6], key=lambda t: t.cost).params


@pytest.mark.filterwarnings("ignore:.* trials were void:RuntimeWarning")
def test_a_repeat_that_was_void_is_made_again_but_not_for_ever():
    def experiment(params):
        if next(faults):
            raise crashbo.Void("unplugged")
        return 2.0

    result = quick(lambda p: cost_of(p))
    faults = iter([True, False, True, False, False])
    assert result.confirm(experiment, n=3).done
    faults = iter([True] * 100)
    report = result.confirm(experiment, n=3)
    assert (report.done, len(report.trials)) == (False, 6)


def test_a_free_thread_gets_a_new_trial_at_once(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        result = quick(FirstWaitsForThree(tmp_path), executor=pool)
    assert states(result) == ["success"] * 6
    assert result.trials[0].cost == 99.0 or result.trials[1].cost == 99.0


def test_a_free_process_gets_a_new_trial_at_once(tmp_path):
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        result = quick(FirstWaitsForThree(tmp_path), executor=pool)
        assert states(result) == ["success"] * 6
        assert any(t.cost == 99.0 for t in result.trials)
        crashes = quick(press, constraints=["load"], executor=pool, trials=8, seed=1)
    crash = next(t for t in crashes.trials if t.state == "crash")
    assert (crash.reason, crash.blame) == ("fuse", ("load",))
    assert crash.measured["load"] > 1.2


def test_as_many_run_at_a_time_as_was_asked_for_and_no_more():
    meet, lock = threading.Barrier(3, timeout=30), threading.Lock()
    running, most = set(), []

    def experiment(call, params):
        with lock:
            running.add(call)
            most.append(len(running))
        if call < 3:
            meet.wait()  # passed only if three run together
        with lock:
            running.discard(call)
        return 1.0

    result = quick(counted(experiment), n_parallel=3, trials=9)
    assert states(result) == ["success"] * 9
    assert max(most) == 3


def test_workers_get_different_settings_from_the_search(tmp_path):
    with ThreadPoolExecutor(3) as pool:
        result = crashbo.minimize(cost_of, SPACE, trials=10, executor=pool, progress=False)
    assert len({tuple(t.params.values()) for t in result.trials}) == 10


def test_parallel_trials_are_counted_before_they_end():
    result = quick(cost_of, executor=Together(), n_parallel=4, trials=6)
    assert states(result) == ["success"] * 6


@pytest.mark.parametrize("on_timeout", ["crash", "void"])
def test_a_trial_without_an_answer_is_told_as_the_user_chooses(on_timeout):
    over = threading.Event()

    def experiment(call, params):
        if call == 1:
            over.wait(30)
        return 1.0

    try:
        result = quick(counted(experiment), trials=4, timeout=0.3, on_timeout=on_timeout)
    finally:
        over.set()
    assert result.trials[1].state == on_timeout
    assert result.trials[1].reason == "no answer within 0.3 s"
    assert states(result).count("success") == (3 if on_timeout == "crash" else 4)


def test_a_trial_that_never_began_is_no_crash():
    over = threading.Event()

    def experiment(call, params):
        if call == 0:
            over.wait(30)
        return 1.0

    with ThreadPoolExecutor(1) as pool:  # its only worker hangs in the first trial
        try:
            result = quick(counted(experiment), trials=3, timeout=0.2, executor=pool, stop=[five_trials])
        finally:
            over.set()
    assert result.trials[0].state == "crash"
    assert "crash" not in states(result)[1:]


def five_trials(study):
    return "five trials" if len(study.trials) >= 5 else None


def test_any_other_exception_is_raised_to_the_user():
    def experiment(call, params):
        if call == 2:
            raise ZeroDivisionError("my bug")
        return 1.0

    for parallel in ({}, {"n_parallel": 2}):
        with pytest.raises(ZeroDivisionError, match="my bug"):
            quick(counted(experiment), **parallel)


@pytest.mark.parametrize(
    ("words", "kwargs"),
    [
        (r"trials must be a whole number, at least 1; got 0\. ", {"trials": 0}),
        (r"trials must be a whole number, at least 1; got 2\.5\. ", {"trials": 2.5}),
        (r"n_parallel must be a whole number, at least 1; got 0\. ", {"n_parallel": 0}),
        (r"timeout must be a positive number of seconds, or None; got -1\. ", {"timeout": -1}),
        (r"on_timeout must be .+; got 'repeat'\. ", {"on_timeout": "repeat"}),
        (r"on_lost must be .+; got 'keep'\. ", {"on_lost": "keep"}),
        (r"on_timeout must be .+; got None\. ", {"on_timeout": None}),
        (r"on_lost must be .+; got None\. ", {"on_lost": None}),
    ],
)
def test_a_wrong_argument_is_refused_in_one_sentence(words, kwargs):
    with pytest.raises(ValueError, match=rf"^{words}[^\n]*$"):
        quick(cost_of, **kwargs)


def test_a_study_stops_after_so_many_crashes():
    def experiment(call, params):
        if call % 2:
            raise crashbo.Crash("fuse")
        return 1.0

    result = quick(counted(experiment), trials=50, stop=[crashbo.stopping.MaxCrashes(3)])
    assert states(result).count("crash") == 3
    assert len(result.trials) == 6
    assert result.ended == "3 crashes"


def test_a_study_stops_when_its_seconds_are_over():
    assert quick(cost_of, stop=[crashbo.stopping.MaxSeconds(0.0)]).trials == []
    result = quick(cost_of, stop=[crashbo.stopping.MaxSeconds(0.0)])
    assert result.ended == "0 s have passed"
    assert len(quick(cost_of, stop=[crashbo.stopping.MaxSeconds(1e6)]).trials) == 6


def test_a_study_stops_when_no_gain_is_left():
    rule = crashbo.stopping.NoGain
    result = quick(cost_of, trials=12, stop=[rule(share=1e12, after=5)])
    assert len(result.trials) == 5
    assert result.ended == "no expected gain is left"
    assert len(quick(cost_of, trials=8, stop=[rule(share=0.0, after=5)]).trials) == 8


def test_gain_runs_out_once_the_optimum_is_found():
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    gains = []
    for _ in range(14):
        trial = optimizer.ask()
        optimizer.tell(trial, cost=(trial.params["x"] - 0.4) ** 2)
        gains.append(optimizer.gain_left())
    assert gains[-1] < 0.1 * max(gains)


def test_a_rule_of_one_s_own_ends_a_study():
    result = quick(cost_of, trials=50, stop=[five_trials])
    assert (len(result.trials), result.ended) == (5, "five trials")


def test_a_rule_lets_what_is_running_end():
    result = quick(cost_of, trials=50, n_parallel=4, stop=[five_trials])
    assert "pending" not in states(result)


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_on_shows_trial_best_crashes_and_thresholds(terminal, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setenv("COLUMNS", "200")
    crashbo.minimize(press, SPACE, constraints=["load"], trials=5, strategy="random", seed=1, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    last = shown.err.rstrip("\n").split("\r" if terminal else "\n")[-1]
    assert "trial 5/5" in last
    assert "best " in last
    assert "crashes " in last
    assert "load crashes at " in last
    assert shown.err.endswith("\n")
    assert (shown.err.count("\r"), shown.err.count("\n")) == ((5, 1) if terminal else (0, 5))


@pytest.mark.parametrize("progress", [False, None])
def test_progress_is_silent_when_off_or_not_on_a_terminal(progress, capsys):
    quick(cost_of, progress=progress)
    assert tuple(capsys.readouterr()) == ("", "")


def test_progress_of_one_s_own_hears_of_every_told_trial():
    heard = []
    quick(cost_of, progress=lambda study, trial, total: heard.append((trial.number, trial.state, total)))
    assert heard == [(i, "success", 6) for i in range(6)]


def test_a_shorter_line_leaves_nothing_of_a_longer_one():
    stream = io.StringIO()
    shown = TerminalProgress(stream)
    optimizer = crashbo.Optimizer(SPACE)
    optimizer.tell({"x": 0.123, "y": 0.5}, cost=123456.0)
    shown(optimizer, optimizer.trials[0], 10)
    optimizer.tell(0, cost=1.0, replace=True)
    shown(optimizer, optimizer.trials[0], 10)
    first, second = stream.getvalue().split("\r")[1:]
    assert len(second) >= len(first.rstrip())
