"""Trials that were made before, from tables as people have them: what is understood is said, and nothing is guessed."""

import json
import warnings

import pytest

import crashbo
from crashbo.optimizer.tables.columns import to_csv

SPACE = {"knee": (0.0, 1.0), "mode": crashbo.Choice(["soft", "hard"])}
ROWS = [
    {"knee": 0.1, "mode": "soft", "cost": 1.0, "current": 3.0},
    {"knee": 0.9, "mode": "hard", "cost": "crash", "current": None},
    {"knee": 0.4, "mode": "hard", "cost": 0.5, "current": 7.5},
]


@pytest.fixture
def optimizer():
    return crashbo.Optimizer(SPACE, ["current"])


def csv(tmp_path, text):
    path = tmp_path / "old.csv"
    path.write_text(text, encoding="utf-8")
    return path


def states(optimizer):
    return [t.state for t in optimizer.trials]


def test_rows_become_trials_and_a_crash_never_becomes_a_number(optimizer):
    reading = optimizer.tell_table(ROWS)
    assert states(optimizer) == ["success", "crash", "success"]
    assert [t.cost for t in optimizer.trials] == [1.0, None, 0.5]
    assert optimizer.trials[1].measured == {}
    assert [t.number for t in reading.trials] == [0, 1, 2]
    assert {t.origin for t in reading.trials} == {"told"}
    assert optimizer.ask().number == 3


def test_a_dry_run_says_what_it_understood_and_tells_nothing(optimizer):
    rows = [*ROWS, {"knee": 0.2, "mode": "soft", "cost": 999, "state": "failed"}]
    reading = optimizer.tell_table(rows, dry_run=True)
    assert optimizer.trials == []
    assert reading.trials == ()
    said = str(reading)
    assert said.startswith("4 new trials (2 success, 2 crash), 0 known already")
    assert "row 3: 'failed' taken for a crash" in said
    assert "row 3: a crash with a cost, 999, which is left out: it has none" in said
    assert repr(reading) == said


def test_a_table_that_has_grown_is_told_again_without_telling_anything_twice(optimizer):
    optimizer.tell_table(ROWS)
    again = optimizer.tell_table([*ROWS, {"knee": 0.7, "mode": "soft", "cost": 0.2, "current": 8.0}])
    assert (len(again.trials), len(again.known)) == (1, 3)
    assert len(optimizer.trials) == 4


def test_rows_that_are_the_same_in_everything_are_trials_of_their_own_and_it_says_so(optimizer):
    reading = optimizer.tell_table([ROWS[0], ROWS[0]])
    assert len(reading.trials) == 2
    assert "row 0, row 1: the same as another row in everything" in reading.notes[0]
    assert len(optimizer.tell_table([ROWS[0], ROWS[0]]).known) == 2


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_csv_has_any_usual_character_between_its_cells(optimizer, tmp_path, delimiter):
    text = "\ufeffknee,mode,cost,current\r\n0.5,soft,1.5,6\r\n0.8,hard,crashed,\r\n".replace(",", delimiter)
    optimizer.tell_table(csv(tmp_path, text))
    assert states(optimizer) == ["success", "crash"]


def test_a_comma_before_the_fraction_must_be_said(optimizer, tmp_path):
    path = csv(tmp_path, "knee;mode;cost\n0,5;soft;1,25\n")
    with pytest.raises(
        ValueError, match=r"line 2 of the CSV must be a trial: knee must be a number; got '0,5'. Pass dec"
    ):
        optimizer.tell_table(path)
    optimizer.tell_table(path, decimal=",")
    assert optimizer.trials[0].cost == 1.25
    with pytest.raises(ValueError, match=r"cost must be a number without a dot, as decimal is ','; got '1.234'"):
        optimizer.tell_table([{"knee": "0,5", "mode": "soft", "cost": "1.234"}], decimal=",")


