"""Is a change to the search for the better? This tree beside a revision, on tuning seeds, paired by case.

    python benchmarks/families/tune.py --against HEAD~1    # all families, seeds 0 to 4, both of our methods
    python benchmarks/families/tune.py --against HEAD --families driven,labels --dimensions 4,8 --seeds 0:10
    python benchmarks/families/tune.py --against HEAD --methods eicc-labels --keep  # not again what was run before

Prints, per family and in all, the mean normalised regret of both, the difference with twice its standard error, crashes
and wasted trials. Seeds from 100 on are refused: those are for reporting. A revision's runs are kept, and made once.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from crashbo.app.benchmark.campaign import seeds_of
from crashbo.benchmark.runs import Run, Spec, plain, revived
from crashbo.benchmark.summary import crash_share, final_score, wasted_share
from crashbo.campaigns.run_log import RunLog
from crashbo.problems import families

sys.path.insert(0, str(Path(__file__).parents[1]))
from replay import ROOT, package

FOLDER = Path("crashbo-tune")
HERE = "here"


def run(revision: str | None, folder: Path, words: list[str]) -> None:
    """The benchmark, by the crashbo of a revision or of this tree."""
    with tempfile.TemporaryDirectory() as temporary:
        environment = {**os.environ, "PYTHONPATH": str(package(revision, Path(temporary)))}
        code = "import sys; from crashbo.app.cli import main; sys.exit(main())"
        done = subprocess.run(
            [sys.executable, "-c", code, "benchmark", *words, "--output", str(folder)],
            env=environment,
            stdout=subprocess.DEVNULL,
        )
    if done.returncode:
        raise SystemExit(f"{revision or 'the working tree'} could not be run; what it said is above.")


def runs_in(folder: Path, wanted: set[Spec] | None = None) -> dict[Spec, Run]:
    log: RunLog[Spec, Run] = RunLog(folder / "runs", plain, revived)
    with log:
        return {spec: found for spec, found in log.runs.items() if wanted is None or spec in wanted}


def compare(ours: dict[Spec, Run], theirs: dict[Spec, Run]) -> None:
    both = [spec for spec in ours if spec in theirs and same_problem(ours[spec], theirs[spec])]
    others = sum(spec in theirs for spec in ours) - len(both)
    if others:
        print(f"{others} runs are left out: their problems are not the same in both.")
    for method in dict.fromkeys(spec.method for spec in both):
        specs = [spec for spec in both if spec.method == method]
        print(f"\n{method}\n{'':16s} cases   here  there   difference          crashes       wasted")
        for name in [*dict.fromkeys(spec.case.problem for spec in specs), "all"]:
            part = [spec for spec in specs if name in (spec.case.problem, "all")]
            print(line(name, [ours[spec] for spec in part], [theirs[spec] for spec in part]))


def same_problem(one: Run, other: Run) -> bool:
    """Whether both were of one machine: a family may have changed since. An optimum may have been found better."""
    return (one.median, one.noise) == (other.median, other.noise)


def line(name: str, here: list[Run], there: list[Run]) -> str:
    """Means of both, and the paired difference."""
    score, crashes, wasted = (
        [np.array([what(run) for run in runs]) for runs in (here, there)]
        for what in (final_score, crash_share, wasted_share)
    )
    gap = score[0] - score[1]
    error = 2.0 * np.std(gap, ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
    mark = "" if not abs(gap.mean()) > error else " better" if gap.mean() < 0.0 else " WORSE"
    return (
        f"{name:16s} {len(gap):5d} {score[0].mean():6.3f} {score[1].mean():6.3f}   {gap.mean():+.3f} ± {error:.3f}   "
        f"{crashes[0].mean():6.1%} {crashes[1].mean():6.1%} {wasted[0].mean():6.1%} {wasted[1].mean():6.1%}{mark}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="REVISION", required=True, help="that has the benchmark, too")
    parser.add_argument("--families", default="all")
    parser.add_argument("--dimensions")
    parser.add_argument("--methods", default="eicc,eicc-labels")
    parser.add_argument("--seeds", default="0:5", help="below 100")
    parser.add_argument("--trials")
    parser.add_argument("--keep", action="store_true", help="runs of this tree that were made before")
    options = parser.parse_args()
    try:
        families.check_tuning(seeds_of(options.seeds))
    except ValueError as refusal:
        raise SystemExit(str(refusal)) from None
    words = [
        word
        for name in ("families", "dimensions", "methods", "seeds", "trials")
        if (value := getattr(options, name)) is not None
        for word in (f"--{name}", value)
    ]
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", options.against]
    revision = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if not options.keep:
        shutil.rmtree(FOLDER / HERE, ignore_errors=True)
    run(revision, FOLDER / revision, words)
    run(None, FOLDER / HERE, words)
    ours = runs_in(FOLDER / HERE)
    compare(ours, runs_in(FOLDER / revision, set(ours)))


if __name__ == "__main__":
    main()
