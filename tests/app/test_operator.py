"""What an operator may do wrong at a bench, and what happens to the clock: no wrong data, nothing lost."""

import time

import pytest

from crashbo.app.bench import Bench, Beyond, Conflict, Told, table
from crashbo.integrations.optuna import clock

SUCCESS = Told.of(cost=0.5, measured={"current": 90.0})


def test_a_success_keeps_its_note_through_store_correction_and_csv(bench, store, tmp_path):
    bench.ask()
    bench.tell(0, Told.of(cost=0.5, note="left leg squeaks"))
    assert Bench.open(store).trials[0].reason == "left leg squeaks"
    bench.fix(0, Told.of(cost=0.6, note="both legs squeak"))
    assert bench.undo().reason == "left leg squeaks"
    other = Bench.create(str(tmp_path / "other.db"), bench.definition)
    table.load(other, table.export(bench))
    assert other.trials[0].reason == "left leg squeaks"


def test_a_note_is_a_crash_s_reason_and_two_of_them_are_refused():
    assert Told.of(crash=True, note="fell").reason == "fell"
    assert Told.of(void="unplugged", note="unplugged").reason == "unplugged"
    with pytest.raises(ValueError, match="note must be left out where a reason is given"):
        Told.of(crash="tripped", note="fell")
    with pytest.raises(ValueError, match="note must be text"):
        Told.of(cost=1.0, note=3)


def test_a_correction_changes_the_setting_too_and_undo_brings_it_back(bench, store):
    asked = bench.ask()
    bench.tell(0, SUCCESS, who="Ann")
    ran = {"knee": 0.25, "hip": 0.75}
    assert bench.fix(0, SUCCESS, params=ran, who="Bob").params == ran
    assert bench.insight().trials[0].params == ran
    assert Bench.open(store).trials[0].params == ran
    with pytest.raises(Beyond, match=r"hip 7\.5"):
        bench.fix(0, SUCCESS, params={**ran, "hip": 7.5})
    with pytest.raises(ValueError, match="params must give each of knee, hip"):
        bench.fix(0, SUCCESS, params={"knee": 0.1})
    assert bench.fix(0, SUCCESS, params={**ran, "hip": 7.5}, beyond=True).params["hip"] == 7.5
    assert bench.fix(0, SUCCESS, params=ran).params == ran
    for expected in (7.5, 0.75, asked.params["hip"]):
        assert bench.undo(0).params["hip"] == expected
    assert bench.trials[0].params == asked.params
    assert [said["by"] for said in bench.entry(0).history] == ["fix", "fix", "fix", "undo", "undo", "undo"]


def test_the_store_knows_who_told_what_when_and_how_long_it_took(bench):
    bench.ask()
    time.sleep(0.05)
    bench.tell(0, SUCCESS, who="Ann")
    entry = bench.entry(0)
    assert (entry.who, entry.history) == ("Ann", ())
    assert 0.05 <= entry.ended - entry.began < 5.0
    bench.fix(0, Told.of(crash=True), who="Bob")
    entry = bench.entry(0)
    assert (entry.who, entry.history[0]["who"], entry.history[0]["by_whom"]) == ("Bob", "Ann", "Bob")
    header, row = table.export(bench).splitlines()
    assert header.endswith("id,who,told_at,took")
    assert ",Bob,20" in row


def test_the_same_request_with_another_body_is_refused(bench):
    bench.ask(request="a", lease=60.0)
    assert bench.ask(request="a", lease=60.0).number == 0
    with pytest.raises(Conflict, match="request must be a new id for another body; got 'a' again"):
        bench.ask(request="a")
    bench.tell(0, SUCCESS, request="t")
    bench.fix(0, Told.of(crash=True))
    assert bench.tell(0, SUCCESS, request="t").state == "crash"
    with pytest.raises(Conflict, match="new id for another body"):
        bench.tell(0, Told.of(void=True), request="t")
    bench.add({"knee": 0.1, "hip": 0.2}, SUCCESS, request="n")
    for params, told in (({"knee": 0.1, "hip": 0.3}, SUCCESS), ({"knee": 0.1, "hip": 0.2}, Told.of(cost=1.0))):
        with pytest.raises(Conflict, match="new id for another body"):
            bench.add(params, told, request="n")
    assert len(bench.trials) == 2


