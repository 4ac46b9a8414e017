"""The report of a benchmark: its words, its tables and its page."""

import csv
import re
from html import unescape

import numpy as np
import pytest

from fake_runs import fake, fakes

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'crashbo[plot]'")

from crashbo.app.benchmark import plots, report, tables
from crashbo.app.benchmark.report import BenchmarkOrigin
from crashbo.app.benchmark.words import number, seconds, signed
from crashbo.benchmark.summary import STEPS, Summary, priced_score

ORIGIN = BenchmarkOrigin(
    "crashbo benchmark --seeds 2", 2, {"crashbo": "9.9", "optuna": "4.4"}, {"hebo": "its library is <missing>"}
)


def ended(base):
    return lambda seed: base + 0.01 * seed


@pytest.fixture(scope="module")
def summary():
    """Ours leads on bowl, loses on labels with 4 parameters; two cases of valley tell nothing; things go wrong."""
    others = {"random": ended(0.5), "oracle": ended(0.01), "pibu": ended(0.4), "their:method": ended(0.45)}
    runs = fakes({"eicc": ended(0.05), "eicc-labels": ended(0.42), **others}, problem="bowl", dimension=4)
    runs += fakes({"eicc": ended(0.05), "eicc-labels": ended(0.42), **others}, problem="bowl", dimension=16)
    of_labels = {"eicc": ended(0.6), "eicc-labels": ended(0.6), **others}
    runs += fakes(of_labels, problem="labels", dimension=4, measured=False, started=False)
    runs += fakes({"eicc": 0.1, "eicc-labels": 0.1, **others}, problem="valley", dimension=2, seeds=2)
    runs = [run for run in runs if (run.spec.method, run.spec.case.problem, run.spec.case.seed) not in _ODD]
    return Summary.of([*runs, *_odd_runs()])


_ODD = {("their:method", "valley", 0), ("their:method", "valley", 1), ("random", "valley", 1)}


def _odd_runs():
    failure = "Traceback (most recent call last):\n  File ...\nValueError: no <room> left"
    yield fake("their:method", [0.9], problem="valley", dimension=2, seed=0, trials=3, error=failure)
    yield fake("their:method", [0.9, 0.4], problem="valley", dimension=2, seed=1, trials=3)
    yield fake("random", [None, 0.9, 0.5], truths=[None, -0.25, 0.5], problem="valley", dimension=2, seed=1)


@pytest.fixture(scope="module")
def page(summary):
    return report.page(summary, ORIGIN)


