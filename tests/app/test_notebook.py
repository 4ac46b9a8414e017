"""Studies in notebooks and scripts: a page that runs as a notebook, pictures, reports, files on the command line."""

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

import crashbo as cb
from crashbo.app.cli import main
from crashbo.optimizer.progress import LineProgress, TerminalProgress, progress_of

pytest.importorskip("matplotlib")
PAGE = (Path(__file__).parents[2] / "docs" / "notebooks.md").read_text(encoding="utf-8")
SPACE = {"knee": (0.0, 1.0), "hip": (0.0, 1.0)}
HOSTILE = "<script>alert(1)</script> & 'more'"


def experiment(params):
    current = 5.0 * params["knee"] + 3.0 * params["hip"]
    if current > 6.0:
        raise cb.Crash(HOSTILE)
    return cb.Outcome(-params["knee"] * params["hip"], {"current": current})


def told(**options):
    optimizer = cb.Optimizer(SPACE, ["current"], **options)
    for i in range(8):
        params = {"knee": i / 8, "hip": (3 * i % 8) / 8}
        try:
            found = experiment(params)
            goals = {"time": found.cost, "yield": 1.0 - params["hip"]}
            cost = {"success": True} if options.get("cost") else {"cost": goals if options else found.cost}
            optimizer.tell(params, **cost, measured=found.measured)
        except cb.Crash as crash:
            optimizer.tell(params, crash=crash)
    return optimizer


@pytest.fixture(scope="module")
def optimizer():
    return told()


@pytest.fixture(scope="module")
def of_goals():
    return told(objectives={"time": "minimize", "yield": "maximize"})


@pytest.fixture(scope="module")
def compared():
    study = told(cost="compared")
    study.prefer(1, 0)
    study.prefer(2, 1)
    return study


