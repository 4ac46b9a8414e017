"""Every block of code of the README and of the site does what the page says. How pages speak to it: see pages.py."""

import faulthandler
import gc
import os
import sys
import warnings

import pytest

import crashbo
import pages
from crashbo.app.bench import Definition

KINDS = {"python", "sh", "toml", "csv", "text", "cpp", "matlab"}
SKIPPED = 7  # blocks that a page declares not to be run; a new one is counted here, so that somebody looks at it
FOREIGN = {"docs/dask.md", "docs/botorch.md"}  # other libraries warn there
SYSTEM = {"docs/dying.md": "linux", "docs/howto/simulation.md": "linux", "docs/howto/training.md": "linux"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CRASHBO_STORE", raising=False)
    before = dict(os.environ)
    yield tmp_path
    gc.collect()
    os.environ.clear()
    os.environ.update(before)


def with_code(page):
    return any(b.language == "python" or "run" in b.notes for b in pages.blocks(page))


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # pages leave their connections to the end of the process
@pytest.mark.parametrize("page", [page for page in pages.PAGES if with_code(page)])
def test_the_code_of_a_page_runs_as_printed(page, folder, capsys):
    for module in {m for b in pages.blocks(page) for m in b.said("needs")}:
        pytest.importorskip(module, reason=f"{page} needs {module}")
    if SYSTEM.get(page, sys.platform) != sys.platform:
        pytest.skip(f"{page} is about {SYSTEM[page]}")
    faulthandler.disable()  # pytest's, which would show a page for every segfault
    with warnings.catch_warnings():
        if page in FOREIGN:
            warnings.simplefilter("default")
        names = pages.run_page(page, folder)
    printed = iter(capsys.readouterr().out.splitlines())
    for line in pages.promised(page):
        assert line in printed, f"{page} does not print {line!r}, or not in this order"
    CHECKS.get(page, lambda names: None)(names)


@pytest.mark.parametrize("page", pages.PAGES)
def test_the_commands_of_a_page_exist_with_their_options(page):
    found = pages.blocks(page)
    known = {b.file for b in found if b.file is not None}
    for block in found:
        if block.language == "sh" and not block.skipped:
            for words in pages.commands(block.code):
                pages.check_command(words, known)
    for words in pages.mentions(page):
        pages.check_mention(words)


@pytest.mark.parametrize("block", [b for p in pages.PAGES for b in pages.blocks(p) if b.language == "toml"], ids=str)
def test_a_file_of_a_study_defines_one(block, tmp_path):
    (tmp_path / "study.toml").write_text(block.code)
    assert Definition.from_toml(tmp_path / "study.toml").space.parameters


def test_no_block_is_left_out_without_a_word():
    found = [block for page in pages.PAGES for block in pages.blocks(page)]
    assert {block.language for block in found} <= KINDS
    for block in found:
        if block.language in ("cpp", "matlab"):
            assert block.skipped, f"{block} is run by nothing: say why"
    skips = [f"{block}: {block.said('skip')}" for block in found if block.skipped]
    for block in found:
        for runner in block.said("elsewhere"):
            mine = [
                b for b in pages.blocks(block.page) if "run" in b.notes and runner in b.code and block.file in b.code
            ]
            assert mine, f"{block} is run by no {runner} on its page"
    assert len(skips) == SKIPPED, "\n".join(skips)
    assert all(reason for block in found if block.skipped for reason in block.said("skip"))


def dying(names):
    result = names["result"]
    assert len(result.trials) == 30
    assert result.best.cost < 0.05
    assert "killed by signal 11 (SIGSEGV)" in {t.reason for t in result.trials}


def compared(names):
    assert names["optimizer"].worth(names["optimizer"].best.params).std > 0.0


def goals(names):
    assert len(names["result"].front) > 5
    assert len(names["study"].directions) == 2


def optuna_study(names):
    # The page's study has no seed, and one interval in ten may miss the truth: only that it is about right is certain.
    assert names["seen"].thresholds["memory"].learned
    assert 5.0 < names["seen"].thresholds["memory"].value < 12.0
    assert [t.state for t in names["records"](names["study"])] == ["void", "crash", "void"]


def fleet(names):
    assert names["study"].best_value > 0.6


def dask(names):
    assert len(names["result"].trials) == 16
    assert names["result"].best.cost < -0.55


def botorch(names):
    assert tuple(names["batch"].shape) == (2, 2)


def guard(names):
    assert sum(t.state == "crash" for t in names["result"].trials) <= 5


def benchmark(names):
    assert names["problem"].name == "press"
    assert isinstance(names["problem"], crashbo.problems.Problem)


CHECKS = {
    "docs/dying.md": dying,
    "docs/compare.md": compared,
    "docs/goals.md": goals,
    "docs/optuna.md": optuna_study,
    "docs/fleet.md": fleet,
    "docs/dask.md": dask,
    "docs/botorch.md": botorch,
    "docs/guard.md": guard,
    "docs/benchmark.md": benchmark,
}


class TestTheTestItself:
    @pytest.mark.parametrize(
        "line",
        [
            "crashbo ask --colour red",
            "crashbo dance",
            "python benchmarks/families/peers.py --colour red",
            "python benchmarks/nothing.py",
            "pip install 'crashbo[teapot]'",
            "make tea",
            "curl http://127.0.0.1",
            "OPENBLAS_NUM_THREADS=1 .venv/bin/crashbo dance",
        ],
    )
    def test_a_command_that_does_not_exist_is_found(self, line):
        (words,) = pages.commands(line)
        with pytest.raises((AssertionError, FileNotFoundError)):
            pages.check_command(words, set())

    @pytest.mark.parametrize("words", [["dance"], ["ask", "--colour"]])
    def test_so_is_a_mention_of_one(self, words):
        with pytest.raises(AssertionError):
            pages.check_mention(words)

    @pytest.mark.parametrize("swap", ["trials=50 -> seeds=5", "trials=7 -> trials=5", "x > 3 -> x < 3"])
    def test_nothing_but_a_budget_may_change_and_it_must_be_there(self, swap):
        block = pages.Block("page", 1, "python", "run(trials=50, x > 3)", (f"with: {swap}",))
        with pytest.raises(AssertionError):
            _ = block.smaller

    def test_a_budget_is_made_smaller(self):
        block = pages.Block("page", 1, "python", "run(trials=50)", ("with: trials=50 -> trials=5",))
        assert block.smaller == "run(trials=5)"
