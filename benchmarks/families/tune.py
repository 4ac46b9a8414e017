"""Is a change to the search for the better? This tree beside a revision, on tuning seeds, paired by case.

    python benchmarks/families/tune.py --against HEAD~1       # every group, 40 pairs or more of each
    python benchmarks/families/tune.py --against HEAD --groups options,published --pairs 80
    python benchmarks/families/tune.py --against HEAD --families driven,labels --keep  # not again what was run before

Families old and new, published problems and the paper's. Prints, per group and in all, regret at the end, averaged over
the run and over the price paid (a crash costing five trials), and the share of trials that crashed: both means, and the
difference with two standard errors; then what that says. The problems and the benchmark are this tree's, only the
optimiser is the revision's: it may be one from before a problem was there. A revision's runs are kept, and made once.
Seeds below 100 only: those from 100 on are for reporting.
"""

import argparse
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from crashbo.app.benchmark.campaign import seeds_of
from crashbo.app.run_options import listed
from crashbo.app.run_progress import RunProgress
from crashbo.benchmark import cases, comparison
from crashbo.benchmark.groups import GROUPS, LABELS, Group
from crashbo.benchmark.runs import Run, Spec, execute, lost, plain, revived
from crashbo.campaigns.run_log import RunLog
from crashbo.campaigns.running import cores, run_all
from crashbo.problems import families

sys.path.insert(0, str(Path(__file__).parents[1]))
from replay import ROOT, package

FOLDER = Path("crashbo-tune")
HERE = "here"
JUDGE = ("benchmark", "campaigns", "problems")  # that are this tree's for both


def specs(options: argparse.Namespace) -> list[Spec]:
    """Of each group as many tuning seeds as make the pairs that are wanted."""
    found: dict[Spec, None] = {}
    for group in groups_of(options):
        seeds = seeds_of(options.seeds) if options.seeds else enough_seeds(options, group)
        wanted = [case for case in everything(options, seeds) if group.has(case)]
        for method in listed(options.methods):
            found |= dict.fromkeys(comparison.specs_of([group], wanted, method))
    return list(found)


def groups_of(options: argparse.Namespace) -> list[Group]:
    """Those that were asked for, or all."""
    names = [group.name for group in GROUPS]
    unknown = [name for name in listed(options.groups or "") if name not in names]
    if unknown:
        raise SystemExit(f"groups must be of {', '.join(names)}; got {unknown[0]!r}.")
    return [group for group in GROUPS if options.groups is None or group.name in listed(options.groups)]


def enough_seeds(options: argparse.Namespace, group: Group) -> Sequence[int]:
    """As many as make the pairs that are wanted."""
    one = sum(group.has(case) for case in everything(options, [0])) * len(group.told)
    wanted = 1.5 * options.pairs if group.name == "smooth measured" else options.pairs  # not all measure a cause there
    return families.TUNING[: math.ceil(wanted / max(one, 1))]


def everything(options: argparse.Namespace, seeds: Sequence[int]) -> list[cases.Case]:
    names = families.names() if options.families == "all" else listed(options.families)
    published = cases.published(seeds) if options.families == "all" else []
    return [*cases.of_families(names, seeds), *published]


def run_here(options: argparse.Namespace, folder: Path) -> None:
    """What is missing, by the crashbo that this process has."""
    log: RunLog[Spec, Run] = RunLog(folder / "runs", plain, revived)
    with log, RunProgress() as progress:
        run_all(specs(options), execute, log, workers=cores(), report=progress, lost=lost)


def run_apart(revision: str | None, folder: Path) -> None:
    """The same in a process with the optimiser of a revision; or of this tree as it is now: it may go on changing."""
    with tempfile.TemporaryDirectory() as temporary:
        source = package(revision, Path(temporary))
        for room in JUDGE:
            shutil.rmtree(source / "crashbo" / room, ignore_errors=True)
            shutil.copytree(ROOT / "src" / "crashbo" / room, source / "crashbo" / room)
        print(f"Running {revision or 'the working tree'}", file=sys.stderr, flush=True)
        done = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--only", str(folder.resolve())],
            env={**os.environ, "PYTHONPATH": str(source)},
        )
    if done.returncode:
        raise SystemExit(f"{revision or 'the working tree'} could not be run; what it said is above.")


def runs_in(folder: Path, wanted: list[Spec]) -> list[Run]:
    log: RunLog[Spec, Run] = RunLog(folder / "runs", plain, revived)
    with log:
        return [log.runs[spec] for spec in wanted if spec in log.runs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="REVISION", required=True)
    parser.add_argument("--families", default="all", metavar="A,B", help="and the published problems (default: all)")
    parser.add_argument("--groups", metavar="A,B", help=f"of {', '.join(group.name for group in GROUPS)}")
    parser.add_argument("--methods", default="eicc", metavar="A,B", help="with labels only where a group has that")
    parser.add_argument("--seeds", metavar="A:B", help="below 100 (default: as many as make the pairs)")
    parser.add_argument("--pairs", type=int, default=comparison.PAIRS, help="at least, per group (%(default)s)")
    parser.add_argument("--keep", action="store_true", help="runs of this tree that were made before")
    parser.add_argument("--only", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        families.check_tuning(seeds_of(options.seeds) if options.seeds else [])
    except ValueError as refusal:
        raise SystemExit(str(refusal)) from None
    if options.only is not None:
        run_here(options, options.only)
        return
    groups_of(options)
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", options.against]
    revision = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if not options.keep:
        shutil.rmtree(FOLDER / HERE, ignore_errors=True)
    run_apart(revision, FOLDER / revision)
    run_apart(None, FOLDER / HERE)
    wanted = specs(options)
    for method in listed(options.methods):
        ours, theirs = (
            runs_in(FOLDER / name, [spec for spec in wanted if spec.method in (method, LABELS.get(method))])
            for name in (HERE, revision)
        )
        found = comparison.compare(ours, theirs, groups_of(options))
        print("\n".join(["", method, *comparison.table(found), "", *comparison.verdicts(found)]))


if __name__ == "__main__":
    main()