@pytest.fixture
def run(capsys):
    def run(*arguments):
        code = main([str(word) for word in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """The page, each block of code a cell, executed."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    codes = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in codes])
    where = {"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}}
    nbclient.NotebookClient(made, timeout=120, kernel_name="python3", resources=where).execute()
    return made


def outputs(cell):
    return [{"kind": o.output_type, **o.get("data", {}), "text": o.get("text", "")} for o in cell.outputs]


@pytest.mark.filterwarnings("default")  # Jupyter's own
def test_the_page_is_a_notebook_that_runs_and_shows_progress_summary_picture_and_table(notebook):
    first, pictures, table, *_ = map(outputs, notebook.cells)
    progress, shown = first
    assert progress["text/plain"].startswith("trial 15/15 · best -0.")
    assert "linear-gradient" in progress["text/html"]
    assert "stream" not in {o["kind"] for o in first}  # which would be red, and in a place of its own
    assert "<b style='font-size:17px'>15</b> trials" in shown["text/html"]
    assert shown["text/plain"].startswith(
        "<Result: 15 trials; <Optimizer of knee, hip to minimize cost; crashes by current: "
    )
    assert pictures[-1]["image/png"].startswith("iVBOR")
    assert "boards tripped" in table[-1]["text/html"]


@pytest.mark.filterwarnings("default")
def test_the_page_shows_what_its_dry_run_says(notebook):
    (said,) = re.findall(r"```text\n(.*?)```", PAGE, flags=re.DOTALL)
    assert said in [o["text"] for cell in notebook.cells for o in outputs(cell)]


@pytest.mark.parametrize("study", ["optimizer", "of_goals", "compared"])
def test_every_picture_of_a_study_is_drawn_and_shows_itself(study, request):
    study = request.getfixturevalue(study)
    first = {"optimizer": "cost", "of_goals": "front", "compared": "ranking"}[request.node.callspec.params["study"]]
    with pytest.raises(ValueError, match=f"what must be one of '{first}', 'current', 'influence', 'slice'; got 'x'"):
        study.plot("x")
    for what in (None, "current", "influence", "slice"):
        assert study.plot(what)._repr_png_().startswith(b"\x89PNG")
    assert len(study.plot("slice", axes=["hip"]).axes) >= 2


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"what": "slice", "axes": "knee"}, "axes must be a list of parameters; got 'knee'"),
        ({"what": "slice", "axes": ["ankle"]}, "axis must be one of knee, hip; got 'ankle'"),
        ({"axes": ["knee"]}, "axes must go with 'slice'"),
    ],
)
def test_a_picture_that_cannot_be_drawn_is_refused(optimizer, how, words):
    with pytest.raises(ValueError, match=words):
        optimizer.plot(**how)
    with pytest.raises(ValueError, match="plot must have a trial that was told; there is none yet"):
        cb.Optimizer(SPACE).plot()


def test_a_picture_of_a_conditional_space_with_rules_and_a_context_is_drawn():
    space = {
        "solver": cb.Choice(["direct", "multigrid"]),
        "levels": cb.Int(2, 6, when={"solver": "multigrid"}),
        "step": cb.Float(0.01, 1.0, log=True),
        "temperature": cb.Context(5.0, 40.0),
    }
    optimizer = cb.Optimizer(space, [cb.Constraint("margin", side="below")], rules=["step <= 0.9"])
    for i in range(6):
        trial = optimizer.ask(context={"temperature": 10.0 + i})
        optimizer.tell(trial, **({"crash": True} if i == 4 else {"cost": float(i), "measured": {"margin": 1.0 + i}}))
    optimizer.ask(context={"temperature": 20.0})  # pending
    for what in (None, "margin", "influence", "slice"):
        assert optimizer.plot(what) is not None
    assert "margin" in optimizer._repr_html_()


@pytest.mark.parametrize("study", ["optimizer", "of_goals", "compared"])
def test_a_report_is_one_page_that_says_what_the_optimizer_says(study, request, tmp_path):
    study = request.getfixturevalue(study)
    path = study.report(tmp_path / "new" / "jump.html")
    text = path.read_text(encoding="utf-8")
    assert "<h1>jump</h1>" in text
    assert study.thresholds["current"].words in text
    assert "<script>" not in text
    assert {"<h2>Front</h2>": bool(study.study.objectives), "<h2>Ranking</h2>": study.study.compared} == {
        words: words in text for words in ("<h2>Front</h2>", "<h2>Ranking</h2>")
    }
    with pytest.raises(ValueError, match="path must be a place that can be written to"):
        study.report(tmp_path)


def test_a_report_before_any_trial_is_one_too(tmp_path):
    assert "No trial has succeeded yet" in cb.Optimizer(SPACE).report(tmp_path / "empty.html").read_text()


def test_the_summary_is_escaped_says_the_thresholds_in_words_and_takes_the_colours_around_it(optimizer):
    text = cb.Result(optimizer, "8 trials")._repr_html_()
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert optimizer.thresholds["current"].words in text
    assert "Result · 8 trials" in text
    assert not re.search(r"[;' ]color:(?!#D55E00)|background:(?!transparent)", text)


def test_the_summary_tells_of_front_winner_and_nothing_yet(of_goals, compared):
    assert f"{len(of_goals.front)} trials, hypervolume" in of_goals._repr_html_()
    assert f"trial {compared.best.number}, at knee" in compared._repr_html_()
    assert "<b style='font-size:17px'>0</b> trials" in cb.Optimizer(SPACE)._repr_html_()


def test_a_summary_of_one_trial_and_no_named_cause_reads_as_a_sentence():
    optimizer = cb.Optimizer({"x": (0.0, 1.0)})
    optimizer.tell({"x": 0.5}, cost=-0.0)
    shown = optimizer._repr_html_()
    assert ">0<" in shown
    assert ">-0<" not in shown
    assert "<div>Lowest cost over x</div>" in shown
    assert "<b style='font-size:17px'>1</b> success<" in shown


def test_a_glance_at_thousands_of_trials_fits_nothing():
    optimizer = cb.Optimizer(SPACE, ["current"])
    optimizer.tell_table([{"knee": i / 3000, "hip": 0.1, "cost": float(i), "current": 1.0} for i in range(3000)])
    assert "3000 trials take a while to fit" in optimizer._repr_html_()
    assert "trial 0, cost 0" in optimizer._repr_html_()
    assert not optimizer.is_viewed


def kept(tmp_path):
    """The same study as a journal that somebody is writing to, and as JSON."""
    journal, saved = tmp_path / "study.jsonl", tmp_path / "study.json"
    result = cb.minimize(experiment, SPACE, constraints=["current"], trials=5, journal=journal, progress=False)
    saved.write_text(result.optimizer.to_json())
    journal.write_bytes(journal.read_bytes() + b'{"event": "te')
    return result, journal, saved


def test_every_command_that_looks_reads_journals_and_saved_studies(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result, *files = kept(tmp_path)
    for file in files:
        before = file.read_bytes()
        assert f"Best so far: trial {result.best.number}" in run("best", file)[1]
        assert len(run("trials", file)[1].splitlines()) == 6
        assert run("report", file)[1].strip() == "study.html"
        (tmp_path / "study.html").unlink()
        assert file.read_bytes() == before
    assert "current: " in run("thresholds", files[0])[1]
    assert run("trials", files[0], "--csv")[1].startswith("number,knee,hip,cost,current,state")
    assert run("check", files[0])[0] == 0
    assert "FILE must be given without --store" in run("best", files[0], "--store", "x.db")[2]
    assert "--import must go into a store" in run("trials", files[0], "--import", "x.csv")[2]


def test_the_ranking_of_compared_trials_is_read_from_a_file(compared, tmp_path, run):
    path = tmp_path / "judged.json"
    path.write_text(compared.to_json())
    assert run("ranking", path)[1].startswith(f"1. trial {compared.best.number}: ")


def test_a_loaded_study_goes_on_with_the_same_proposals_and_a_journal_is_written_on(tmp_path):
    result, journal, saved = kept(tmp_path)
    expected = result.optimizer.ask().params
    for file in (journal, saved):
        assert cb.load(file).ask().params == expected
    with cb.journaled(journal, cb.load(journal)) as optimizer:
        assert optimizer.ask().params == expected
        assert "6</b> trials" in optimizer._repr_html_()
    assert cb.load(journal).trials[-1].state == "pending"


def test_files_that_hold_no_study_are_refused_with_a_sentence(tmp_path):
    path = tmp_path / "some.file"
    for data, words in {
        b"": "is neither",
        b"\xff\xfe": "is neither",
        b'{"crashbo_journal": 9, "config": {}}\n': "its format is 9, not 1",
        b'{"crashbo_journal": 1, "config": {}}\n[1]\n': "line 2 is no event",
        b'{"crashbo_journal": 1, "config": {}}\n{"event": "tell"}\n': "line 2 is no event",
        b'{"crashbo": 1, "config": {}, "trials": [], "state": {}}': "is neither",
        b"SQLite format 3\x00": "is a store of Optuna's. See",
    }.items():
        path.write_bytes(data)
        with pytest.raises(ValueError, match=words):
            cb.load(path)
    with pytest.raises(ValueError, match="path must be a text file that can be read"):
        cb.load(tmp_path)


def own_strategy(task, rng):
    return cb.strategies.get("random")(task, rng)


def test_what_is_a_users_own_must_be_passed_again_and_it_says_so(tmp_path):
    path = tmp_path / "study.json"
    path.write_text(cb.Optimizer(SPACE, strategy=own_strategy).to_json())
    with pytest.raises(ValueError, match=r"^strategy must be passed again to go on with this study"):
        cb.load(path)
    assert cb.load(path, strategy=own_strategy).trials == []


def test_a_log_has_a_line_per_trial_and_no_carriage_return(tmp_path):
    code = """
import crashbo
def experiment(p):
    if p["x"] > 0.5: raise crashbo.Crash("two\\nlines")
    return p["x"]
crashbo.minimize(experiment, {"x": (0.0, 1.0)}, trials=4, start=[{"x": 0.2}, {"x": 0.9}], progress=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)  # as bytes, as a log has it
    lines = done.stderr.decode().splitlines()
    assert b"\r" not in done.stderr
    assert len(lines) == 4
    assert lines[0].startswith("trial 1/4 · success, cost 0.2 · best 0.2 · crashes 0")
    assert lines[1].startswith("trial 2/4 · crash: two lines · best 0.2 · crashes 1")


def test_progress_suits_where_it_is_shown(monkeypatch):
    assert progress_of(None) is None  # a log, unless it is asked for
    assert isinstance(progress_of(True), LineProgress)
    assert progress_of(False) is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert isinstance(progress_of(None), TerminalProgress)


def test_a_line_that_is_rewritten_never_wraps(monkeypatch, optimizer):
    monkeypatch.setenv("COLUMNS", "30")
    stream = io.StringIO()
    shown = TerminalProgress(stream)
    for _ in range(2):
        shown(optimizer, optimizer.trials[-1], 8)
    shown.close()
    assert max(map(len, stream.getvalue().rstrip("\n").split("\r"))) <= 29


def test_whoever_lacks_an_extra_is_told_how_to_install_it(monkeypatch, optimizer, tmp_path):
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.delitem(sys.modules, "crashbo.integrations.pandas", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"a data frame needs pandas, .* pip install 'crashbo\[notebook\]'"):
        optimizer.to_dataframe()
