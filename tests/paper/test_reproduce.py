"""`crashbo reproduce`, whole: what it writes, and that a kill changes nothing."""

import csv
import re
import signal
import subprocess
import sys
import time

import made_up
import pytest

from crashbo.app import plots, result_plots, results
from crashbo.app.cli import main
from crashbo.paper.campaign import Campaign
from crashbo.paper.summary import summarise

COMMAND = [
    sys.executable,
    "-c",
    "import sys; from crashbo.app.cli import main; sys.exit(main(sys.argv[1:]))",
    "reproduce",
]
SMALL = ["--methods", "eicc,ei-ac", "--problems", "eggcrate2d", "--repeats", "4", "--trials", "7", "--workers", "1"]
FILES = {"table1.csv", "runs.csv", "curves.csv", "results.md", "index.html", "figure.png", "curves.png"}


def rows(path):
    return list(csv.reader(path.read_text().splitlines()))


def finished(folder):
    return sum(path.read_bytes().count(b"\n") for path in (folder / "runs").glob("*.jsonl"))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two folders with the same campaign: one was killed half-way and started again."""
    whole, killed = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("killed")
    process = subprocess.Popen([*COMMAND, *SMALL, "--output", killed], stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 120
        while finished(killed) < 2 and process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert 2 <= finished(killed) < 8
    assert not (killed / "table1.csv").exists()
    for folder in (killed, whole):
        done = subprocess.run([*COMMAND, *SMALL, "--output", folder], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "run 8/8" in done.stderr if folder == whole else "run 8/8" not in done.stderr
    return whole, killed


def test_a_campaign_that_was_killed_and_goes_on_gives_the_same_tables(folders):
    whole, killed = folders
    assert rows(whole / "table1.csv") == rows(killed / "table1.csv")
    assert rows(whole / "curves.csv") == rows(killed / "curves.csv")
    timeless = [[row[:-1] for row in rows(folder / "runs.csv")] for folder in folders]
    assert timeless[0] == timeless[1]
    assert len(timeless[0]) == 1 + 8


def test_everything_is_written_and_the_page_needs_nothing_beside_itself(folders):
    whole, _ = folders
    assert {path.name for path in whole.iterdir()} == FILES | {"runs"}
    page = (whole / "index.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert set(re.findall(r"""(?:src|href)=["']?([^"']{5})""", page)) == {"data:"}
    assert "crashbo reproduce --repeats 4 --trials 7 --methods eicc,ei-ac --problems eggcrate2d" in page
    for name in ("figure.png", "curves.png"):
        assert (whole / name).read_bytes().startswith(b"\x89PNG")


def test_the_same_command_again_runs_nothing(folders):
    whole, _ = folders
    done = subprocess.run([*COMMAND, *SMALL, "--output", whole], capture_output=True, text=True)
    assert done.returncode == 0
    assert "run " not in done.stderr


class TestOutcome:
    @pytest.fixture
    def summary(self):
        methods, problems = ("eicc", "eicc-paper", "pibu", "safeopt"), ("hartmann6d", "eggcrate2d")
        campaign = Campaign(methods, problems, 3, 4)
        specs = set(campaign.specs())
        return summarise(campaign, [run for run in made_up.several(methods, problems) if run.spec in specs])

    def test_our_shares_stand_beside_the_papers(self, summary):
        table = results.tables(summary)[0]
        assert table.head == ["Method", "hartmann6d", "hartmann6d, paper", "eggcrate2d", "eggcrate2d, paper"]
        assert table.rows[0] == ["EIC², our risk", "75.00 (0.00)", "69.40 (5.44)", "75.00 (0.00)", "79.41 (12.98)"]
        assert table.rows[3][1:3] == ["-", "-"]  # SafeOpt in six dimensions, and in the paper
        assert "SafeOpt (informed) on hartmann6d: strategy 'safeopt' must have so few parameters" in table.note

    def test_markdown_has_every_table(self, summary):
        text = results.markdown(summary, results.Origin("crashbo reproduce", 2))
        for table in results.tables(summary):
            assert f"## {table.title}" in text
            assert f"| {' | '.join(table.head)} |" in text

    def test_curves_have_a_row_a_trial(self, summary, tmp_path):
        results.write_csv(summary, tmp_path)
        found = rows(tmp_path / "curves.csv")
        assert len(found) == 1 + 4 * len(summary.cells)
        cell = summary.cells["pibu", "eggcrate2d"]
        last = next(row for row in found if row[:3] == ["pibu", "eggcrate2d", "4"])
        assert float(last[3]) == pytest.approx(cell.regret.mean())
        assert float(last[5]) == pytest.approx(1.0)

    def test_figures_show_every_method_that_ran(self, summary, tmp_path):
        figure = result_plots.draw_figure(summary)
        above, below = figure.axes[1], figure.axes[3]  # of the second problem
        assert [t.get_text() for t in above.get_xticklabels()] == ["EIC², our risk", "EIC², paper's rule"]
        assert [t.get_text() for t in below.get_yticklabels()][-1] == "SafeOpt (informed)"
        assert "SafeOpt (informed)" not in [t.get_text() for t in figure.axes[2].get_yticklabels()]
        curves = result_plots.draw_curves(summary)
        assert [len(axes.lines) for axes in curves.axes] == [3, 4, 3, 4]
        plots.save(curves, tmp_path / "curves.png")
        plots.save(figure, tmp_path / "figure.png")

    def test_a_single_repeat_has_no_spread(self):
        campaign = Campaign(("eicc",), ("eggcrate2d",), 1, 4)
        summary = summarise(campaign, [made_up.run(crashes=(2,))])
        assert results.tables(summary)[0].rows == [["EIC², our risk", "75.00 (-)", "79.41 (12.98)"]]
        result_plots.draw_figure(summary)


def test_the_quadruped_joins_from_the_paper_s_own_start(tmp_path):
    pytest.importorskip("mujoco")
    small = ["--methods", "eicc,random", "--repeats", "1", "--trials", "3", "--workers", "1", "--output", str(tmp_path)]
    assert main(["reproduce", "--solo8", *small]) == 0
    assert {row[1] for row in rows(tmp_path / "runs.csv")[1:]} == {"solo8-jump"}
    regrets = [row for row in rows(tmp_path / "curves.csv")[1:] if row[2] == "1"]
    assert len({row[3] for row in regrets}) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--methods", "magic"], "methods must be different ones of"),
        (["--problems", "magic"], "problems must be different ones of"),
        (["--repeats", "-3"], "repeats must be a whole number, at least 1; got -3"),
        (["--solo8", "--problems", "lsq"], "--solo8 must come without --problems"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(arguments, words, tmp_path, capsys):
    assert main(["reproduce", "--output", str(tmp_path / "out"), *arguments]) == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
