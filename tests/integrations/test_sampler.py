"""CrashSampler: what it proposes, from what the storage holds."""

import copy
import math
import pickle
from dataclasses import replace

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from studies import TRIPS_AT, current_of, height_of, jump, jumps, line

import crashbo
from crashbo.integrations.optuna import CrashSampler, ask, declare, insight, measure, records, tell
from crashbo.integrations.optuna.proposer import Proposer
from crashbo.integrations.optuna.snapshot import Snapshot
from crashbo.integrations.optuna.spaces import Axes, common
from crashbo.integrations.optuna.stored import Reading

SQUARE = {"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)}


def snapshot_of(study):
    return Snapshot.of(Reading.of(study), Axes(SQUARE), CrashSampler().settings(study))


def crashes(study):
    return sum(t.state == "crash" for t in records(study))


def test_it_finds_the_best_safe_jump_and_the_threshold():
    study = jumps(25)
    knee = np.linspace(0, 1, 401)[:, None]
    hip = np.linspace(0, 1, 401)[None, :]
    best = np.where(current_of(knee, hip) <= TRIPS_AT, height_of(knee, hip), -np.inf).max()
    assert study.best_value > best - 0.01
    threshold = insight(study).thresholds["current"]
    low, high = threshold.interval
    assert low <= TRIPS_AT <= high
    assert crashes(study) <= 12  # the best lies on the boundary


def test_minimising_the_negative_is_the_same():
    study = optuna.create_study(sampler=CrashSampler(seed=0))
    study.optimize(lambda trial: -jump(trial), n_trials=12, catch=(crashbo.Crash,))
    mirrored = jumps(12)
    for a, b in zip(study.trials, mirrored.trials, strict=True):
        assert a.params == pytest.approx(b.params, abs=1e-3)


def test_a_fresh_sampler_for_every_trial_loses_nothing_but_time():
    study = jumps(9)
    proposals = []
    for sampler in (CrashSampler(seed=5), CrashSampler(seed=5), copy.deepcopy(study.sampler), pickled(study.sampler)):
        twin = optuna.create_study(direction="maximize", sampler=sampler)
        twin.add_trials(study.trials)
        proposals.append(twin.ask(common(study.trials)).params)
    assert proposals[0] == proposals[1]  # nothing but the storage and the seed decides
    assert proposals[2] == proposals[3] != proposals[0]


def pickled(sampler):
    return pickle.loads(pickle.dumps(sampler))


def test_workers_agree_on_a_seed_that_differs_between_studies():
    def first_two(study):
        return [study.ask(SQUARE).params for _ in range(2)]

    assert first_two(optuna.create_study(sampler=CrashSampler())) != first_two(
        optuna.create_study(sampler=CrashSampler())
    )
    study = optuna.create_study(sampler=CrashSampler())
    study.ask(SQUARE)
    study.sampler = CrashSampler()
    snapshot = snapshot_of(study)
    assert len(snapshot.trials) == 1


def test_pending_trials_of_others_are_kept_away_from():
    study = line([0.05, 0.3, 0.55, 0.9])
    asked = [study.ask({"x": FloatDistribution(0, 1)}).params["x"] for _ in range(6)]
    gaps = np.diff(np.sort([*asked, 0.05, 0.3, 0.55, 0.9]))
    assert gaps.min() > 1e-6


def test_of_two_workers_that_choose_the_same_point_at_once_one_gives_way(monkeypatch):
    study = line([0.05, 0.3, 0.55, 0.9])
    rival, asks = study.ask(), []
    ask = Snapshot.ask

    def and_the_rival_is_faster(snapshot, fixed, seed, memory):
        answer = ask(snapshot, fixed, seed, memory)
        if not asks:  # the rival has chosen the very same point while we were thinking
            rival.storage.set_trial_system_attr(rival._trial_id, "crashbo:proposal", {"params": answer[0].params})
        asks.append(answer[0].params["x"])
        return answer

    monkeypatch.setattr(Snapshot, "ask", and_the_rival_is_faster)
    mine = study.ask({"x": FloatDistribution(0, 1)}).params["x"]
    assert len(asks) == 2
    assert mine == asks[1]
    assert abs(asks[1] - asks[0]) > 0.01


@pytest.mark.parametrize("spent", [False, True])
def test_of_two_workers_that_repeat_a_trial_at_once_one_chooses_again_if_there_is_a_choice(monkeypatch, spent):
    study = line([0.05, 0.3, 0.55, 0.9])
    rival, asks = study.ask(), []
    ask, best = Snapshot.ask, 0.3

    def and_the_rival_is_faster(snapshot, fixed, seed, memory):
        chosen, memory = ask(snapshot, fixed, seed, memory)
        if spent or not asks:  # for its noise, or because nothing else may be tried
            chosen = replace(chosen, params={"x": best})
        if not asks:
            rival.storage.set_trial_system_attr(rival._trial_id, "crashbo:proposal", {"params": {"x": best}})
        asks.append(chosen.params["x"])
        return chosen, memory

    monkeypatch.setattr(Snapshot, "ask", and_the_rival_is_faster)
    mine = study.ask({"x": FloatDistribution(0, 1)}).params["x"]
    assert len(asks) == 2
    assert (mine == best) is spent


def test_a_study_that_only_crashed_is_learnt_from():
    study = optuna.create_study(sampler=CrashSampler(seed=2))

    def only_a_corner_is_safe(trial):
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        if max(x, y) > 0.25:
            raise crashbo.Crash
        return x + y

    study.optimize(only_a_corner_is_safe, n_trials=40, catch=(crashbo.Crash,))
    told = records(study)
    first = next((t.number for t in told if t.state == "success"), 40)
    assert all(t.origin == "search" for t in told[4:])  # though nothing has succeeded
    assert first < 40
    early = np.array([[t.params["x"], t.params["y"]] for t in told[:first]])
    gaps = np.abs(early[:, None] - early[None]).max(axis=2) + np.eye(first)
    assert gaps.min() > 0.02  # no crash is repeated


def test_enqueued_trials_come_first_and_partly_enqueued_ones_are_completed():
    study = jumps(6)
    study.enqueue_trial({"knee": 0.123, "hip": 0.456})
    study.enqueue_trial({"knee": 0.3})
    study.optimize(jump, n_trials=2, catch=(crashbo.Crash,))
    told = records(study)[-2:]
    assert told[0].params == {"knee": 0.123, "hip": 0.456}
    assert told[0].origin == "start"
    assert told[1].params["knee"] == 0.3
    assert told[1].origin == "search"
    assert told[1].p_safe is not None


def test_an_enqueued_value_out_of_range_is_optunas_matter_not_an_error():
    study = jumps(6)
    study.enqueue_trial({"knee": 1.5})
    with pytest.warns(UserWarning, match="out of range"):
        study.optimize(jump, n_trials=1, catch=(crashbo.Crash,))
    study.optimize(jump, n_trials=1, catch=(crashbo.Crash,))
    assert study.trials[6].params["knee"] == 1.5


@pytest.mark.parametrize(
    "wish",
    [{"y": 1.5}, {"y": 9.0, "kind": "b"}, {"kind": "a", "speed": 1.5}, {"kind": "b", "n": 9}, {"y": math.inf}],
)
def test_an_enqueued_value_out_of_range_is_no_error_where_only_some_trials_have_a_parameter(wish):
    def objective(trial):
        y = trial.suggest_float("y", 0.1, 1, log=True)
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            return y + trial.suggest_float("speed", 0, 1) * trial.suggest_float("load", 0, 1)
        return y + trial.suggest_int("n", 1, 4) * trial.suggest_float("m", 0, 1)

    study = optuna.create_study(sampler=CrashSampler(seed=1))
    for kind in "abab":
        study.enqueue_trial({"kind": kind})
    study.optimize(objective, n_trials=4)
    study.enqueue_trial(wish)
    with pytest.warns(UserWarning, match="out of range"):
        study.optimize(objective, n_trials=1)
    study.optimize(objective, n_trials=2)
    assert wish.items() <= study.trials[4].params.items()
    assert len(records(study)) == 7


def test_a_parameter_of_some_trials_is_chosen_by_those_that_have_it():
    def objective(trial):
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            speed = trial.suggest_float("speed", 0, 1)
            if speed > 0.4:
                raise crashbo.Crash("too fast")
            return 1 - speed
        return 0.7 + trial.suggest_float("load", 0, 1) * trial.suggest_int("n", 1, 4)

    study = optuna.create_study(sampler=CrashSampler(seed=1))
    for _ in range(12):
        study.enqueue_trial({"kind": "a"})
        study.enqueue_trial({"kind": "b"})
    study.optimize(objective, n_trials=26, catch=(crashbo.Crash,))
    fast = [t for t in records(study)[12:] if t.params.get("kind") == "a"]
    assert np.median([t.params["speed"] for t in fast]) < 0.45  # evenly drawn ones have a median of a half
    assert study.best_value < 0.62
    late = [t.params["load"] * t.params["n"] for t in records(study)[12:] if t.params.get("kind") == "b"]
    assert np.median(late) < 0.5  # evenly drawn ones have a median of one


def test_a_crash_before_all_parameters_were_asked_for_does_not_split_the_space():
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        if x > 0.7:
            raise crashbo.Crash
        return x + trial.suggest_float("y", 0, 1)

    study = optuna.create_study(sampler=CrashSampler(seed=3))
    study.optimize(objective, n_trials=15, catch=(crashbo.Crash,))
    assert list(common(study.trials)) == ["x", "y"]
    late = [t for t in records(study) if t.state == "crash" and t.number > 1]
    assert all("y" in t.params for t in late)  # what it was going to ask for is known from its proposal


@pytest.mark.parametrize(
    "distribution",
    [
        FloatDistribution(-2.0, 3.0),
        FloatDistribution(1e-5, 10.0, log=True),
        FloatDistribution(-1.0, 1.1, step=0.3),
        IntDistribution(-3, 5),
        IntDistribution(1, 1000, log=True),
        IntDistribution(0, 98, step=7),
        CategoricalDistribution(["a", None, True, 1, 2.5]),
    ],
)
def test_every_value_of_a_distribution_finds_its_way_in_and_back(distribution):
    axes = Axes({"p": distribution})
    rng = np.random.default_rng(0)
    for u in rng.random((50, axes.space.dimension)):
        value = axes.outward(axes.space.decode(axes.space.uniform(u[None])[0]))["p"]
        assert distribution._contains(distribution.to_internal_repr(value))
        assert axes.place({"p": value})
        inward = axes.space.check(axes.inward({"p": value}))
        assert axes.outward(axes.space.decode(axes.space.encode(inward)))["p"] == (
            pytest.approx(value, rel=1e-12) if isinstance(value, float) else value
        )


def test_the_ends_of_a_stepped_range_can_be_reached():
    axes = Axes({"p": FloatDistribution(0.0, 0.9, step=0.3)})
    assert [axes.outward({"p": i})["p"] for i in range(4)] == pytest.approx([0.0, 0.3, 0.6, 0.9])
    assert (axes.space.parameters["p"].low, axes.space.parameters["p"].high) == (0, 3)


def test_a_small_discrete_space_is_tried_without_repeats_while_there_are_others():
    study = optuna.create_study(sampler=CrashSampler(seed=0))

    def objective(trial):
        n, kind = trial.suggest_int("n", 1, 3), trial.suggest_categorical("kind", ["a", "b"])
        if n == 3:
            raise crashbo.Crash
        return n + (kind == "b")

    study.optimize(objective, n_trials=6, catch=(crashbo.Crash,))
    assert len({tuple(sorted(t.params.items())) for t in study.trials}) == 6


def nowhere_again(voids):
    """Whether none of these voids lies near an earlier one that had another near by."""
    gaps = np.abs(voids[:, None] - voids[None]).max(axis=2)
    dead = [(gaps[:i, :i] <= 0.04).sum(axis=0) > 1 for i in range(len(voids))]
    return not any((gaps[i, :i][dead[i]] <= 0.02).any() for i in range(len(voids)))


def out_of_memory(trial):
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    if x + y > 0.9:
        raise MemoryError
    return -(x + y)


@pytest.mark.filterwarnings("ignore:.*trials were void:RuntimeWarning")
@pytest.mark.parametrize("seed", [0, 1])
def test_where_trials_were_void_twice_no_other_is_tried(seed):
    study = optuna.create_study(sampler=CrashSampler(seed=seed, on_fail="void"))
    study.optimize(out_of_memory, n_trials=40, catch=MemoryError)
    failed = [list(t.params.values()) for t in study.trials if t.state.name == "FAIL"]
    assert len(failed) > 20
    assert nowhere_again(np.array(failed))


@pytest.mark.filterwarnings("ignore:.*trials were void:RuntimeWarning")
def test_voids_are_kept_away_from_by_whoever_proposes():
    study = optuna.create_study(sampler=CrashSampler(seed=0))
    declare(study, space={"x": FloatDistribution(0, 1), "only": FloatDistribution(2, 2)})
    for _ in range(8):
        trial = ask(study)
        tell(study, trial, cost=(trial.params["x"] - 0.5) ** 2)
    voids = []
    for _ in range(10):
        trial = ask(study)
        voids.append([trial.params["x"]])
        tell(study, trial, void="unplugged")
    assert nowhere_again(np.array(voids))
    ahead = [planned.suggestion.params["x"] for planned in Proposer(study).propose(3).planned]
    assert all(nowhere_again(np.array([*voids, [x]])) for x in ahead)


def test_a_void_is_no_dead_end_for_all_that_share_some_of_its_parameters():
    study = optuna.create_study()
    kind, scale = CategoricalDistribution(["svm", "forest"]), FloatDistribution(0, 1)
    for x in (0.7, 0.8):
        study.enqueue_trial({"kind": "svm", "scale": x})
        tell(study, study.ask({"kind": kind, "scale": scale}), void="out of memory")
    settings = CrashSampler().settings(study)

    def heeded(**distributions):
        return Snapshot.of(Reading.of(study), Axes(distributions), settings).known

    assert heeded(kind=kind) == ()
    assert [t.params["scale"] for t in heeded(kind=kind, scale=scale)] == [0.7, 0.8]


def test_constraints_need_not_be_named():
    study = optuna.create_study(sampler=CrashSampler(seed=0))
    assert [c.name for c in snapshot_of(study).study.constraints] == ["crash"]
    tell(study, study.ask(SQUARE), cost=1.0, measured={"current": 90.0, "heat": 40.0})
    tell(study, study.ask(SQUARE), crash="a noise", blame="bearing")
    snapshot = snapshot_of(study)
    assert [(c.name, c.measured) for c in snapshot.study.constraints] == [
        ("current", True),
        ("heat", True),
        ("bearing", False),
    ]
    study.ask(SQUARE)


def test_a_cautious_study_begins_in_the_middle():
    study = optuna.create_study(sampler=CrashSampler(risk=crashbo.MinSafe(0.9)))
    assert study.ask(SQUARE).params == {"x": 0.5, "y": 0.5}


def test_a_spent_budget_repeats_what_is_proven():
    study = optuna.create_study(sampler=CrashSampler(seed=0, risk=crashbo.Budget(1, trials=20)))
    tell(study, study.ask(SQUARE), cost=1.0)
    tell(study, study.ask(SQUARE), crash=True)
    asked = [study.ask(SQUARE).params for _ in range(3)]
    assert all(params == pytest.approx({"x": 0.5, "y": 0.5}) for params in asked)


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_every_storage_keeps_what_memory_keeps(kind, tmp_path):
    if kind == "sqlite":
        storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/study.db")
    else:
        storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(f"{tmp_path}/study.log"))
    study = jumps(8, storage=storage, lease=600.0)
    assert records(study) == records(jumps(8, lease=600.0))
    again = optuna.load_study(study_name=study.study_name, storage=storage)  # as another process sees it
    assert records(again) == records(study)
    if kind == "sqlite":
        storage.engine.dispose()