def test_columns_that_are_named_otherwise_are_refused_with_the_remedy(optimizer):
    rows = [{"Knee": 0.5, "mode": "soft", "J": 1.0, "operator": "Jo"}]
    with pytest.raises(ValueError, match=r"it lacks \['knee'\]; perhaps 'Knee' is 'knee'\. Pass columns="):
        optimizer.tell_table(rows)
    with pytest.raises(ValueError, match=r"it has \['J', 'operator'\].* Pass columns="):
        optimizer.tell_table(rows, columns={"Knee": "knee"})
    reading = optimizer.tell_table(rows, columns={"Knee": "knee", "J": "cost"}, extra="ignore")
    assert "columns: 'Knee' as knee, 'J' as cost\ncolumns left out: 'operator'" in str(reading)
    assert optimizer.trials[0].cost == 1.0


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"columns": {"hip": "knee"}}, "columns must name columns of the table .*; got 'hip'"),
        ({"columns": {"cost": "price"}}, "columns must map to one of .*; got 'price'"),
        ({"columns": {"current": "cost"}}, "'cost' stands twice"),
        ({"columns": ["knee"]}, "columns must map the table's names to ours"),
        ({"words": {"broke": "bad"}}, "words must map what the table says to success, crash, stopped, void or pending"),
        ({"on_nan": "skip"}, "on_nan must be 'raise', 'crash' or 'void'; got 'skip'"),
        ({"decimal": ";"}, "decimal must be '.' or ','; got ';'"),
        ({"extra": "drop"}, "extra must be 'refuse' or 'ignore'; got 'drop'"),
    ],
)
def test_what_it_cannot_be_told_is_refused(optimizer, how, words):
    with pytest.raises(ValueError, match=words):
        optimizer.tell_table(ROWS, **how)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"knee": None}, "row 1 of the table must be a trial: knee must have a value; the cell is empty. Fill it in"),
        ({"knee": "much"}, "knee must be a number; got 'much'. Mend it"),
        ({"knee": True}, "knee must be a number; got True"),
        ({"mode": "medium"}, "mode must be one of 'soft', 'hard'; got 'medium'"),
        (
            {"cost": None},
            "state must be .* where cost is no number; the cell is empty. .* on_nan=.crash. or",
        ),
        ({"cost": float("inf")}, "cost must be a finite number; got inf"),
        ({"cost": "tripped"}, r"cost must be a number; got 'tripped'. Pass words=\{'tripped': 'crash'\}"),
        ({"cost": "12 A"}, "cost must be a number; got '12 A'"),
        ({"cost": "1_000"}, "cost must be a number; got '1_000'"),
        ({"state": "timeout"}, r"state must be success, .*; got 'timeout'. Pass words=\{'timeout': 'crash'\}"),
        ({"state": "success", "cost": "crash"}, "its cells must agree on what came of it"),
        ({"state": "success", "crash": True}, "its cells must agree on what came of it"),
        ({"crash": "boards tripped"}, "crash must be true or false; .* a column reason"),
        ({"state": "stopped", "cost": None, "current": None}, "stopped must map constraints"),
        ({"knee": 1.5}, r"params must lie within the bounds; got knee 1.5 \(0 to 1\). Pass beyond=True"),
        ({"current": "high"}, "current must be a number; got 'high'"),
    ],
)
def test_a_row_that_can_be_read_in_two_ways_or_none_is_refused_and_nothing_is_told(optimizer, row, words):
    rows = [ROWS[0], {**ROWS[0], **row}]
    with pytest.raises(ValueError, match=words):
        optimizer.tell_table(rows)
    assert optimizer.trials == []
    assert len(optimizer.tell_table(rows, dry_run=True).problems) == 1


def test_every_row_that_is_wrong_is_named_by_a_dry_run(optimizer):
    rows = [{**ROWS[0], "knee": value} for value in (2.0, 0.5, None, -1.0)]
    problems = optimizer.tell_table(rows, dry_run=True).problems
    assert [words.split(" of ")[0] for words in problems] == ["row 0", "row 2", "row 3"]
    with pytest.raises(ValueError, match=r"row 0 .*\(2 more like this: see .problems of a dry_run=True.\)"):
        optimizer.tell_table(rows)


