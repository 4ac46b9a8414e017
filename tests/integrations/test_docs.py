"""The code of the pages about dying experiments, several goals, Optuna and Dask runs as printed."""

import faulthandler
import gc
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def run(page):
    names: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), flags=re.DOTALL):
        exec(compile(code, page, "exec"), names)
    return names


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_experiments_that_die(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    faulthandler.disable()  # pytest's, which would show a page for every segfault
    result = run("dying.md")["result"]
    assert len(result.trials) == 30
    assert result.best.cost < 0.05
    assert "killed by signal 11 (SIGSEGV)" in {t.reason for t in result.trials}


def test_several_goals():
    names = run("goals.md")
    assert len(names["result"].front) > 5
    assert len(names["study"].directions) == 2


def test_an_optuna_study_that_crashes(capsys):
    seen = run("optuna.md")["seen"]
    # The page's study has no seed, and one interval in ten may miss the truth: only that it is about right is certain.
    assert seen.thresholds["memory"].learned
    assert 5.0 < seen.thresholds["memory"].value < 12.0
    last = capsys.readouterr().out.splitlines()[-1]
    assert (
        last
        == "[(0, 'void', 'the camera was covered'), (1, 'crash', 'boards tripped'), (2, 'void', 'robot was unplugged')]"
    )


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the page leaves its connections to the end of the process
def test_a_fleet(monkeypatch, tmp_path):
    monkeypatch.setenv("STUDY_URL", f"sqlite:///{tmp_path}/study.db")
    assert run("fleet.md")["study"].best_value > 0.6
    gc.collect()


@pytest.mark.filterwarnings("default")  # Dask's own
def test_dask(monkeypatch, tmp_path):
    pytest.importorskip("distributed", reason="Dask is not installed: pip install distributed")
    monkeypatch.chdir(tmp_path)
    result = run("dask.md")["result"]
    assert len(result.trials) == 16
    assert result.best.cost < -0.55


@pytest.mark.filterwarnings("default")  # torch's own
def test_botorch():
    torch = pytest.importorskip("torch", reason="torch is not installed: make test EXTRAS=botorch")
    pytest.importorskip("botorch", reason="botorch is not installed: make test EXTRAS=botorch")
    torch.set_num_threads(1)
    assert tuple(run("botorch.md")["batch"].shape) == (2, 2)