def test_threads_of_one_process_may_share_a_sampler():
    study = optuna.create_study(direction="maximize", sampler=CrashSampler(seed=0))
    study.optimize(jump, n_trials=12, n_jobs=3, catch=(crashbo.Crash,))
    assert len(records(study)) == 12
    assert all(t.state in ("success", "crash") for t in records(study))
    points = np.array([[t.params["knee"], t.params["hip"]] for t in records(study)])
    gaps = np.abs(points[:, None] - points[None]).max(axis=2) + np.eye(12)
    assert gaps.min() > 1e-6


def test_a_study_made_by_another_sampler_is_taken_over_and_gets_better():
    def objective(trial):
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        if 3 * x + y > 1.8:
            raise RuntimeError("out of memory")
        return -(x * (1 + y))

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=40, catch=(RuntimeError,))
    failed, best = sum(t.state.name == "FAIL" for t in study.trials), study.best_value
    study.sampler = CrashSampler(seed=0)
    study.optimize(objective, n_trials=12, catch=(RuntimeError,))
    again = sum(t.state.name == "FAIL" for t in study.trials[40:])
    assert study.best_value < best
    assert again / 12 < failed / 40


def test_a_pruner_that_splits_the_study_is_no_obstacle():
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        if x > 0.8:
            raise crashbo.Crash
        for step in range(4):
            trial.report((x - 0.5) ** 2 + 1 / (step + 1), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return (x - 0.5) ** 2

    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=4, reduction_factor=2)
    study = optuna.create_study(sampler=CrashSampler(seed=0, lease=60.0), pruner=pruner)
    study.optimize(objective, n_trials=15, catch=(crashbo.Crash,))
    assert study.best_value < 0.05
    assert len(records(study)) == 15