def test_words_and_missing_costs_mean_what_the_user_says(optimizer):
    row = {"knee": 0.5, "mode": "soft"}
    rows = [
        {**row, "cost": "broke"},
        {**row, "cost": None},
        {**row, "state": 0, "cost": 2.0},
        {**row, "cost": "failed"},
    ]
    reading = optimizer.tell_table(rows, words={"Broke": "crash", 0: "success", "failed": "void"}, on_nan="crash")
    assert states(optimizer) == ["crash", "crash", "success", "void"]
    assert "row 1: without a cost, taken for a crash" in reading.notes


@pytest.mark.parametrize("penalty", [999, 999.0, "999", "999.0"])
def test_a_penalty_that_stood_for_a_crash_is_none_where_the_user_says_so(optimizer, penalty):
    optimizer.tell_table([ROWS[0], {"knee": 0.8, "mode": "hard", "cost": penalty}], words={999: "crash"})
    assert [(t.state, t.cost) for t in optimizer.trials] == [("success", 1.0), ("crash", None)]


@pytest.mark.parametrize("kind", [int, float, str])
def test_codes_of_states_are_no_costs(optimizer, kind):
    rows = [
        {"knee": 0.1, "mode": "soft", "state": kind(code), "cost": kind(cost)}
        for code, cost in ((0, 1), (1, 0), (0, 0))
    ]
    optimizer.tell_table(rows, words={0: "success", 1: "crash"})
    assert [(t.state, t.cost) for t in optimizer.trials] == [("success", 1.0), ("crash", None), ("success", 0.0)]
    other = crashbo.Optimizer(SPACE, ["current"])
    other.tell_table([{**row, "state": None} for row in rows[2:]], words={0: "success", 1: "crash"})
    assert other.trials[0].cost == 0.0


def test_a_table_without_a_column_of_costs_is_not_one_of_crashes(optimizer):
    rows = [{"knee": 0.5, "mode": "soft", "Cost": 1.0}]
    with pytest.raises(ValueError, match=r"it has \['Cost'\]; perhaps 'Cost' is 'cost'"):
        optimizer.tell_table(rows, extra="ignore", on_nan="crash")
    with pytest.raises(ValueError, match=r"state must be success, .* where cost is no number"):
        optimizer.tell_table(rows, columns={"Cost": None}, on_nan="crash")


def test_rows_that_were_pending_are_left_out_and_it_says_so(optimizer):
    reading = optimizer.tell_table([ROWS[0], {"knee": 0.3, "mode": "soft", "state": "pending"}])
    assert reading.notes == ("row 1: pending, left out",)
    assert states(optimizer) == ["success"]


def test_a_column_of_true_and_false_says_which_crashed(optimizer):
    rows = [{**ROWS[0], "crash": "FALSE"}, {"knee": 0.8, "mode": "hard", "cost": 1e6, "crash": "TRUE"}]
    optimizer.tell_table(rows)
    assert [(t.state, t.cost) for t in optimizer.trials] == [("success", 1.0), ("crash", None)]


def test_trials_beyond_the_bounds_are_learnt_from_where_they_really_ran(optimizer):
    rows = [*ROWS, {"knee": 1.4, "mode": "hard", "cost": "crash"}]
    reading = optimizer.tell_table(rows, beyond=True)
    assert "row 3: beyond the bounds: knee 1.4 (0 to 1)" in reading.notes
    assert optimizer.trials[3].params["knee"] == 1.4
    assert optimizer.p_safe({"knee": 0.95, "mode": "hard"}) < 0.7
    assert crashbo.Optimizer.from_json(optimizer.to_json()).trials == optimizer.trials


