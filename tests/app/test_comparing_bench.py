"""Comparisons at the bench: stored, taken back, exported, imported, over HTTP and on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from crashbo.app import cli
from crashbo.app.bench import Bench, Conflict, Definition, Told, table
from crashbo.app.server.films import Films
from crashbo.optimizer.records import Comparison

TOML = """
compared = true
strategy = "random"
[parameters]
knee = [0.0, 1.0]
hip = [0.0, 1.0]
[constraints]
current = {unit = "A"}
"""


@pytest.fixture
def store(tmp_path: Path) -> str:
    (tmp_path / "gait.toml").write_text(TOML)
    path = str(tmp_path / "gait.db")
    Bench.create(path, Definition.from_toml(tmp_path / "gait.toml"))
    return path


@pytest.fixture
def bench(store: str) -> Bench:
    """Three successes and a crash: trials 0 to 3."""
    bench = Bench.open(store)
    for knee, told in ((0.2, Told.of(success=True)), (0.5, Told.of(success=True)), (0.8, Told.of(success=True))):
        bench.add({"knee": knee, "hip": 0.5}, told)
    bench.add({"knee": 0.9, "hip": 0.9}, Told.of(crash=True))
    return bench


def standing(bench: Bench) -> list[Comparison]:
    return [said.comparison for said in bench.comparisons() if not said.undone]


def test_a_study_of_a_file_is_compared(bench: Bench) -> None:
    assert bench.definition.study.compared
    assert [t.state for t in bench.trials] == ["success", "success", "success", "crash"]
    assert [t.cost for t in bench.trials] == [None] * 4
    with pytest.raises(ValueError, match="compared must be true or false; got 'yes'"):
        Definition.of({"name": "a", "parameters": {"knee": [0.0, 1.0]}, "compared": "yes"})


def test_the_winner_is_the_best_and_what_the_next_trial_is_compared_with(bench: Bench, store: str) -> None:
    assert bench.best() == bench.trials[0]  # nothing was compared yet: the first
    bench.prefer(1, 0)
    bench.prefer(1, 2, who="Ann")
    assert bench.best() == bench.trials[1]
    assert bench.ask().against == 1
    assert Bench.open(store).best() == bench.trials[1]
    assert [said.who for said in bench.comparisons()] == ["", "Ann"]


def test_a_request_counts_once(bench: Bench) -> None:
    first = bench.prefer(0, 1, request="r")
    assert bench.prefer(0, 1, request="r") == first
    with pytest.raises(Conflict, match="request must be a new id for another body"):
        bench.prefer(1, 0, request="r")
    assert standing(bench) == [Comparison(0, 1)]


def test_a_crash_is_not_worse_and_nothing_is_written(bench: Bench) -> None:
    with pytest.raises(ValueError, match="trial 3 must be a success to be compared; it is a crash"):
        bench.prefer(0, 3)
    with pytest.raises(ValueError, match="trial 3 must be a success"):
        bench.prefer_all([(0, 1, False), (3, 1, False)])
    assert bench.comparisons() == []


def test_comparisons_are_corrected_and_taken_back_and_their_history_stays(bench: Bench) -> None:
    bench.prefer(0, 1)
    bench.prefer(1, 0, replaces=True, who="Bob")
    bench.prefer(2, 0, tie=True)
    assert standing(bench) == [Comparison(1, 0), Comparison(2, 0, tie=True)]
    assert bench.unprefer().comparison == Comparison(2, 0, tie=True)
    assert standing(bench) == [Comparison(1, 0)]
    assert [(said.undone, said.undone_by) for said in bench.comparisons()] == [(True, "Bob"), (False, ""), (True, "")]
    bench.unprefer(bench.comparisons()[1].id)
    with pytest.raises(Conflict, match="must have such a comparison"):
        bench.unprefer()


def test_an_undone_trial_takes_its_comparisons_back(bench: Bench) -> None:
    bench.prefer(0, 1)
    bench.prefer(1, 2)
    assert bench.undo(2).state == "pending"
    assert standing(bench) == [Comparison(0, 1)]
    bench.fix(1, Told.of(crash=True))
    assert standing(bench) == [Comparison(0, 1)]  # it waits
    assert bench.best() == bench.trials[0]


def test_a_table_carries_comparisons_and_is_read_once(bench: Bench, tmp_path: Path) -> None:
    bench.prefer(0, 1)
    bench.prefer(0, 1)
    bench.prefer(2, 1, tie=True)
    bench.add({"knee": 0.3, "hip": 0.1}, Told.of(cost=1.5))
    text = table.export(bench)
    assert ",beat,lost_to,tied_with" in text.splitlines()[0]
    table.load(bench, text)
    assert len(standing(bench)) == 3
    other = Bench.create(str(tmp_path / "other.db"), Definition.of({**_said(), "name": "other"}))
    other.add({"knee": 0.99, "hip": 0.5}, Told.of(success=True))  # so that numbers differ
    for _ in range(2):
        table.load(other, text)
        assert standing(other) == [Comparison(1, 2), Comparison(1, 2), Comparison(2, 3, tie=True)]
    assert [t.cost for t in other.trials] == [None] * 5 + [1.5]


@pytest.mark.parametrize(
    "line", ["0,0.1,0.5,success,9", "0,0.1,0.5,crash,1", "0,0.1,0.5,success,0", ",0.1,0.5,success,1"]
)
def test_a_table_that_compares_what_cannot_be_is_refused(bench: Bench, line: str) -> None:
    text = f"number,knee,hip,state,beat\n{line}\n1,0.2,0.6,success,\n"
    with pytest.raises(ValueError, match="line 2 of the CSV must compare a success with another row that is one"):
        table.load(bench, text)
    assert len(bench.trials) == 4


def _said() -> dict[str, Any]:
    return {"compared": True, "parameters": {"knee": [0.0, 1.0], "hip": [0.0, 1.0]}, "constraints": ["current"]}


def cli_says(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.main(list(words)) == 0
    return capsys.readouterr().out


def test_the_command_line_tells_compares_and_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--store", str(tmp_path / "a.db")]
    new = ("new", "gait", "--param", "knee=0:1", "--param", "hip=0:1", "--compared", *where)
    assert "trials are compared" in cli_says(capsys, *new)
    assert "crashbo tell 0 --success" in cli_says(capsys, "ask", *where)
    cli_says(capsys, "tell", "0", "--success", *where)
    asked = cli_says(capsys, "ask", *where)
    assert "Compare it with trial 0: crashbo prefer BETTER WORSE" in asked
    cli_says(capsys, "tell", "1", "--success", "--note", "shiny", *where)
    assert cli_says(capsys, "prefer", "1", "0", *where) == "Trial 1 is better than trial 0.\n"
    assert cli_says(capsys, "ranking", *where).startswith("1. trial 1: ")
    assert "Best so far: trial 1" in cli_says(capsys, "best", *where)
    ranked = json.loads(cli_says(capsys, "ranking", "--json", *where))
    assert [(r["number"], r["beat"], r["lost_to"]) for r in ranked] == [(1, [0], []), (0, [], [1])]
    cli_says(capsys, "prefer", "0", "1", "--tie", "--replace", *where)
    assert "about as good as" in cli_says(capsys, "undo", *where)
    assert "Trial 1 is pending" in cli_says(capsys, "undo", *where)


def test_films_are_files_named_after_trials_or_addresses(tmp_path: Path) -> None:
    for name in ("3.gif", "3.mp4", "7.jpg", "x.gif", "8.exe", "../9.gif"[3:] + ".txt"):
        (tmp_path / name).write_bytes(b"")
    films = Films.of(str(tmp_path))
    assert films.known([3, 7]) == {"3": "/api/films/3.mp4", "7": "/api/films/7.jpg"}
    assert films.path("3.gif") == tmp_path / "3.gif"
    assert all(films.path(name) is None for name in ("8.exe", "../3.gif", "4.gif", "x.gif"))
    far = Films.of("https://films.example/run/{number}.webm")
    assert far.known([2]) == {"2": "https://films.example/run/2.webm"}
    assert far.origin == "https://films.example"
    assert Films.of(None).known([1]) == {}


@pytest.mark.parametrize(
    "where", ["/nowhere/at/all", "https://films.example/x.gif", "ftp://a/{number}", "https://a b;c/{number}"]
)
def test_films_that_cannot_be_are_refused(where: str) -> None:
    with pytest.raises(ValueError, match="films must be"):
        Films.of(where)


def test_the_report_ranks_and_says_who_beat_whom(bench: Bench) -> None:
    pytest.importorskip("matplotlib")
    from crashbo.app import report

    bench.prefer(1, 0)
    bench.prefer(0, 2)
    bench.prefer(1, 2, tie=True)
    text = report.of_bench(bench)
    assert "<h2>Ranking</h2>" in text
    assert "lower is better" in text
    assert "the better of two trials" in text
    rows = [row for row in text.split("<tr") if ">1</td>" in row and "±" not in row]
    assert any("0" in row and "2" in row for row in rows)
    assert "None" not in text


def test_a_study_without_comparisons_has_no_ranking(bench: Bench) -> None:
    pytest.importorskip("matplotlib")
    from crashbo.app import report

    assert "<h2>Ranking</h2>" not in report.of_bench(bench)
