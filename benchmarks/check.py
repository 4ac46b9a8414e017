"""What `check()` says of healthy studies, and of sick ones.

python benchmarks/check.py [--seeds 0:1] [--kinds healthy,drift] [--output crashbo-check] [--workers 2] [--words]

A healthy study is of a member of a family whose crashes are all caused by what is measured (or by one cause, where only
labels are seen), with nothing wrong. A sick one is the same with one thing wrong: see sick_machines.py. Both have 45
trials when they are checked. Constants were chosen on seeds below 100; the figures in docs/check.md are of seeds from
100 on. Studies are kept in the output folder, and not run again: a change of the checks alone takes a second per study.

A finding of a healthy study is false unless it is true of the machine, which the benchmark knows:
    bound    the cost without noise falls towards the bound, at the best trial
    gain     the next 15 trials did not gain more than the noise, or a hundredth of what the study has gained
    crashes  in most of these trials nothing measured was beyond its threshold
    cause    in no crash was anything measured beyond its threshold
All other findings are false there.
"""

import argparse
import json
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import crashbo
from crashbo.optimizer.checks.everything import check
from crashbo.optimizer.checks.finding import Finding
from crashbo.optimizer.view import View
from crashbo.problems import families

sys.path.insert(0, str(Path(__file__).parent))
from sick_machines import CHECKED, HEALTHY, SICK, Machine, healthy, run, sick

_MOST = 8  # parameters of a healthy study
_STEP = 0.02  # of a range, on which the cost must fall towards a bound
_SHARE = 0.01  # of what a study has gained: less is nothing


class Case(NamedTuple):
    kind: str
    family: str
    dimension: int
    seed: int

    @property
    def file(self) -> str:
        """Where its study is kept."""
        return "-".join(map(str, self)) + ".json"

    def machine(self) -> Machine:
        """What it is run on."""
        if self.kind == "healthy":
            return healthy(self.family, self.dimension, self.seed)
        return sick(self.kind, self.seed)


class Checked(NamedTuple):
    case: Case
    kinds: list[str]  # of the findings, in order
    false: list[str]
    seconds: float
    words: list[str]


def cases(kinds: Sequence[str], seeds: Sequence[int]) -> list[Case]:
    found = []
    for seed in seeds:
        found += [Case(kind, "", 0, seed) for kind in kinds if kind != "healthy"]
        for name in HEALTHY if "healthy" in kinds else ():
            some = [d for d in families.family(name).dimensions if d <= _MOST]
            found.append(Case("healthy", name, some[seed % len(some)], seed))
    return found


def study(case: Case, folder: Path) -> tuple[crashbo.Optimizer, list[float]]:
    """A study, from its file if it has one, and the costs of its trials without noise."""
    path = folder / case.file
    if not path.exists():
        optimizer, truth = run(case.machine(), case.seed)
        path.with_suffix(".part").write_text(json.dumps({"study": optimizer.to_json(), "truth": truth}))
        path.with_suffix(".part").rename(path)
    saved = json.loads(path.read_text())
    return crashbo.Optimizer.from_json(saved["study"]), saved["truth"]


def checked(job: tuple[Case, Path]) -> Checked:
    case, folder = job
    warnings.simplefilter("ignore")
    optimizer, truth = study(case, folder)
    view = View.of(optimizer.study, optimizer.trials[:CHECKED])
    begin = time.perf_counter()
    found = check(view)
    seconds = time.perf_counter() - begin
    false = []
    if case.kind == "healthy":
        machine = case.machine()
        false = [f.kind for f in found if not is_true(f, machine, optimizer, truth)]
    return Checked(case, [f.kind for f in found], false, seconds, [str(f) for f in found])