def test_a_row_of_a_pending_trial_does_not_settle_it_and_it_says_so(optimizer):
    trial = optimizer.ask()
    reading = optimizer.tell_table([{**trial.params, "cost": 1.0}])
    assert "the params of trial 0, which is pending and stays so" in reading.notes[0]
    assert states(optimizer) == ["pending", "success"]


def test_what_has_no_rows_tells_nothing_and_what_is_no_table_is_refused(optimizer, tmp_path):
    assert len(optimizer.tell_table([]).trials) == 0
    assert len(optimizer.tell_table(csv(tmp_path, "knee,mode,cost\n\n")).trials) == 0
    with pytest.raises(ValueError, match="CSV must have names of columns in its first line; it is empty"):
        optimizer.tell_table(csv(tmp_path, ""))
    with pytest.raises(ValueError, match=r"'nowhere\.csv' cannot be read"):
        optimizer.tell_table("nowhere.csv")
    with pytest.raises(ValueError, match="it has more cells than the first line names"):
        optimizer.tell_table(csv(tmp_path, "knee,mode,cost\n0,5,soft,1\n"))
    (tmp_path / "old.csv").write_bytes("knee,mode,cost\n0.1,soft,1,é".encode("latin-1"))
    with pytest.raises(ValueError, match="table must be a text file in UTF-8"):
        optimizer.tell_table(tmp_path / "old.csv")
    for table in (3, {"knee": [0.1]}, [1, 2]):
        with pytest.raises(ValueError, match="table must be a data frame, the path of a CSV file, or a list of dicts"):
            optimizer.tell_table(table)


def test_a_data_frame_is_read_as_it_is_and_its_index_is_no_parameter(optimizer, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, index=["a", "b", "c"])
    frame.to_csv(tmp_path / "old.csv")  # writes the index, without a name
    optimizer.tell_table(frame)
    assert states(optimizer) == ["success", "crash", "success"]
    assert len(optimizer.tell_table(tmp_path / "old.csv").known) == 3
    with pytest.raises(ValueError, match=r"it lacks \['knee'\].* 'knee' is its index: pass table.reset_index\(\)"):
        optimizer.tell_table(frame.set_index("knee"))
    frame.loc["b", "knee"] = pandas.NA
    with pytest.raises(ValueError, match="row b of the table must be a trial: knee must have a value"):
        optimizer.tell_table(frame)
    with pytest.raises(ValueError, match="columns whose names are text; got 0"):
        optimizer.tell_table(pandas.DataFrame([[0.1, "soft", 1.0]]))


def test_whole_numbers_booleans_and_branches_are_read_from_a_frame_with_gaps():
    pandas = pytest.importorskip("pandas")
    space = {
        "solver": crashbo.Choice(["direct", "multigrid"]),
        "levels": crashbo.Int(2, 6, when={"solver": "multigrid"}),
        "warm": crashbo.Choice([True, False]),
        "order": crashbo.Choice([1, 2, 4]),
    }
    frame = pandas.DataFrame(
        {
            "solver": ["direct", "multigrid", "direct"],
            "levels": [None, 4, None],
            "warm": [True, False, True],
            "order": [1.0, 2.0, 4.0],
            "cost": [3.0, 2.0, None],
            "state": [None, None, "crash"],
        }
    )
    optimizer = crashbo.Optimizer(space)
    optimizer.tell_table(frame)
    assert optimizer.trials[1].params == {"solver": "multigrid", "levels": 4, "warm": False, "order": 2}
    assert "levels" not in optimizer.trials[0].params
    with pytest.raises(ValueError, match=r"row 1 .* levels must have a value, which exists beside these"):
        optimizer.tell_table(frame.assign(levels=None))
    with pytest.raises(ValueError, match=r"row 0 .* levels must be left empty, since it exists only when solver is"):
        optimizer.tell_table(frame.assign(levels=3))
    with pytest.raises(ValueError, match=r"row 1 .* levels must be a whole number; got 3.5"):
        optimizer.tell_table(frame.assign(levels=[None, 3.5, None]))


