"""The bench: whatever is asked, told, corrected and repeated, nothing is lost and nothing counts twice."""

import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor

import optuna
import pytest
from jumper import SAID, current_of, height_of

from crashbo.app.bench import Bench, Beyond, Conflict, Definition, Missing, Told, table
from crashbo.app.bench.bench import Asked
from crashbo.integrations.optuna import declare, records, tell, writing
from crashbo.integrations.optuna.ledger import Ledger
from crashbo.integrations.optuna.proposer import Proposer
from crashbo.optimizer.tables.columns import to_csv

SUCCESS = Told.of(cost=0.5, measured={"current": 90.0})


def counts(plan):
    return len(plan.new), len(plan.known)


def test_asked_again_with_the_same_request_it_is_the_same_trial(bench):
    first = bench.ask(request="a")
    assert bench.ask(request="a") == first
    assert bench.ask(request="b").number == 1
    assert bench.ask().number == 2


def test_told_twice_it_counts_once_and_told_otherwise_it_is_refused(bench):
    number = bench.ask().number
    told = bench.tell(number, SUCCESS)
    assert (told.state, told.cost, told.measured) == ("success", 0.5, {"current": 90.0})
    assert bench.tell(number, SUCCESS) == told
    with pytest.raises(Conflict, match=r"trial 0 must be pending to be told; it is a success\. Use fix"):
        bench.tell(number, Told.of(crash=True))
    assert bench.trials == [told]


def test_a_repeated_tell_is_known_by_its_request_even_after_a_correction(bench):
    bench.ask()
    bench.tell(0, SUCCESS, request="x")
    bench.fix(0, Told.of(crash="it fell"))
    assert bench.tell(0, SUCCESS, request="x").state == "crash"
    with pytest.raises(Conflict, match="request must be a new id"):  # it told a success, whatever corrected that
        bench.tell(0, Told.of_trial(bench.entry(0).trial), request="x")
    assert bench.trials[0].reason == "it fell"


def test_corrections_can_be_undone_one_after_the_other_and_nothing_that_was_said_is_forgotten(bench):
    bench.ask()
    bench.tell(0, SUCCESS)
    bench.fix(0, Told.of(crash="it fell", blame="current"))
    bench.fix(0, Told.of(void="wrong robot"))
    states = [bench.trials[0].state]
    for _ in range(3):
        bench.undo(0)
        states.append(bench.trials[0].state)
    assert states == ["void", "crash", "success", "pending"]
    with pytest.raises(Conflict, match="must have been told to be undone"):
        bench.undo(0)
    bench.tell(0, Told.of(cost=0.7))
    assert (bench.trials[0].cost, bench.trials[0].measured) == (0.7, {})
    assert bench.entry(0).corrections == 6


def test_a_success_that_becomes_a_crash_leaves_no_measurement_behind(bench):
    bench.ask()
    bench.tell(0, SUCCESS)
    bench.fix(0, Told.of(crash=True))
    assert bench.trials[0].measured == {}
    assert bench.insight().trials[0].measured == {}


def test_undo_without_a_number_means_the_one_told_last(bench):
    for cost in (0.1, 0.2):
        bench.tell(bench.ask().number, Told.of(cost=cost))
    time.sleep(0.01)
    bench.fix(0, Told.of(cost=0.3))
    assert bench.undo().number == 0
    assert bench.trials[0].cost == 0.1
    assert bench.undo(1).state == "pending"


def test_a_late_result_is_welcome(bench):
    number = bench.ask(lease=0.05).number
    time.sleep(0.1)
    assert bench.trials[number].state == "void"
    assert bench.entry(number).late
    assert bench.tell(number, SUCCESS).state == "success"


def test_a_lease_can_be_renewed_until_the_trial_is_told(bench):
    number = bench.ask(lease=0.2).number
    bench.renew(number, 60)
    time.sleep(0.25)
    assert bench.trials[number].state == "pending"
    bench.tell(number, SUCCESS)
    with pytest.raises(Conflict, match="must be pending to be waited for"):
        bench.renew(number, 60)