def is_true(f: Finding, m: Machine, optimizer: crashbo.Optimizer, truth: list[float]) -> bool:
    """Whether a finding holds for the machine."""
    trials = optimizer.trials
    if f.kind == "gain":
        return still(m, trials, truth)
    if f.kind == "bound":
        best = min((t for t in trials[:CHECKED] if t.state == "success"), key=lambda t: t.cost or 0.0)
        named = [name for name in m.space if f"{name} at its" in f.words]
        return bool(named) and all(falls(m, best.params, name, "upper" in side_of(f.words, name)) for name in named)
    if f.kind in ("crashes", "cause"):
        violated = [is_violated(m, trials[n].params) for n in f.trials]
        return float(np.mean(violated)) <= (0.0 if f.kind == "cause" else 0.5)
    return False


def side_of(words: str, name: str) -> str:
    return words.split(f"{name} at its ")[1].split()[0]


def falls(m: Machine, params: dict[str, Any], name: str, upper: bool) -> bool:
    U = m.member.point(params)
    column, inner = list(m.space).index(name), U.copy()
    inner[0, column] += -_STEP if upper else _STEP
    return float(m.member.cost(U)[0]) < float(m.member.cost(inner)[0])


def still(m: Machine, trials: Sequence[crashbo.Trial], truth: list[float]) -> bool:
    done = [i for i, t in enumerate(trials) if t.state == "success"]
    before = [truth[i] for i in done if i < CHECKED]
    gained = min(before) - min([truth[i] for i in done if i >= CHECKED], default=np.inf)
    return bool(gained <= max(m.member.noise, _SHARE * (max(before) - min(before))))


def is_violated(m: Machine, params: dict[str, Any]) -> bool:
    read = m.member(params)[1]
    return any(g.limit.violated(read[g.name]) for g in m.member.gauges)


def tables(found: Sequence[Checked]) -> str:
    """Both tables, in Markdown."""
    well = [c for c in found if c.case.kind == "healthy"]
    lines = []
    if well:
        clean = sum(not c.false for c in well)
        true = Counter(kind for c in well for kind in set(c.kinds) - set(c.false))
        false = Counter(kind for c in well for kind in set(c.false))
        nothing = sum(not c.kinds for c in well)
        lines += [
            f"healthy: {clean} of {len(well)} studies without a false finding; {nothing} without any",
            f"false: {dict(false)}; true: {dict(true)}",
            "",
        ]
    lines += ["| sick | studies | first | among the first two | other kinds said |", "|---|---|---|---|---|"]
    for kind in SICK:
        some = [c for c in found if c.case.kind == kind]
        if some:
            other = Counter(k for c in some for k in set(c.kinds) - {kind})
            said = ", ".join(f"{k} {n}" for k, n in other.most_common())
            first, two = (sum(kind in c.kinds[:most] for c in some) for most in (1, 2))
            lines.append(f"| {kind} | {len(some)} | {first} | {two} | {said} |")
    seconds = [c.seconds for c in found]
    lines += ["", f"seconds per check: median {np.median(seconds):.1f}, most {max(seconds):.1f}"]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:1")
    parser.add_argument("--kinds", default=",".join(("healthy", *SICK)))
    parser.add_argument("--output", type=Path, default=Path("crashbo-check"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only-kept", action="store_true", help="check the studies that were run before")
    parser.add_argument("--words", action="store_true", help="print what was found in each study")
    options = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    options.output.mkdir(parents=True, exist_ok=True)
    jobs = [
        (case, options.output) for case in cases(options.kinds.split(","), range(*map(int, options.seeds.split(":"))))
    ]
    if options.only_kept:
        jobs = [(case, folder) for case, folder in jobs if (folder / case.file).exists()]
    found = []
    with Pool(options.workers) as pool:
        for one in pool.imap_unordered(checked, jobs):
            found.append(one)
            if options.words:
                print(one.case.file, one.kinds, "false:", one.false, flush=True)
                for words in one.words:
                    print("   ", words, flush=True)
    print(tables(found))


if __name__ == "__main__":
    main()
