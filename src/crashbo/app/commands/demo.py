"""`crashbo demo`, `illustrate`, `reproduce`: demonstrations. May import every other layer."""

import argparse
from pathlib import Path
from typing import Any

from crashbo.app import illustration, reproduce
from crashbo.app.commands.common import Answer, campaigning, ended_by_sigterm, writable
from crashbo.extras import needs

# What the demonstration takes, said at once: the extras, and modules of theirs.
_ALONE = ("robot,plot", "mujoco", "matplotlib", "PIL")
_COMPARED = ("app,robot", "mujoco", "matplotlib", "PIL", "fastapi", "uvicorn", "optuna")


def add_to(commands: Any) -> None:
    """Add the commands."""
    demo = commands.add_parser(
        "demo",
        help="watch a simulated quadruped learn to jump, crash by crash",
        description="Solo8 learns four gains to jump as high as it can, while its boards trip above a current that "
        "nobody told. Live in the terminal; films, figures and a page are saved.",
    )
    demo.add_argument("--trials", type=_whole, default=50, metavar="N", help="jumps (default: %(default)s)")
    demo.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="of robot and optimiser (default: %(default)s)"
    )
    demo.add_argument("--guard", action="store_true", help="stop jumps before the boards trip")
    demo.add_argument(
        "--compare",
        action="store_true",
        help="nobody measures the height: say on the page, film beside film, which jump was better",
    )
    demo.add_argument(
        "--judge",
        type=_share,
        nargs="?",
        const=0.05,
        metavar="ERRS",
        help="of --compare: a simulated judge says it, who errs at this rate (0.05 if none is given)",
    )
    demo.add_argument("--port", type=int, default=8765, help="of --compare (default: %(default)s)")
    demo.add_argument("--no-browser", action="store_true", help="of --compare: only print the page's address")
    demo.add_argument("--again", action="store_true", help="of --compare: begin anew, whatever is in the folder")
    _add_output(demo, "crashbo-demo")
    demo.set_defaults(run=_demo)
    illustrate = commands.add_parser(
        "illustrate",
        help="draw how crashes are learnt from, on one parameter",
        description="Three successes and two crashes on one parameter: what is learnt, and where to try next.",
    )
    _add_output(illustrate, "crashbo-illustration")
    illustrate.set_defaults(run=_illustrate)
    again = commands.add_parser(
        "reproduce",
        help="run the paper's comparison: its methods on its problems",
        description="The paper's methods on its problems: its table I and its figure, ours beside theirs, and curves "
        "over trials, as CSV, Markdown, PNG and one HTML page. Every finished run is kept: a campaign that was stopped "
        "resumes when the same command is run again.",
    )
    reproduce.add_options(again)
    again.set_defaults(run=_reproduce)


def _add_output(command: argparse.ArgumentParser, default: str) -> None:
    words = "where to save (default: %(default)s)"
    command.add_argument("--output", type=Path, default=Path(default), metavar="DIR", help=words)


def _whole(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on; got {word!r}. Write 50, for example.")
    return int(word)


def _seed(word: str) -> int:
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(
            f"must be a whole number from 0 on; got {word!r}. Write --seed 1, for example."
        )
    return int(word)


def _share(word: str) -> float:
    try:
        errs = float(word)
    except ValueError:
        errs = -1.0
    if not 0.0 <= errs < 0.5:
        raise argparse.ArgumentTypeError(f"must be a rate from 0 to less than 0.5; got {word!r}. Write 0.05, say.")
    return errs


def _demo(options: argparse.Namespace) -> Answer | str:
    compared = options.compare or options.judge is not None
    needs("this command", *(_COMPARED if compared else _ALONE))
    from crashbo.app import demo, demo_files  # only here: MuJoCo and matplotlib are extras, and slow to import

    folder = writable(options.output)
    if compared:
        return _compare(options, folder)
    try:
        story = demo.play(options.trials, options.seed, _say, guarded=options.guard)
        _say("Saving films and figures ...")
        return f"Report    {demo_files.save(story, folder)}"
    except demo.Interrupted as stopped:
        return Answer(f"\n{stopped}", None, 130)
    except KeyboardInterrupt:
        return Answer(f"\nStopped while saving: there is no report in {folder}.", None, 130)


def _compare(options: argparse.Namespace, folder: Path) -> Answer | str:
    from crashbo.app import compare_demo

    if options.again:
        compare_demo.forget(folder)
    try:
        if options.judge is None:
            with ended_by_sigterm(0):
                compare_demo.show(folder, options.trials, options.seed, options.port, browser=not options.no_browser)
            return "Stopped. The same command goes on from here."
        return f"Report    {compare_demo.judged(folder, options.trials, options.seed, options.judge, _say)}"
    except KeyboardInterrupt:
        return Answer("\nStopped. The same command goes on from here.", None, 130)


def _illustrate(options: argparse.Namespace) -> str:
    from crashbo.app import plots  # only here: matplotlib is an extra, and slow to import

    seen = illustration.gather()
    path = writable(options.output) / "illustration.png"
    plots.save(plots.draw_illustration(seen), path)
    return f"{illustration.summary(seen)}\nFigure      {path}"


def _reproduce(options: argparse.Namespace) -> str:
    with campaigning(options.output):
        return reproduce.reproduce(options)


def _say(words: Any) -> None:
    print(words, flush=True)  # live even if the output is piped
