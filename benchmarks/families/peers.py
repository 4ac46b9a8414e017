"""Regret against crashes of all methods of the last benchmark, one point each. For the README.

python benchmarks/families/peers.py [--summary docs/results/benchmark-summary.csv] [--output docs/images/peers.png]
"""

import argparse
import csv
from dataclasses import dataclass
from pathlib import Path

from crashbo.app import plots

OURS = ("eicc", "eicc-labels")
LABELS = {  # as in the report, which has them from the libraries' adapters: those need not be installed here
    "eicc": "crashbo",
    "eicc-labels": "crashbo, labels only",
    "eicc-paper": "EIC², paper's rule",
    "eicc-paper-labels": "EIC², paper's rule, labels only",
    "floor-padding": "EI, floor padding",
    "optuna-tpe": "Optuna TPE",
    "optuna-tpe-penalty": "Optuna TPE, penalty",
    "optuna-gp": "Optuna GP",
    "optuna-gp-penalty": "Optuna GP, penalty",
    "optuna-cmaes": "Optuna CMA-ES",
    "optuna-cmaes-penalty": "Optuna CMA-ES, penalty",
    "botorch": "BoTorch",
    "smac": "SMAC3",
    "nomad": "NOMAD",
    "egobox": "EGObox",
    "random": "Random",
}
WHERE = {  # labels that would overlap elsewhere, in points from theirs
    "eicc": (-7, 3),
    "eicc-labels": (8, -11),
    "eicc-paper": (8, -11),
    "eicc-paper-labels": (8, 6),
    "optuna-cmaes": (7, -9),
    "optuna-cmaes-penalty": (-7, 5),
    "nomad": (7, 2),
    "floor-padding": (-7, 3),
}


@dataclass(frozen=True)
class Standing:
    """How a method ended, over all cases."""

    method: str
    regret: float
    low: float  # 95 % interval
    high: float
    crashes: float  # share of the trials
    cases: int


def standings(path: Path) -> list[Standing]:
    """Every method's row over all cases of a summary."""
    with path.open(encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["group_kind"] == "all"]
    return [
        Standing(r["method"], *(float(r[name]) for name in ("mean_score", "low", "high", "crashes")), int(r["cases"]))
        for r in rows
    ]


def draw(found: list[Standing]) -> plots.Figure:
    figure = plots.Figure(figsize=(8.6, 4.4), layout="constrained")
    axes = figure.subplots()
    plots.dress(axes)
    plots.title(axes, "Regret against crashes", f"{found[0].cases} cases; left and low is good; bars: 95 %")
    for one in found:
        if one.method == "oracle":
            continue
        colour = plots.MODEL if one.method in OURS else "#8C8C8C" if one.method.startswith("eicc") else plots.SUCCESS
        bars = [[one.regret - one.low], [one.high - one.regret]]
        axes.errorbar(100 * one.crashes, one.regret, bars, fmt="o", color=colour, elinewidth=1.2, markersize=7)
        weight = "bold" if one.method in OURS else "normal"
        where = WHERE.get(one.method, (7, 3))
        style = {"fontsize": 9, "fontweight": weight, "ha": "right" if where[0] < 0 else "left"}
        label = LABELS.get(one.method, one.method)
        axes.annotate(label, (100 * one.crashes, one.regret), where, textcoords="offset points", **style)
    axes.set_xlim(0, 88)
    axes.set_ylim(0, None)
    axes.set_xlabel("crashes, % of all trials")
    axes.set_ylabel("regret at the end (0: the optimum)")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--summary", type=Path, default=Path("docs/results/benchmark-summary.csv"))
    parser.add_argument("--output", type=Path, default=Path("docs/images/peers.png"))
    options = parser.parse_args()
    plots.save(draw(standings(options.summary)), options.output)
    print(options.output)


if __name__ == "__main__":
    main()