def test_a_trial_that_nobody_asked_for_may_lie_outside_the_bounds_and_is_learnt_from(bench):
    said = {"params": {"knee": 1.2, "hip": 0.1}, "told": Told.of(crash="tripped"), "request": "r"}
    with pytest.raises(Beyond, match=r"within the bounds; got knee 1\.2 \(0 to 1\)"):
        bench.add(**said)
    told = bench.add(**said, beyond=True)
    assert bench.add(**said, beyond=True) == told
    assert [t.params for t in bench.insight().trials] == [{"knee": 1.2, "hip": 0.1}]
    for params in ({"knee": 0.1}, {"knee": 0.1, "hip": 0.2, "toe": 1.0}, {"knee": "a", "hip": 0.1}):
        with pytest.raises(ValueError, match="params must give each of knee, hip"):
            bench.add(params, SUCCESS)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"cost": 1.0, "crash": True},
        {"cost": float("nan")},
        {"cost": float("inf")},
        {"cost": 1e31},
        {"cost": "1"},
        {"cost": True},
        {"cost": 1.0, "measured": {"speed": 1.0}},
        {"cost": 1.0, "measured": {"current": float("-inf")}},
        {"cost": 1.0, "measured": [1.0]},
        {"cost": 1.0, "blame": "current"},
        {"crash": "\x00"},
        {"crash": "\ud800"},
        {"crash": "x" * 501},
        {"crash": True, "blame": [1]},
        {"crash": True, "censored": "current"},
        {"crash": True, "measured": {"current": 1.0}, "censored": [1]},
    ],
)
def test_nonsense_is_refused_in_one_sentence_and_changes_nothing(bench, said):
    bench.ask()
    before = bench.entries()
    with pytest.raises(ValueError, match="must") as refusal:
        bench.tell(0, Told.of(**said))
    assert "\n" not in str(refusal.value)
    assert bench.entries() == before


@pytest.mark.parametrize("number", [-1, 1, 10**30])
def test_a_trial_that_is_not_there_is_missed(bench, number):
    bench.ask()
    with pytest.raises(Missing):
        bench.tell(number, SUCCESS)


def test_start_points_are_queued_and_handed_out_first(store):
    bench = Bench.create(store, Definition.of({**SAID, "start": [{"knee": 0.25, "hip": 0.5}]}))
    assert bench.entries()[0].queued
    with pytest.raises(Conflict, match="must be handed out to be told"):
        bench.tell(0, SUCCESS)
    assert bench.ask().params == {"knee": 0.25, "hip": 0.5}


def test_a_batch_is_distinct_and_each_request_keeps_its_trial(bench):
    for _ in range(6):
        trial = bench.ask()
        bench.tell(trial.number, Told.of(cost=height_of(trial.params), measured={"current": current_of(trial.params)}))
    asked = [Asked(r) for r in ("a", "b", None, "a", None)]
    batch = bench.ask_batch(asked)
    assert [t.number for t in batch] == [6, 7, 8, 6, 9]
    assert len({tuple(t.params.values()) for t in batch}) == 4
    assert [t.number for t in bench.ask_batch(asked[:2])] == [6, 7]
    assert {t.origin for t in batch} == {"search"}
    assert all(t.p_safe is not None and t.p_model is not None for t in batch)


def test_a_place_that_another_worker_took_meanwhile_is_not_handed_out_again(bench, store):
    for _ in range(6):
        trial = bench.ask()
        bench.tell(trial.number, Told.of(cost=height_of(trial.params), measured={"current": current_of(trial.params)}))
    proposer, other, turns = Proposer(bench.ledger.study), Bench.open(store), []

    def slow(count, turn, onward):
        batch = proposer.some(count, turn, onward=onward)
        if not turns:  # while we think, another process asks, and comes to the same conclusion
            other.ask()
        turns.append(turn)
        return batch

    trial = Bench(Bench.open(store).ledger, slow).ask()
    assert turns == [0, 1]
    assert trial.number == 7
    one, two = bench.trials[6].params, trial.params
    assert max(abs(one[name] - two[name]) for name in one) >= 0.01
    assert len(bench.trials) == 8


def test_words_that_wait_together_are_one_commit_and_a_trial_that_was_told_meanwhile_is_looked_at(
    bench, store, monkeypatch
):
    numbers = [t.number for t in bench.ask_batch([Asked()] * 4)]
    Bench.open(store).tell(2, Told.of(crash="by another process"))
    commits, close_all = [], bench.ledger.close_all
    monkeypatch.setattr(bench.ledger, "close_all", lambda told: (commits.append(len(told)), close_all(told))[1])
    bench._writing.__enter__()  # as if somebody wrote: all four have to wait
    with ThreadPoolExecutor(4) as pool:
        told = [pool.submit(bench.tell, n, Told.of(cost=0.1 * n)) for n in numbers]
        while len(bench._waiting) < 4:
            time.sleep(0.005)
        bench._writing.__exit__()
    assert commits == [4]
    assert [told[n].result().cost for n in (0, 1, 3)] == pytest.approx([0.0, 0.1, 0.3])
    with pytest.raises(Conflict, match="trial 2 must be pending to be told; it is a crash"):
        told[2].result()
    assert [t.state for t in bench.trials] == ["success", "success", "crash", "success"]