class TestInsight:
    def test_it_knows_thresholds_p_safe_and_blame(self):
        seen = insight(jumps(25))
        assert seen.thresholds["current"].learned
        assert seen.p_safe({"knee": 0.1, "hip": 0.1}) > 0.95
        assert seen.p_safe({"knee": 1.0, "hip": 1.0}) < 0.05
        np.testing.assert_allclose(seen.p_safe([{"knee": 1.0, "hip": 1.0}] * 2), seen.p_safe({"knee": 1.0, "hip": 1.0}))
        crash = next(t for t in seen.trials if t.state == "crash")
        assert seen.blame(crash.number)["current"] > 0.9
        assert seen.best.cost == max(t.cost for t in seen.trials if t.state == "success")
        assert seen.recommend().p_safe >= 0.85

    def test_its_p_safe_is_that_of_a_trial_when_it_was_asked(self):
        study = jumps(12)
        study.ask({"knee": FloatDistribution(0, 1), "hip": FloatDistribution(0, 1)})
        trial = records(study)[-1]
        assert insight(study).p_safe(trial.params) == pytest.approx(trial.p_safe, abs=0.02)
        assert insight(study).view.safety.calibration.shift != 0.0

    def test_it_blames_the_constraint_that_was_near_its_limit(self):
        study = optuna.create_study(sampler=CrashSampler(seed=0))

        def objective(trial):
            x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
            if x > 0.7 or y > 0.7:
                raise crashbo.Crash
            measure(trial, a=x, b=y)
            return (x - 0.9) ** 2 + (y - 0.4) ** 2

        study.optimize(objective, n_trials=25, catch=(crashbo.Crash,))
        study.enqueue_trial({"x": 0.95, "y": 0.1})
        study.optimize(objective, n_trials=1, catch=(crashbo.Crash,))
        blame = insight(study).blame(25)
        assert blame["a"] > 0.9
        assert blame["b"] < 0.3

    def test_it_speaks_optunas_params(self):
        def objective(trial):
            n = trial.suggest_int("n", 10, 50, step=10)
            kind = trial.suggest_categorical("kind", ["a", "b"])
            trial.suggest_float("fixed", 2.0, 2.0)
            if n == 50:
                raise crashbo.Crash
            return n + 5 * (kind == "b")

        study = optuna.create_study(sampler=CrashSampler(seed=0))
        study.optimize(objective, n_trials=9, catch=(crashbo.Crash,))
        seen = insight(study)
        assert seen.best.params == study.best_params
        assert seen.recommend().params.keys() == {"n", "kind", "fixed"}
        assert 0.0 <= seen.p_safe({"n": 50, "kind": "a"}) < seen.p_safe({"n": 10, "kind": "a"}) <= 1.0
        with pytest.raises(ValueError, match="params must name each of"):
            seen.p_safe({"n": 50})

    def test_any_samplers_study_can_be_looked_at(self):
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), direction="maximize")
        study.optimize(jump, n_trials=25, catch=(crashbo.Crash,))
        assert not any(t.state == "crash" for t in insight(study, on_fail="void").trials)  # nobody kept why they failed
        seen = insight(study)
        assert seen.thresholds["current"].value == pytest.approx(TRIPS_AT, abs=8)

    def test_an_empty_study_has_nothing_to_look_at(self):
        with pytest.raises(ValueError, match="study must have a trial"):
            insight(optuna.create_study())