def test_contexts_goals_and_a_side_below_have_their_columns():
    space = {"x": (0.0, 1.0), "temperature": crashbo.Context(5.0, 40.0)}
    goals = {"time": "minimize", "yield": "maximize"}
    optimizer = crashbo.Optimizer(space, [crashbo.Constraint("pressure", side="below")], objectives=goals)
    row = {"x": 0.3, "temperature": 50.0, "pressure": 2.0}
    optimizer.tell_table(
        [{**row, "time": 3.0, "yield": 0.9}, {**row, "time": None, "yield": "crash"}, {**row, "cost:time": 2.0}]
    )
    assert [t.cost for t in optimizer.trials] == [{"time": 3.0, "yield": 0.9}, None, {"time": 2.0}]
    assert optimizer.trials[0].params["temperature"] == 50.0  # met, so no bound holds it
    with pytest.raises(ValueError, match=r"it has \['cost'\]"):
        optimizer.tell_table([{**row, "cost": 3.0}])


def test_compared_trials_bring_their_comparisons_once():
    optimizer = crashbo.Optimizer({"x": (0.0, 1.0)}, cost="compared")
    for x in (0.1, 0.5, 0.9):
        optimizer.tell({"x": x}, success=True)
    optimizer.tell({"x": 1.0}, crash="stuck")
    optimizer.prefer(1, 0)
    optimizer.prefer(2, 1, tie=True)
    frame = optimizer.to_dataframe()
    other = crashbo.Optimizer({"x": (0.0, 1.0)}, cost="compared")
    other.tell({"x": 0.7}, success=True)
    assert len(other.tell_table(frame).comparisons) == 2
    assert [(c.better, c.worse, c.tie) for c in other.comparisons] == [(2, 1, False), (2, 3, True)]
    assert other.tell_table(frame).comparisons == ()
    with pytest.raises(ValueError, match="row 0 of the table must compare a success with another row that is one"):
        other.tell_table(frame.assign(number=1))
    with pytest.raises(
        ValueError, match=r"state must be success, .* where cost is no number; the cell is empty\. Mend it"
    ):
        other.tell_table([{"x": 0.2}])


def test_names_that_trials_have_themselves_do_not_mix_up_the_columns():
    optimizer = crashbo.Optimizer({"state": (0.0, 1.0), "x": (0.0, 1.0)}, ["x", "cost"])
    optimizer.tell({"state": 0.5, "x": 0.25}, cost=1.0, measured={"x": 7.0, "cost": 3.0})
    optimizer.tell({"state": 0.9, "x": 0.5}, crash="broke")
    frame = optimizer.to_dataframe()
    assert list(frame)[:6] == ["number", "params:state", "x", "cost", "measured:x", "measured:cost"]
    other = crashbo.Optimizer(optimizer.study)
    other.tell_table(frame)
    assert other.trials == [t.__class__(**{**vars(t), "origin": "told"}) for t in optimizer.trials]


def test_everything_that_was_told_comes_back_from_frame_and_csv(tmp_path):
    optimizer = crashbo.Optimizer(SPACE, ["current", "heat"])
    optimizer.tell({"knee": 0.1, "mode": "soft"}, cost=1.0, measured={"current": 3.0}, note="=quiet")
    optimizer.tell({"knee": 0.2, "mode": "soft"}, crash="tripped", blame=["heat"], reached={"heat": 80.0})
    optimizer.tell({"knee": 0.3, "mode": "soft"}, stopped={"current": 9.0})
    optimizer.tell({"knee": 0.4, "mode": "hard"}, void="unplugged")
    optimizer.tell(
        {"knee": 0.5, "mode": "hard"}, cost=2.0, ran={"knee": 0.52}, censored=["heat"], measured={"heat": 90}
    )
    optimizer.ask()
    text = csv(tmp_path, to_csv(optimizer.study, optimizer.trials))
    for table in (optimizer.to_dataframe(), text):
        other = crashbo.Optimizer(SPACE, ["current", "heat"])
        reading = other.tell_table(table)
        assert [vars(t) | {"origin": ""} for t in other.trials] == [
            vars(t) | {"origin": ""} for t in optimizer.trials[:5]
        ]
        assert reading.columns["p_safe"] is None
        assert len(other.tell_table(table).known) == 5


