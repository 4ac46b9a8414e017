"""`crashbo benchmark`: a tiny one from beginning to end, what it refuses, and parts of one's own."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from crashbo.app.benchmark.campaign import seeds_of
from crashbo.app.cli import main
from crashbo.benchmark import methods
from crashbo.benchmark.cases import Case, of_families, of_problems
from crashbo.benchmark.forecast import Forecast
from crashbo.benchmark.runs import Spec, execute, lost, plain, revived
from crashbo.problems import families

TINY = ["benchmark", "--families", "bowl,labels", "--dimensions", "2", "--seeds", "0:2", "--trials", "6"]


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmark")
    assert main([*TINY, "--methods", "eicc,eicc-labels,random,oracle", "--output", str(folder)]) == 0
    return folder


class TestATinyOne:
    def test_it_writes_a_page_and_tables(self, output):
        page = (output / "index.html").read_text(encoding="utf-8")
        assert "<title>" in page
        assert "crashbo benchmark --families bowl,labels" in page
        assert (output / "figure.png").read_bytes().startswith(b"\x89PNG")
        assert len(rows(output / "runs.csv")) == 4 * 4
        assert len(rows(output / "trials.csv")) == 4 * 4 * 6

    def test_a_figure_can_be_recomputed_from_the_trials(self, output):
        """Normalised regret by hand: the truth at the lowest observed cost, over the median less the optimum."""
        for run in rows(output / "runs.csv"):
            keys = ("method", "problem", "dimension", "seed")
            trials = [t for t in rows(output / "trials.csv") if all(t[k] == run[k] for k in keys)]
            told = [t for t in trials if t["crashed"] == "0"]
            assert len(trials) - len(told) == int(run["crashes"])
            if told:
                best = min(told, key=lambda t: float(t["cost"]))
                optimum, median = float(run["optimum"]), float(run["median_safe_cost"])
                regret = (float(best["true_cost"]) - optimum) / (median - optimum)
                assert float(run["final_regret"]) == pytest.approx(regret, rel=1e-9, abs=1e-12)
                assert float(run["score"]) == pytest.approx(np.clip(regret, 0.0, 1.0), rel=1e-9, abs=1e-12)

    def test_the_oracle_never_crashes(self, output):
        assert {run["crashes"] for run in rows(output / "runs.csv") if run["method"] == "oracle"} == {"0"}

    def test_what_is_finished_is_not_run_again_and_more_can_be_added(self, output, capsys):
        kept = (output / "runs" / "eicc.jsonl").read_bytes()
        assert main([*TINY, "--methods", "eicc,random,sobol", "--output", str(output)]) == 0
        assert "12 runs, 4 of them left" in capsys.readouterr().err
        assert (output / "runs" / "eicc.jsonl").read_bytes() == kept

    def test_a_dry_run_counts_what_is_left(self, output, capsys):
        assert main([*TINY, "--methods", "eicc,pibu", "--dry-run", "--output", str(output)]) == 0
        assert "8 runs, 4 of them left, about" in capsys.readouterr().out
        assert not (output / "runs" / "pibu.jsonl").exists()

    def test_a_report_can_be_written_again_without_running(self, output, capsys):
        (output / "index.html").unlink()
        command = [*TINY, "--methods", "eicc,random,pibu", "--report-only", "--output", str(output)]
        assert main(command) == 0
        assert "pibu" not in (output / "runs.csv").read_text()
        assert (output / "index.html").exists()

    def test_nothing_to_report_is_said(self, tmp_path, capsys):
        assert main([*TINY, "--methods", "random", "--report-only", "--output", str(tmp_path)]) == 1
        assert "output must hold finished runs" in capsys.readouterr().err


class TestPlans:
    def test_a_dry_run_says_how_much_and_how_long(self, tmp_path, capsys):
        output = tmp_path / "nothing"
        assert main([*TINY, "--methods", "eicc,random", "--dry-run", "--output", str(output)]) == 0
        said = capsys.readouterr().out
        assert "2 methods on 4 cases: 8 runs, about" in said
        assert "tuning seeds: not for reporting" in said
        assert not output.exists()

    def test_the_full_one_has_every_family_and_method_and_reporting_seeds(self, capsys):
        assert main(["benchmark", "--dry-run"]) == 0
        said = capsys.readouterr().out
        there = sum(map(methods.is_there, methods.names()))
        cases = len(of_families(families.names(), range(100, 105)))
        assert f"{there} methods on {cases} cases" in said
        assert "reporting seeds" in said

    def test_what_is_finished_at_any_time_is_balanced(self):
        from crashbo.app.benchmark.campaign import BenchmarkDesign

        cases = tuple(of_families(families.names(), [100, 101]))
        specs = BenchmarkDesign(("eicc", "random"), cases, None, False, {}).specs()
        assert [spec.case.seed for spec in specs] == sorted(spec.case.seed for spec in specs)
        assert all(a.case == b.case for a, b in zip(specs[::2], specs[1::2], strict=True))
        assert [spec.case for spec in specs[: len(cases)]][::2] != [c for c in cases if c.seed == 100]

    def test_a_forecast_learns_from_what_was_run(self):
        spec = Spec("random", Case("bowl", 2, 0), 5)
        guess = Forecast()
        run = execute(spec)
        learnt = Forecast([revived({**plain(run), "seconds": 500.0})])
        assert learnt.seconds(spec) > 400.0 > guess.seconds(spec)
        assert learnt.left([spec, spec], workers=2) == pytest.approx(learnt.seconds(spec))


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--seeds", "90:110"], "seeds must be all for tuning (below 100) or all for reporting"),
            (["--seeds", "a:b"], "seeds must be written 100:120"),
            (["--seeds", "100,100"], "seeds must be different ones"),
            (["--families", "sphere"], "name must be one of smooth"),
            (["--methods", "magic"], "methods must be among eicc"),
            (["--methods", "no_such_module:run"], "methods must lead to something that can be imported"),
            (["--families", "none"], "families or problems must name something"),
            (["--dimensions", "two"], "dimensions must be whole numbers"),
            (["--dimensions", "1"], "dimensions must be from 2 to 60 in these families; got '1'"),
            (["--families", "islands", "--dimensions", "4,8"], "dimensions must be from 2 to 6 in these families"),
            (["--methods", ","], "methods must name at least one; got ','"),
            (["--trials", "0"], "trials must be a whole number, at least 1"),
            (["--problems", "sphere"], "name must be one of toy1d"),
        ],
    )
    def test_a_wrong_option_gets_one_sentence(self, options, words, tmp_path, capsys):
        assert main(["benchmark", *options, "--dry-run", "--output", str(tmp_path)]) == 1
        said = capsys.readouterr().err
        assert words in said
        assert said.count("\n") == 1

    def test_a_method_that_was_named_and_is_not_installed_is_refused_with_the_remedy(self, monkeypatch, capsys):
        monkeypatch.setitem(sys.modules, "PyNomad", None)
        monkeypatch.delitem(sys.modules, "crashbo.benchmark.methods.nomad", raising=False)
        assert main(["benchmark", "--methods", "nomad", "--dry-run"]) == 1
        assert "pip install 'crashbo[nomad]'" in capsys.readouterr().err

    def test_the_command_that_tunes_refuses_reporting_seeds(self):
        command = [sys.executable, "benchmarks/families/tune.py", "--against", "HEAD", "--seeds", "100:102"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 1
        assert "seeds must be from 0 to 99 for tuning; got 100" in done.stderr

    @pytest.mark.parametrize(("words", "seeds"), [("3", [3]), ("100:103", [100, 101, 102]), ("1,5:7", [1, 5, 6])])
    def test_seeds(self, words, seeds):
        assert seeds_of(words) == seeds


class TestProblemsAndParts:
    def test_a_fixed_problem_has_a_safe_start_that_differs_from_seed_to_seed(self):
        one, other = (Case("eggcrate2d", 2, seed).make() for seed in (100, 101))
        assert one.start != other.start
        assert not one.truth(one.start).crashed

    def test_fixed_problems_become_cases(self):
        assert of_problems(["toy1d", "hartmann6d"], [100]) == [Case("toy1d", 1, 100), Case("hartmann6d", 6, 100)]

    def test_the_recipe_for_a_problem_and_a_method_runs_as_it_is_printed(self, tmp_path):
        page = Path("docs/benchmark.md").read_text(encoding="utf-8").partition("## Your own problem")[2]
        for block in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", page, re.DOTALL):
            (tmp_path / block[0]).write_text(block[1], encoding="utf-8")
        (command,) = re.findall(r"```sh\ncrashbo (benchmark .*?)\n```", page, re.DOTALL)
        code = "import sys; from crashbo.app.cli import main; sys.exit(main())"
        words = [sys.executable, "-c", code, *command.split(), "--trials", "5"]
        done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, timeout=300)
        assert done.returncode == 0, done.stderr
        found = rows(tmp_path / "crashbo-benchmark" / "trials.csv")
        mine = [row for row in found if row["method"] == "my_method:around_the_best"]
        assert len(mine) == 5 * 5
        assert all(row["crashed"] == "0" for row in mine if row["trial"] == "1")  # the start is safe

    def test_a_problem_without_its_optimum_is_refused(self, tmp_path, monkeypatch, capsys):
        (tmp_path / "no_optimum_18.py").write_text(
            "import crashbo\nfrom dataclasses import replace\n"
            "problem = replace(crashbo.problems.get('toy1d'), constrained_minimum=None)\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        assert main(["benchmark", "--problems", "no_optimum_18:problem", "--dry-run"]) == 1
        assert "must say its constrained_minimum" in capsys.readouterr().err


class TestRuns:
    def test_a_run_comes_back_from_the_log_as_it_was(self):
        run = execute(Spec("random", Case("mixed", 4, 0), 8))
        assert revived(plain(run)) == run

    def test_all_methods_get_the_same_noise_and_start(self):
        first = [execute(Spec(name, Case("corridor", 2, 0), 1)) for name in ("eicc", "random", "oracle", "sobol")]
        assert len({run.costs for run in first if run.points[0] == first[0].points[0]}) == 1
        assert first[0].points[0] == first[2].points[0]

    def test_a_method_that_fails_keeps_what_it_had(self, monkeypatch):
        def broken(machine):
            machine(machine.start)
            raise ZeroDivisionError("lost its way")

        monkeypatch.setattr(methods, "get", lambda name: methods.Method(name, name, broken))
        run = execute(Spec("broken", Case("corridor", 2, 0), 4))
        assert len(run.costs) == 1
        assert "lost its way" in run.error
        assert len(run.score) == len(run.crashes) == 4
        assert np.all(run.score == run.score[0])

    def test_a_run_that_was_lost_found_nothing(self):
        run = lost(Spec("random", Case("bowl", 2, 0), 4), "the process died")
        assert run.error == "the process died"
        np.testing.assert_array_equal(run.score, 1.0)
        np.testing.assert_array_equal(run.crashes, 0.0)