@pytest.mark.parametrize("place", ["sqlite", "memory"])
def test_what_a_store_writes_of_a_trial_is_what_optuna_would_have_written(store, place):
    study = optuna.create_study(storage=f"sqlite:///{store}" if place == "sqlite" else None)
    declare(study, space={"x": (0.0, 1.0)}, constraints=["current"])
    study.enqueue_trial({"x": 0.25})
    bench = Bench(Ledger(study))
    batch = bench.ask_batch([Asked("a", 60.0), Asked("b")])
    bench.tell(0, Told.of(cost=0.5, measured={"current": 90.0}), request="t")
    bench.tell(1, Told.of(crash="fell", measured={"current": 120.0}, censored=True, blame="current"))
    first, second = study.get_trials()
    assert (first.state.name, first.params, first.value) == ("COMPLETE", {"x": 0.25}, 0.5)
    assert first.user_attrs == {"measured:current": 90.0}
    assert (batch[0].origin, batch[0].p_safe) == ("start", None)
    assert first.datetime_complete >= first.datetime_start
    assert (second.state.name, second.params, second.value) == ("FAIL", batch[1].params, None)
    assert {k: v for k, v in second.user_attrs.items() if k != "crashbo:p_safe"} == {
        "measured:current": 120.0,
        "crashbo:state": "crash",
        "crashbo:reason": "fell",
        "crashbo:blame": ["current"],
        "crashbo:censored": ["current"],
    }
    assert study.ask({"x": study.trials[0].distributions["x"]}).number == 2


def _tell_in_another_process(store, number):
    Bench.open(store).tell(number, Told.of(crash="seen by another process"))


def test_processes_share_a_study_and_optuna_reads_it(bench, store):
    bench.ask(), bench.ask()
    bench.tell(0, SUCCESS)
    process = multiprocessing.get_context("spawn").Process(target=_tell_in_another_process, args=(store, 1))
    process.start()
    process.join()
    assert [t.state for t in bench.trials] == ["success", "crash"]
    study = optuna.load_study(study_name="jump", storage=f"sqlite:///{store}")
    assert study.best_value == 0.5
    assert [t.reason for t in records(study)] == ["", "seen by another process"]


def test_a_study_of_optunas_own_can_be_looked_at_and_gone_on_with(store):
    study = optuna.create_study(storage=f"sqlite:///{store}", study_name="theirs")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) ** 2, n_trials=3)
    bench = Bench.open(store)
    assert list(bench.definition.space.parameters) == ["x"]
    bench.tell(bench.ask().number, Told.of(cost=0.1))
    assert bench.trials[3].state == "success"


def test_whoever_corrects_a_trial_everything_that_was_said_of_it_is_kept(bench):
    """Optuna's own tell and the bench's fix write one and the same history."""
    bench.ask()
    bench.tell(0, SUCCESS)
    tell(bench.ledger.study, 0, crash="it fell", blame="current", replace=True)
    bench.fix(0, Told.of(void="wrong robot"))
    tell(bench.ledger.study, 0, cost=0.25, replace=True)
    past = bench.ledger.study.user_attrs["crashbo:corrected:0"]["past"]
    assert [(said["state"], said["by"]) for said in past] == [("success", "tell"), ("crash", "fix"), ("void", "tell")]
    states = [(t.state, t.cost, t.reason) for t in (bench.undo(0), bench.undo(0), bench.undo(0))]
    assert states == [("void", None, "wrong robot"), ("crash", None, "it fell"), ("success", 0.5, "")]


def test_a_correction_of_an_earlier_edition_lies_on_optunas_own_record(bench):
    bench.ask()
    bench.tell(0, SUCCESS)
    old = {"state": "crash", "cost": None, "reason": "it fell", "measured": {}, "blame": [], "censored": []}
    bench.ledger.study.set_user_attr("crashbo:corrected:0", old)
    assert [(t.state, t.reason) for t in bench.trials] == [("crash", "it fell")]
    assert bench.undo(0).cost == 0.5
    assert [said["state"] for said in bench.ledger.study.user_attrs["crashbo:corrected:0"]["past"]] == [
        "success",
        "crash",
    ]
    assert bench.undo(0).state == "pending"


def test_what_can_be_read_needs_no_study_that_can_be_run(bench):
    declare(bench.ledger.study, strategy="safeopt", noise={"heat": 0.1})  # thresholds come with each worker
    assert to_csv(bench.definition.study, bench.trials).startswith("number,knee,hip,cost,current")


TABLE = "knee,hip,cost,current,state\n" + "".join(
    f"{i / 40},0.5,{i},80,success\n" if i % 4 else f"{i / 40},0.5,,,crash\n" for i in range(40)
)


