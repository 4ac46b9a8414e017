"""The campaign of `crashbo benchmark`: what is run, and where the report goes. May import every other layer."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crashbo import problems
from crashbo.app.run_options import listed, look_here_for_modules
from crashbo.app.run_progress import RunProgress, span
from crashbo.app.text import counted
from crashbo.benchmark import cases, methods
from crashbo.benchmark.cases import Case
from crashbo.benchmark.forecast import Forecast
from crashbo.benchmark.runs import Run, Spec, execute, lost, plain, revived
from crashbo.benchmark.summary import Summary
from crashbo.campaigns.run_log import RunLog
from crashbo.campaigns.running import cores, run_all
from crashbo.problems import families
from crashbo.workers import Limits

_SEEDS, _QUICK_SEEDS = "100:105", "100:102"
_QUICK_TRIALS, _QUICK_DIMENSION, _QUICK_PUBLISHED = 30, 6, 1  # of families, and seeds of published problems
_QUICK_METHODS = (
    "eicc",
    "eicc-labels",
    "eicc-paper",
    "eicc-paper-labels",
    "optuna-tpe",
    "optuna-tpe-penalty",
    "optuna-gp-penalty",
    "egobox",
    "nomad",
    "random",
)
_LIMIT = 3600.0  # seconds of a run
_ALL, _NONE = "all", "none"
_SLOW = (cases.SOLO8,)  # only where it is named


@dataclass(frozen=True)
class BenchmarkDesign:
    """What is compared: every method on every case."""

    methods: tuple[str, ...]
    cases: tuple[Case, ...]
    trials: int | None  # None for as many as a case is given
    quick: bool  # whether families have fewer
    left_out: Mapping[str, str]  # methods that cannot run here, and why

    def specs(self) -> list[Spec]:
        """All runs, seed by seed, and within a seed in random order: what is finished at any time is balanced."""
        order = np.random.default_rng(0).permutation(len(self.cases))
        shuffled = sorted((self.cases[i] for i in order), key=lambda case: case.seed)
        return [Spec(method, case, self._trials(case)) for case in shuffled for method in self.methods]

    def _trials(self, case: Case) -> int:
        return self.trials or (_QUICK_TRIALS if self.quick and case.is_family else case.trials)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--families", metavar="A,B", help="of problems, 'all' or 'none' (default: all)")
    parser.add_argument(
        "--problems", metavar="A,B", help="of crashbo.problems, module:name, 'all' or 'none' (default: none)"
    )
    parser.add_argument(
        "--published", action="store_true", help="besides, published problems with others' runs on them"
    )
    parser.add_argument("--methods", metavar="A,B", help="or module:name (default: all that are installed)")
    parser.add_argument("--dimensions", metavar="N,N", help="of the families (default: as each is meant for)")
    parser.add_argument(
        "--seeds", metavar="A:B", help=f"from A to below B; from 100 on for reporting, below for tuning ({_SEEDS})"
    )
    parser.add_argument("--trials", type=int, metavar="N", help="per run (default: 30, and 2.5 per parameter)")
    parser.add_argument("--quick", action="store_true", help="five to ten minutes on two cores: fewer of everything")
    parser.add_argument("--output", type=Path, default=Path("crashbo-benchmark"), metavar="DIR", help="%(default)s")
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: one per core)")
    parser.add_argument("--limit", type=float, default=_LIMIT, metavar="S", help="seconds of a run (%(default)g)")
    parser.add_argument("--dry-run", action="store_true", help="say what would be run and how long it takes")
    parser.add_argument("--report-only", action="store_true", help="write the report of the runs that are there")


def design_of(options: argparse.Namespace) -> BenchmarkDesign:
    """The design that the options describe."""
    seeds = seeds_of(options.seeds or (_QUICK_SEEDS if options.quick else _SEEDS))
    chosen = _methods(options)
    left_out = {name: why for name in chosen if (why := methods.refusal(name)) is not None}
    if left_out and options.methods not in (None, _ALL):
        raise ValueError(next(iter(left_out.values())))
    found = [*_family_cases(options, seeds), *_problem_cases(options, seeds)]
    found += cases.published(seeds[: _QUICK_PUBLISHED if options.quick else None]) if options.published else []
    found = list(dict.fromkeys(found))
    if not found:
        raise ValueError("families or problems must name something to run; got none of both. Write --families all.")
    if options.workers is not None and options.workers < 1:
        raise ValueError(
            f"workers must be a whole number, at least 1; got {options.workers}. Leave it out for all cores."
        )
    if not options.limit > 0.0:
        raise ValueError(f"limit must be a number of seconds above 0; got {options.limit:g}. Write 3600, for example.")
    if options.trials is not None and options.trials < 1:
        raise ValueError(f"trials must be a whole number, at least 1; got {options.trials}. Count them.")
    return BenchmarkDesign(
        tuple(name for name in chosen if name not in left_out), tuple(found), options.trials, options.quick, left_out
    )


def benchmark(options: argparse.Namespace) -> str:
    """Run what is missing and write everything; returns a summary."""
    from crashbo.app.benchmark import report, tables  # matplotlib is an extra: fail now, not after the runs

    if ":" in f"{options.problems}{options.methods}":
        look_here_for_modules()
    design = design_of(options)
    workers = options.workers or cores()
    specs = design.specs()
    if options.dry_run:
        finished = _finished(options.output / "runs")
        todo = [spec for spec in specs if spec not in finished]
        return _plan(design, Forecast(finished.values()).left(todo, workers), workers, len(todo))
    log: RunLog[Spec, Run] = RunLog(options.output / "runs", plain, revived)
    with log:
        runs = [log.runs[spec] for spec in specs if spec in log.runs]
        if not options.report_only:
            runs = _run(design, specs, log, workers, options.limit)
    if not runs:
        raise ValueError(
            f"output must hold finished runs; {options.output} has none of these. Leave --report-only out."
        )
    summary = Summary.of(runs)
    origin = report.BenchmarkOrigin(_command(options), cores(), _versions(runs), design.left_out)
    tables.write(summary, options.output)
    report.save_figures(summary, options.output)
    page = options.output / "index.html"
    page.write_text(report.page(summary, origin), encoding="utf-8")
    return "\n".join([*report.in_words(summary), f"Report    {page}"])


def _finished(folder: Path) -> dict[Spec, Run]:
    """What was run before; nothing is created."""
    if not folder.is_dir():
        return {}
    log: RunLog[Spec, Run] = RunLog(folder, plain, revived)
    with log:
        return log.runs


def _run(
    design: BenchmarkDesign, specs: Sequence[Spec], log: RunLog[Spec, Run], workers: int, limit: float
) -> list[Run]:
    forecast = Forecast(log.runs.values())
    todo = {spec: None for spec in specs if spec not in log.runs}
    print(_plan(design, forecast.left(todo, workers), workers, len(todo)), file=sys.stderr, flush=True)

    def left(run: Run) -> float:
        forecast.add(run)
        todo.pop(run.spec, None)
        return forecast.left(todo, workers)

    with RunProgress(left, lines=100) as progress:
        return run_all(specs, execute, log, workers=workers, report=progress, lost=lost, limits=Limits(seconds=limit))


def _plan(design: BenchmarkDesign, seconds: float, workers: int, left: int | None = None) -> str:
    total = len(design.methods) * len(design.cases)
    words = f"{counted(len(design.methods), 'method')} on {counted(len(design.cases), 'case')}: {counted(total, 'run')}"
    words += "" if left is None or left == total else f", {left} of them left"
    kind = "tuning seeds: not for reporting" if cases.are_tuning(design.cases) else "reporting seeds: not for tuning"
    out = [f"{words}, about {span(seconds)} on {counted(workers, 'core')} ({kind})."]
    return "\n".join([*out, *(f"Left out: {why}" for why in design.left_out.values())])


def seeds_of(words: str) -> list[int]:
    """Seeds from "100:120", "7" or "1,2,3"; all of one kind."""
    seeds: list[int] = []
    for word in listed(words):
        low, colon, high = word.partition(":")
        if not (low.isdecimal() and (high.isdecimal() if colon else True)):
            raise ValueError(f"seeds must be written 100:120, or 100,101; got {words!r}. The last one is left out.")
        seeds += range(int(low), int(high)) if colon else [int(low)]
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds must be different ones, at least one; got {words!r}. Write 100:120, for example.")
    if len({seed in families.TUNING for seed in seeds}) > 1:
        raise ValueError(
            f"seeds must be all for tuning (below {families.TUNING.stop}) or all for reporting; got {words!r}. "
            "Run them apart."
        )
    return seeds


def _methods(options: argparse.Namespace) -> tuple[str, ...]:
    if options.methods and options.methods != _ALL:
        named = _unique(options.methods)
        if not named:
            raise ValueError(f"methods must name at least one; got {options.methods!r}. Write eicc,random.")
        return named
    return _QUICK_METHODS if options.quick else tuple(methods.names())


def _family_cases(options: argparse.Namespace, seeds: Sequence[int]) -> list[Case]:
    word = options.families or (_NONE if options.problems and options.problems != _NONE else _ALL)
    names = families.names() if word == _ALL else [] if word == _NONE else _unique(word)
    dimensions = _dimensions(options.dimensions, names) if options.dimensions else None
    found = cases.of_families(names, seeds, dimensions)
    return [case for case in found if case.dimension <= _QUICK_DIMENSION] if options.quick and not dimensions else found


def _dimensions(words: str, names: Sequence[str]) -> list[int]:
    """Numbers of parameters, each of which one of the families has at least."""
    most = max((families.family(name).most for name in names), default=families.LOWEST)
    if not listed(words) or not all(word.isdecimal() for word in listed(words)):
        raise ValueError(f"dimensions must be whole numbers; got {words!r}. Write 2,8, for example.")
    found = [int(word) for word in _unique(words)]
    if not families.LOWEST <= min(found) <= max(found) <= most:
        raise ValueError(
            f"dimensions must be from {families.LOWEST} to {most} in these families; got {words!r}. Others have up to "
            f"{max(families.family(name).most for name in families.names())}."
        )
    return found


def _problem_cases(options: argparse.Namespace, seeds: Sequence[int]) -> list[Case]:
    word = options.problems or _NONE
    fast = [name for name in problems.names() if name not in _SLOW]
    return cases.of_problems(fast if word == _ALL else [] if word == _NONE else _unique(word), seeds)


def _unique(words: str) -> tuple[str, ...]:
    """What is listed, each once."""
    return tuple(dict.fromkeys(listed(words)))


def _command(options: argparse.Namespace) -> str:
    """The command that makes the report."""
    words = ["crashbo benchmark", *(f"--{name}" for name in ("quick", "published") if getattr(options, name))]
    for name in ("families", "problems", "methods", "dimensions", "seeds", "trials"):
        value = getattr(options, name)
        words += [f"--{name} {value}"] if value is not None else []
    return " ".join(words)


def _versions(runs: Sequence[Run]) -> dict[str, str]:
    """Versions of all that took part, when it did: there may be several of one thing."""
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        for name, version in run.versions.items():
            found.setdefault(name, {})[version] = None
    return {name: " and ".join(versions) for name, versions in found.items()}