@pytest.fixture(scope="module")
def folder(summary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables") / "new"
    tables.write(summary, folder)
    return folder


def rows(folder, name):
    with open(folder / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def words_of(html):
    """The text of a page, without its style and pictures."""
    html = re.sub(r"<style>.*?</style>|<img[^>]*>", "", html, flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]+>", " ", html)).replace("\xa0", " ")


def table_after(html, heading):
    """Rows of the first table after a heading, by what stands first in them; without what is small."""
    table = re.search(r"<table.*?</table>", html[html.index(f"<h2>{heading}</h2>") :], re.DOTALL).group()
    lines = [re.findall(r"<span>(.*?)</span>", line) for line in re.findall(r"<tr.*?</tr>", table, re.DOTALL)]
    return {line[0]: line[1:] for line in lines}


def test_the_page_has_every_section_in_order(page):
    assert re.findall(r"<h2>(.*?)</h2>", page) == [
        "In a minute",
        "Solved against trials",
        "Where we lead and where we lose",
        "Overview",
        "Regret and crashes",
        "Wasted trials and time",
        "Regret on each family",
        "Crashes on each family",
        "Regret against trials on each family",
        "Definitions",
        "How it was made",
    ]
    # The profile; all cases and three groups; effort, families.
    assert page.count("<img ") == 7


def test_the_first_table_is_by_group_with_the_mean_of_the_groups(summary, page):
    shown = table_after(page, "In a minute")
    assert shown["method"] == ["smooth measured", "smooth labels only", "many parameters", "mean of groups"]
    assert "crashbo, labels only" not in shown  # it stands under the name of ours, in the column of its own
    groups = summary.groups
    for name, label in (("eicc", "crashbo"), ("random", "Random")):
        means = [float(np.mean(part.values(name, priced_score))) for part in groups.values()]
        assert shown[label] == [number(x) for x in (*means, np.mean(means))]


def test_the_page_needs_nothing_from_elsewhere(page):
    assert not re.search(r"https?://|<script|<link|@import|url\(|javascript:", page)
    assert set(re.findall(r"src='(.{22})", page)) == {"data:image/png;base64,"}


def test_big_numbers_count_what_was_run(summary, page):
    found = dict(re.findall(r"<div><b>([\d,]+)</b>([a-z ]+)</div>", page))
    assert {what: n for n, what in found.items()} == {
        "cases": "26",
        "methods": "6",
        "trials": str(26 * 6 * 3 - 3),
        "crashes seen": str(26 * 6 - 2),
    }


def test_words_tell_leads_and_losses_alike(summary):
    words = report.in_words(summary)
    own = words[: words.index("crashbo, labels only, beside the best peer in hindsight:")]
    assert own[0] == "crashbo, beside the best peer in hindsight:"
    lead = (
        "We lead on bowl: 0.085 against 0.48 of their:method, difference -0.40 (-0.40 to -0.40), "
        "with 33 % crashes against 33 %."
    )
    lose = (
        "We lose on labels: 0.64 against 0.48 of their:method, difference +0.15 (+0.15 to +0.15), "
        "with 33 % crashes against 33 %."
    )
    assert [line for line in own if line.startswith("We lead on bowl:")] == [lead]
    assert lose in own
    assert any(line.startswith("We lead on smooth measured:") for line in own)
    assert any(line.startswith("Too few to tell, on families") and "valley" in line for line in own)


def test_the_page_shows_all_that_is_said(summary, page):
    text = re.sub(r"\s+", " ", words_of(page))
    for line in report.in_words(summary):
        assert re.sub(r"\s+", " ", line).removesuffix(":") in text


def test_a_loss_stands_beside_the_leads():
    runs = fakes({"eicc": 0.1, "random": 0.5}, problem="bowl")
    runs += fakes({"eicc": 0.9, "random": 0.5}, problem="valley")
    html = report.page(Summary.of(runs), ORIGIN)
    sides = re.search(r"<div class='sides'>(.*?)</div></div>", html, re.DOTALL).group(1)
    lead, lose = sides.split("<div class='lose'>")
    assert "Leads on families: 1" in lead
    assert "<b>We lead</b> on bowl" in lead
    assert "Losses on families: 1" in lose
    assert "<b>We lose</b> on valley" in lose


def test_the_largest_lead_and_the_largest_loss_come_first():
    ends = {"bowl": 0.4, "decades": 0.1, "noisy": 0.6, "valley": 0.9}
    runs = [run for problem, end in ends.items() for run in fakes({"eicc": end, "random": 0.5}, problem=problem)]
    words = report.in_words(Summary.of(runs))
    assert [line.split(":")[0] for line in words if " on " in line and "smooth" not in line] == [
        *("We lose on valley", "We lose on noisy", "We lead on decades", "We lead on bowl"),
    ]


def test_runs_that_failed_ended_early_or_beat_the_optimum_are_named(summary, page):
    for words in report.in_words(summary), [re.sub(r"\s+", " ", words_of(page))]:
        text = "\n".join(words)
        assert "their:method failed in 1 of 26 runs: valley, 2 parameters, seed 0 (ValueError: no <room> left)." in text
        assert "their:method ended early in 1 of 26 runs: valley, 2 parameters, seed 1 (2 of 3 trials)." in text
        assert "1 run got below the optimum on file: valley, 2 parameters, seed 1 (Random, by 0.25 of the span)" in text
    assert "<room>" not in page


def test_if_nothing_went_wrong_the_page_says_so():
    html = report.page(Summary.of(fakes({"eicc": 0.1, "random": 0.5})), ORIGIN)
    assert "No run failed, ended early or got below an optimum on file." in html


def test_many_failures_are_counted():
    runs = fakes({"eicc": 0.1}) + [fake("random", [], trials=3, seed=seed, error="gone") for seed in range(8)]
    (failed,) = [line for line in report.in_words(Summary.of(runs)) if "failed" in line]
    assert failed.startswith("Random failed in 8 of 8 runs: bowl, 4 parameters, seed 0 (gone);")
    assert failed.endswith("and 3 more, see runs.csv.")


def test_the_overview_can_be_computed_from_the_trials(summary, page, folder):
    trials, runs = rows(folder, "trials.csv"), rows(folder, "runs.csv")
    assert len(runs) == 26 * 6
    shown = table_after(page, "Overview")
    assert shown["method"][:5] == ["regret at the end", "over the run", "a crash costs 5", "costs 20", "crashes"]
    for method, label in (("eicc", "crashbo"), ("random", "Random"), ("their:method", "their:method")):
        last: dict[tuple[str, ...], float] = {}
        scores: dict[tuple[str, ...], list[float]] = {}
        own = [row for row in trials if row["method"] == method]
        for row in own:
            key = row["problem"], row["dimension"], row["seed"]
            last[key] = float(row["score"])
            scores.setdefault(key, []).append(float(row["score"]))
        assert len(last) == 26
        crashes = sum(int(row["crashed"]) for row in own) / (26 * 3)
        expected = [
            number(np.mean(list(last.values()))),
            number(np.mean([np.mean([*found, *[found[-1]] * (3 - len(found))]) for found in scores.values()])),
            f"{100 * crashes:.0f} %",
        ]
        assert [shown[label][i] for i in (0, 1, 4)] == expected


def test_the_overview_is_in_order_and_marks_ours_and_the_oracle(page):
    table = re.search(r"<table.*?</table>", page[page.index("<h2>Overview</h2>") :], re.DOTALL).group()
    classes = re.findall(r"<tr class='(\w*)'><td><span>(.*?)</span>", table)
    assert classes[:2] == [("oracle", "Oracle"), ("ours", "crashbo")]
    assert ("ours", "crashbo, labels only") in classes
    assert "the line to approach" in table
    means = [float(mean) for mean in re.findall(r"</td><td><span>([\d.]+)</span><small>", table)]
    assert len(means) == 6
    assert means == sorted(means)


def test_curves_can_be_computed_from_the_trials(summary, folder):
    runs: dict[tuple[str, ...], list[float]] = {}
    for row in rows(folder, "trials.csv"):
        if row["method"] == "eicc":
            runs.setdefault((row["problem"], row["dimension"], row["seed"]), []).append(float(row["score"]))
    after_two = float(np.mean([scores[1] for scores in runs.values()]))
    drawn = summary.curves("eicc", plots.scores, 1.0).mean(axis=0)
    assert drawn[round(0.70 * STEPS)] == pytest.approx(after_two)  # two of three trials
    figure = plots.draw_curves(summary, plots.looks(summary))
    ours = list(plots.looks(summary)).index("eicc")
    assert figure.axes[0].lines[ours].get_ydata() == pytest.approx(drawn)


def test_rows_of_a_run_tell_what_happened(folder):
    run = next(row for row in rows(folder, "runs.csv") if row["error"])
    assert tuple(run) == tables.RUNS
    assert (run["method"], run["trials"], run["trials_made"], run["final_regret"]) == ("their:method", "3", "1", "0.9")
    assert run["error"].endswith("ValueError: no <room> left")
    first, second, third = [
        row
        for row in rows(folder, "trials.csv")
        if (row["method"], row["problem"], row["seed"]) == ("eicc", "labels", "3")
    ]
    assert tuple(first) == tables.TRIALS
    assert (first["cost"], first["true_cost"], first["crashed"], first["regret"], first["score"]) == (
        "",
        "",
        "1",
        "",
        "1.0",
    )
    assert (second["trial"], second["cost"], second["crashed"], second["regret"]) == ("2", "0.9", "0", "0.9")
    assert float(third["cost"]) == 0.6 + 0.01 * 3  # to the last digit


def test_a_run_without_a_success_has_no_regret(tmp_path):
    tables.write(Summary.of([fake("eicc", [None, None]), fake("random", [], trials=2)]), tmp_path)
    crashed, lost = rows(tmp_path, "runs.csv")
    assert (crashed["final_regret"], crashed["score"], crashed["crashes"]) == ("", "1.0", "2")
    assert (lost["final_regret"], lost["trials_made"], lost["seconds_per_suggestion"]) == ("", "0", "")


def test_the_summary_table_has_every_group(summary, folder):
    found = {(row["group_kind"], row["group"], row["method"]): row for row in rows(folder, "summary.csv")}
    assert tuple(next(iter(found.values()))) == tables.GROUPS
    bowl = found["problem", "bowl", "eicc"]
    assert (bowl["cases"], float(bowl["mean_score"])) == ("16", pytest.approx(0.085))
    assert float(bowl["low"]) < 0.085 < float(bowl["high"])
    assert found["problem", "valley", "eicc"]["low"] == ""  # two cases
    assert {kind for kind, _, _ in found} == {
        *("all", "group", "problem", "problem and dimension"),
    }


def test_families_in_colour_mark_the_best_peer_and_sure_verdicts(page):
    table = re.search(r"<table class='heat'.*?</table>", page, re.DOTALL).group()
    lines = re.findall(r"<tr class=''>.*?</tr>", table, re.DOTALL)
    assert len(lines) == 4
    for line in lines:
        assert len(re.findall(r"<td class='[^']*\bpeer\b", line)) == 1
    bowl, _, labels, valley = lines
    assert re.search(r"<td class='shade2 ours first'><span>0.09✓<", bowl)
    assert re.search(r"ours first'><span>0.64✗<", labels)
    assert "✓" not in valley  # two cases
    assert "✗" not in valley


def test_the_origin_and_what_was_left_out_stand_at_the_end(page):
    end = page[page.index("<h2>How it was made</h2>") :]
    assert "<code>crashbo benchmark --seeds 2</code>" in end
    assert "crashbo 9.9, optuna 4.4; 2 cores." in end
    assert "hebo: its library is &lt;missing&gt;" in end


def test_before_any_case_is_finished_there_is_a_page_and_a_table(tmp_path):
    summary = Summary.of([fake("eicc", [0.1], seed=0), fake("random", [], trials=1, seed=1, error="gone")])
    assert report.in_words(summary)[0] == "No case has been finished by all methods yet."
    html = report.page(summary, ORIGIN)
    assert "2 cases under way" in html
    assert "Random failed in 1 of 1 run" in html
    tables.write(summary, tmp_path)
    assert rows(tmp_path, "runs.csv") == []


def test_without_a_peer_the_page_says_so():
    html = report.page(Summary.of(fakes({"eicc": 0.1, "pibu": 0.2})), ORIGIN)
    assert "There is no peer to compare with." in html


def test_every_method_has_a_look_of_its_own():
    names = [f"their:{i}" for i in range(20)]
    look = plots.looks(Summary.of(fakes({"eicc": 0.1, "eicc-labels": 0.2, **dict.fromkeys(names, 0.5)})))
    assert len({(style.color, str(style.dash), style.marker) for style in look.values()}) == 22
    assert [method for method, style in look.items() if style.banded] == ["eicc", "eicc-labels", "their:0"]


@pytest.mark.parametrize("heights", [[0.5, 0.5, 0.5], [0.0, 0.0, 0.01, 1.0], [0.2, 0.6], [0.98, 0.99, 1.0]])
def test_labels_are_moved_apart_and_stay_in_the_panel(heights):
    found = plots.spread(heights, 0.05)
    assert min(np.diff(found)) >= 0.05 - 1e-12
    assert found[0] >= 0.0
    assert found[-1] <= 1.0 + 1e-12


def test_labels_with_room_stay_where_they_are():
    assert plots.spread([0.1, 0.2, 0.9], 0.05) == pytest.approx([0.1, 0.2, 0.9])
    assert plots.spread([0.1, 0.5, 0.5, 0.9], 0.1) == pytest.approx([0.1, 0.45, 0.55, 0.9])


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.234, "0.23"), (0.0512, "0.051"), (0.00512, "0.0051"), (0.0, "0"), (1e-6, "0"), (np.nan, "-"), (-0.2, "-0.20")],
)
def test_numbers_have_two_digits_and_no_exponents(value, text):
    assert number(value) == text