def test_a_journal_has_a_table_as_one_event_all_or_none(tmp_path):
    path = tmp_path / "study.jsonl"
    with crashbo.journaled(path, crashbo.Optimizer(SPACE, ["current"])) as optimizer:
        optimizer.tell_table(ROWS, dry_run=True)
        optimizer.tell_table(ROWS)
        optimizer.tell_table(ROWS)  # known
        told = optimizer.trials
        assert repr(optimizer) == repr(crashbo.load(path))
    *_, last = path.read_text().splitlines()
    assert len(path.read_text().splitlines()) == 2
    assert len(json.loads(last)["trials"]) == 3
    with crashbo.journaled(path, crashbo.Optimizer(SPACE, ["current"])) as optimizer:
        assert optimizer.trials == told
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(path.read_bytes()[:-20])
    assert crashbo.load(torn).trials == []


def test_minimize_goes_on_from_old_data_in_its_journal(tmp_path):
    path = tmp_path / "study.jsonl"
    with crashbo.journaled(path, crashbo.Optimizer(SPACE, ["current"])) as optimizer:
        optimizer.tell_table(ROWS)
    ran = []
    result = crashbo.minimize(
        lambda p: ran.append(p) or crashbo.Outcome(p["knee"], {"current": 1.0}),
        SPACE,
        constraints=["current"],
        trials=5,
        journal=path,
    )
    assert len(result.trials) == 5
    assert len(ran) == 2


def test_where_warnings_are_errors_all_rows_are_kept(optimizer):
    strict = crashbo.Optimizer(SPACE, [crashbo.Constraint("current", threshold=5.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="beyond its known threshold"):
            strict.tell_table(ROWS)
    assert len(strict.trials) == 3


def test_a_data_frame_is_one_row_per_trial_with_numbers_as_numbers():
    pandas = pytest.importorskip("pandas")
    space = {"x": (0.0, 1.0), "n": crashbo.Int(1, 5), "k": crashbo.Int(1, 3, when={"n": 2})}
    optimizer = crashbo.Optimizer(space, ["load"])
    assert list(optimizer.to_dataframe()["cost"]) == []
    optimizer.tell({"x": 0.1, "n": 2, "k": 1}, crash=True)
    optimizer.tell({"x": 0.2, "n": 3}, void=True)
    frame = optimizer.to_dataframe()
    kinds = {name: str(kind) for name, kind in frame.dtypes.items()}
    assert kinds["cost"] == kinds["load"] == kinds["p_safe"] == "float64"
    assert (kinds["number"], kinds["n"], kinds["k"]) == ("int64", "int64", "Int64")
    assert frame["k"][1] is pandas.NA
    assert list(frame["state"]) == ["crash", "void"]


def test_a_number_where_names_stand_is_one_name():
    compared = crashbo.Optimizer({"x": (0.0, 1.0)}, cost="compared")
    rows = [{"number": 0, "x": 0.1, "state": "ok"}, {"number": 1, "x": 0.5, "state": "ok", "beat": 0}]
    assert [(c.better, c.worse) for c in compared.tell_table(rows).comparisons] == [(1, 0)]
    blamed = crashbo.Optimizer({"x": (0.0, 1.0)}, ["load"]).tell_table(
        [{"x": 0.1, "state": "crash", "blame": 3}], dry_run=True
    )
    assert "blame must" in blamed.problems[0]
    assert str(blamed).startswith("0 new trials, 0 known already\n")