@pytest.mark.parametrize("value", ["1.5", "1e31"])
def test_a_value_that_a_parameter_cannot_have_is_refused_by_its_line(tmp_path, value):
    said = {"name": "lathe", "parameters": {"n": {"low": 1, "high": 8, "int": True}}}
    bench = Bench.create(str(tmp_path / "lathe.db"), Definition.of(said))
    with pytest.raises(ValueError, match="line 3 of the CSV: params must give each of n"):
        table.load(bench, f"n,cost\n2,0.5\n{value},0.7\n")
    assert bench.trials == []
    old = "n,cost\n2,0.5\n12,0.7\n"  # old data may lie beyond the bounds, if somebody says so
    assert [(row.line, words) for row, words in table.plan(bench, old).beyond] == [(3, "n 12 (1 to 8)")]
    with pytest.raises(Beyond):
        table.load(bench, old)
    assert bench.trials == []
    assert counts(table.load(bench, old, beyond=True)) == (2, 0)


def test_the_same_request_twice_in_one_call_counts_once(bench):
    word = ({"knee": 0.1, "hip": 0.2}, SUCCESS, "a")
    assert bench.add_all([word, ({"knee": 0.3, "hip": 0.2}, SUCCESS, None), word]) == [0, 1, 0]
    assert bench.add_all([word, ({"knee": 0.3, "hip": 0.2}, SUCCESS, None)]) == [0, 2]


def test_a_table_is_imported_without_a_fit(bench, monkeypatch):
    def no_fit(*_, **__):
        raise AssertionError("a table needs no model")

    for module in ("crashbo.strategies.base", "crashbo.optimizer.view"):
        monkeypatch.setattr(f"{module}.fit_surrogates", no_fit)
    assert counts(table.load(bench, TABLE)) == (40, 0)
    assert [t.state for t in bench.trials].count("crash") == 10


def test_a_table_is_imported_as_a_whole_or_not_at_all(bench, monkeypatch):
    create = writing.create

    def fail_later(*args):
        create(*args)
        raise OSError("disk full")

    monkeypatch.setattr(writing, "create", fail_later)
    with pytest.raises(OSError, match="disk full"):
        table.load(bench, TABLE)
    assert bench.trials == []
    monkeypatch.undo()
    assert counts(table.load(bench, TABLE)) == (40, 0)


def test_trials_go_out_as_csv_and_come_back_and_the_same_file_counts_once(bench, tmp_path):
    odd = '=cmd|"/c calc"!A1, <b>bold</b>'
    crashes = (
        Told.of(crash=odd, blame=["current"]),
        Told.of(crash=True, measured={"current": 120.0}, censored="current"),
    )
    for told in (SUCCESS, *crashes, Told.of(void="-5 C in the lab")):
        bench.tell(bench.ask().number, told)
    bench.ask()  # pending: says nothing
    text = to_csv(bench.definition.study, bench.trials)
    assert "'=cmd" in text
    other = Bench.create(str(tmp_path / "other.db"), bench.definition)
    assert counts(table.load(other, text)) == (4, 0)
    assert counts(table.load(other, text)) == (0, 4)
    words = lambda t: (t.params, t.state, t.cost, t.measured, t.reason, t.blame, t.censored)  # noqa: E731
    assert [words(t) for t in other.trials] == [words(t) for t in bench.trials[:4]]


def test_stops_and_last_readings_go_out_as_csv_and_come_back_and_a_change_of_them_is_noticed(bench, tmp_path):
    for told in (
        Told.of(crash=True, reached={"current": 107.5}, rises={"current": 0.4}),
        Told.of(stopped={"current": 106.0}, note="hot"),
    ):
        bench.tell(bench.ask().number, told)
    text = table.export(bench)
    other = Bench.create(str(tmp_path / "other.db"), bench.definition)
    assert counts(table.load(other, text)) == (2, 0)
    assert counts(table.load(other, text)) == (0, 2)
    words = lambda t: (t.params, t.state, t.measured, t.reason, t.censored, t.reached, t.rises)  # noqa: E731
    assert [words(t) for t in other.trials] == [words(t) for t in bench.trials]
    assert [number for _, number in table.plan(other, text.replace("107.5", "107.9")).changed] == [0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("knee,cost\n0.1,1\n", "it lacks \\['hip'\\]"),
        ("knee,hip,cost,toe\n0.1,1,2,3\n", "it has \\['toe'\\]"),
        ("knee,hip,cost\n0.1,0.2,1\n0.1,high,1\n", "line 3 .* hip must be a number; got 'high'"),
        ("knee,hip,cost\n0.1,0.2,\n", "line 2 .* state must be success, crash, stopped or void"),
        ("knee,hip,cost\n0.1,0.2,nan\n", "line 2 .* state must be success"),
        ("knee,hip,cost\n0.1,0.2,1,5\n", "line 2 .* more cells"),
    ],
)
def test_a_csv_with_a_mistake_is_refused_as_a_whole(bench, text, words):
    with pytest.raises(ValueError, match=words):
        table.load(bench, text)
    assert bench.trials == []