def test_a_difference_has_its_sign():
    assert [signed(x) for x in (0.2, -0.2, 0.0, 1e-9)] == ["+0.20", "-0.20", "0", "0"]


@pytest.mark.parametrize(("value", "text"), [(0.0004, "0.4 ms"), (0.25, "250 ms"), (12.34, "12.3 s"), (np.nan, "-")])
def test_times_have_the_unit_that_fits(value, text):
    assert seconds(value) == text


def test_a_page_is_written_even_if_every_run_was_lost(tmp_path):
    summary = Summary.of([fake("eicc", [], trials=3), fake("random", [], trials=3)])
    assert "<title>" in report.page(summary, ORIGIN)


def test_tuning_seeds_are_called_so_and_reporting_seeds_are_not():
    tuning = fakes({"eicc": 0.1, "random": 0.5}, seeds=2)
    reporting = [fake(method, [None, 0.4], seed=100) for method in ("eicc", "random")]
    assert "tuning seeds" in report.page(Summary.of(tuning), ORIGIN)
    assert "tuning seeds" not in report.page(Summary.of(reporting), ORIGIN)


def test_a_method_that_answers_at_once_is_drawn_at_the_last_digit_of_the_time(tmp_path):
    """Zero has no place on a logarithmic axis, and took the whole figure with it."""
    summary = Summary.of(fakes({"eicc": 0.2}) + fakes({"their:method": 0.4}, seconds=0.0))
    figure = plots.draw_effort(summary, plots.looks(summary))
    figure.savefig(tmp_path / "effort.png")
    assert figure.axes[1].get_xlim()[0] < 1e-5