def test_a_table_that_grew_adds_only_what_is_new(bench):
    first = "knee,hip,cost\n0.1,0.2,0.5\n0.3,0.4,0.6\n"
    table.load(bench, first)
    grown = first + "0.5,0.6,0.7\n0.1,0.2,0.5\n"  # the last one was made again, with the same result
    plan = table.plan(bench, grown)
    assert ([row.line for row in plan.new], [row.line for row in plan.known]) == ([4, 5], [2, 3])
    assert len(bench.trials) == 2  # a plan adds nothing
    table.load(bench, grown)
    table.load(bench, grown)
    assert len(bench.trials) == 4


def test_a_row_is_known_by_its_id_whatever_became_of_the_trial(bench, tmp_path):
    bench.ask()
    bench.tell(0, SUCCESS)
    text = table.export(bench)
    bench.fix(0, Told.of(crash="it fell afterwards"))
    plan = table.plan(bench, text)
    assert (plan.new, [(row.line, number) for row, number in plan.changed]) == ((), [(2, 0)])
    own = "id,knee,hip,cost\nS-17,0.1,0.2,0.5\nS-18,0.1,0.2,0.5\n"
    table.load(bench, own)
    assert len(bench.trials) == 3
    again = table.load(bench, own.replace("S-18,0.1", "S-19,0.1"))
    assert ([row.id for row in again.new], [row.id for row in again.known]) == (["S-19"], ["S-17"])
    other = Bench.create(str(tmp_path / "other.db"), bench.definition)
    table.load(other, table.export(bench))
    assert table.plan(other, table.export(bench)).new == ()
    assert "S-17" in table.export(other)


def test_setting_the_clock_neither_reorders_undo_nor_ends_a_lease(bench, store, monkeypatch):
    real = time.time
    for _ in range(3):
        bench.ask(lease=600.0)
    bench.tell(0, SUCCESS)
    monkeypatch.setattr(time, "time", lambda: real() + 86400)  # a day ahead
    assert [t.state for t in Bench.open(store).trials] == ["success", "pending", "pending"]
    assert abs(bench.entry(1).lease - time.time() - 600) < 5
    bench.tell(1, SUCCESS)
    monkeypatch.setattr(time, "time", lambda: real() - 86400)  # and back, farther than before
    Bench.open(store).tell(2, SUCCESS)
    assert Bench.open(store).undo().number == 2
    bench.fix(0, Told.of(crash=True))
    assert Bench.open(store).undo().number == 0


def test_a_lease_written_elsewhere_goes_by_the_clock(monkeypatch):
    attrs = clock.lease_of(60.0)
    assert 59.0 < clock.seconds_left(attrs, time.time() + 1000.0) <= 60.0
    monkeypatch.setattr(clock, "_boot", lambda: "another")
    assert clock.seconds_left(attrs, time.time() + 1000.0) < -900.0
    monkeypatch.setattr(clock, "_boot", lambda: None)
    assert list(clock.lease_of(60.0)) == ["crashbo:lease"]


def test_a_halted_study_hands_out_nothing_until_it_is_resumed(bench, store):
    bench.ask(request="a")
    bench.halt("smoke", who="Ann")
    for asks in (bench, Bench.open(store)):
        with pytest.raises(Conflict, match=r"must not be halted to be asked; it was by Ann: smoke\."):
            asks.ask()
    assert bench.ask(request="a").number == 0  # what was handed out is not taken back
    bench.tell(0, SUCCESS)
    bench.resume()
    assert (bench.halted, bench.ask().number) == (None, 1)


def test_a_wish_is_handed_out_next(bench):
    bench.wish({"knee": 0.3, "hip": 0.4})
    with pytest.raises(Beyond):
        bench.wish({"knee": 3.0, "hip": 0.4})
    assert bench.ask().params == {"knee": 0.3, "hip": 0.4}


def test_an_import_says_what_it_understood_that_does_not_stand_there(bench, crashbo, tmp_path):
    old = tmp_path / "old.csv"
    old.write_text("knee;hip;cost;state\n0.1;0.2;1.5;ok\n0.3;0.2;failed;\n0.4;0.2;1e6;crash\n")
    said = crashbo("trials", "--import", str(old), "--preview")[1].splitlines()
    assert said == [
        "3 trials would be added",
        "line 2: 'ok' taken for a success",
        "line 3: 'failed' taken for a crash",
        "line 4: a crash with a cost, 1e+06, which is left out: it has none",
    ]
    assert bench.trials == []
    notes = table.plan(bench, old.read_text()).notes
    assert [f"line {line}: {words}" for line, words in notes] == said[1:]
