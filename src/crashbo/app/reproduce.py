"""`crashbo reproduce`: run the paper's comparison and write its results. May import every other layer."""

import argparse
from pathlib import Path

from crashbo.app import results
from crashbo.app.results import Origin
from crashbo.app.run_options import listed, look_here_for_modules
from crashbo.app.run_progress import RunProgress
from crashbo.campaigns.run_log import RunLog
from crashbo.campaigns.running import cores, run_all
from crashbo.paper.campaign import Campaign
from crashbo.paper.methods import METHODS, PROBLEMS
from crashbo.paper.runs import PaperRun, PaperSpec, execute, plain, revived
from crashbo.paper.summary import PaperSummary, claims, summarise

_REPEATS, _TRIALS = 20, 100
_QUICK_REPEATS, _QUICK_TRIALS = 3, 40
_JUMPS = 50  # as in the paper's experiment


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK_REPEATS} repeats of {_QUICK_TRIALS} trials")
    parser.add_argument("--methods", default=",".join(METHODS), metavar="A,B", help="default: %(default)s")
    parser.add_argument("--problems", metavar="A,B", help=f"or module:name (default: {','.join(PROBLEMS)})")
    parser.add_argument("--solo8", action="store_true", help=f"the jumping quadruped instead, {_JUMPS} trials")
    parser.add_argument("--repeats", type=int, metavar="N", help=f"default: {_REPEATS}; the paper has 100")
    parser.add_argument("--trials", type=int, metavar="N", help=f"default: {_TRIALS}, as in the paper")
    parser.add_argument("--known-noise", action="store_true", help="tell all methods the noise, as the paper does")
    parser.add_argument("--output", type=Path, default=Path("crashbo-reproduce"), metavar="DIR", help="%(default)s")
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: one per core)")


def campaign_of(options: argparse.Namespace) -> Campaign:
    """The campaign that the options describe."""
    return Campaign(
        methods=listed(options.methods),
        problems=_problems(options),
        repeats=options.repeats or (_QUICK_REPEATS if options.quick else _REPEATS),
        trials=options.trials or (_QUICK_TRIALS if options.quick else _JUMPS if options.solo8 else _TRIALS),
        known_noise=options.known_noise,
    )


def reproduce(options: argparse.Namespace) -> str:
    """Run what is missing and write everything; returns a summary."""
    from crashbo.app import plots, result_plots  # matplotlib is an extra: fail now if it is missing, not after the runs

    if ":" in (options.problems or ""):
        look_here_for_modules()
    campaign = campaign_of(options)
    log: RunLog[PaperSpec, PaperRun] = RunLog(options.output / "runs", plain, revived)
    with log, RunProgress() as progress:
        runs = run_all(campaign.specs(), execute, log, workers=options.workers or cores(), report=progress)
    summary = summarise(campaign, runs)
    plots.save(result_plots.draw_figure(summary), options.output / "figure.png")
    plots.save(result_plots.draw_curves(summary), options.output / "curves.png")
    origin = Origin(_command(campaign), cores())
    results.write_csv(summary, options.output)
    (options.output / "results.md").write_text(results.markdown(summary, origin), encoding="utf-8")
    (options.output / "index.html").write_text(results.page(summary, origin, options.output), encoding="utf-8")
    return _in_short(summary, options.output)


def _in_short(summary: PaperSummary, output: Path) -> str:
    table = results.tables(summary)[0]
    widths = [max(map(len, column)) for column in zip(table.head, *table.rows, strict=True)]
    rows = [[cell.ljust(w) for cell, w in zip(r, widths, strict=True)] for r in (table.head, *table.rows)]
    found = claims(summary)
    holding = f"{sum(c.holds for c in found)} of {len(found)} of the paper's orderings hold"
    holding += f", {sum(not c.holds and c.sure for c in found)} fail by more than chance"
    return "\n".join(
        [
            "Safe trials in percent, mean (standard deviation):",
            *("  ".join(row).rstrip() for row in rows),
            f"{holding}; {output / 'index.html'} has it all.",
        ]
    )


def _command(campaign: Campaign) -> str:
    """The command that reproduces the tables."""
    words = ["crashbo reproduce", f"--repeats {campaign.repeats}", f"--trials {campaign.trials}"]
    if campaign.methods != tuple(METHODS):
        words.append(f"--methods {','.join(campaign.methods)}")
    if campaign.problems != PROBLEMS:
        words.append(f"--problems {','.join(campaign.problems)}")
    return " ".join([*words, *(["--known-noise"] if campaign.known_noise else [])])


def _problems(options: argparse.Namespace) -> tuple[str, ...]:
    if options.solo8 and options.problems:
        raise ValueError(f"--solo8 must come without --problems; got {options.problems!r}. Leave one of them out.")
    if options.solo8:
        return ("solo8-jump",)
    return listed(options.problems) if options.problems else PROBLEMS