def test_the_proposal_says_how_safe_it_is():
    study = jumps(8)
    last = study.trials[-1]
    assert 0 < last.user_attrs["crashbo:p_safe"] <= 1
    assert math.isclose(records(study)[-1].p_safe, last.user_attrs["crashbo:p_safe"])


def test_more_voids_than_anyone_would_expect_are_said_once():
    def objective(trial):
        if trial.suggest_float("x", 0, 1) > 0.2:
            raise MemoryError("no room")
        return 1.0

    study = optuna.create_study(sampler=CrashSampler(on_fail="void", seed=0))
    with pytest.warns(
        RuntimeWarning, match=r"trials were void, most often because: MemoryError.+on_fail or on_death='crash'"
    ) as said:
        study.optimize(objective, n_trials=14, catch=MemoryError)
    assert len([warning for warning in said if "void" in str(warning.message)]) == 1
    assert {t.state for t in records(study)} <= {"void", "success"}  # as the sampler has it


def test_an_objective_that_is_stopped_is_stored_as_stopped_and_learnt_from():
    def guarded(trial):
        knee, hip = trial.suggest_float("knee", 0, 1), trial.suggest_float("hip", 0, 1)
        if current_of(knee, hip) > 110.0:
            raise crashbo.Stopped({"current": 110.0}, "limit")
        measure(trial, current=current_of(knee, hip))
        return height_of(knee, hip)

    study = optuna.create_study(direction="maximize", sampler=CrashSampler(seed=0, constraints=["current"]))
    study.enqueue_trial({"knee": 0.9, "hip": 0.9})
    study.optimize(guarded, n_trials=6, catch=crashbo.Stopped)
    first = records(study)[0]
    assert (first.state, first.measured, first.censored, first.reason) == (
        "stopped",
        {"current": 110.0},
        ("current",),
        "limit",
    )
    assert study.trials[0].state == optuna.trial.TrialState.FAIL
    assert insight(study).guard().limits == {"current": math.inf}  # nothing has crashed yet
    number = study.ask({"knee": optuna.distributions.FloatDistribution(0, 1)}).number
    assert tell(study, number, stopped={"current": 105.0}).state == "stopped"
