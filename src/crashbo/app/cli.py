"""The command `crashbo`. May import every other layer."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crashbo.app import illustration, reproduce
from crashbo.version import __version__

# What a command needs beyond the core, and the extra that brings it.
_EXTRAS = {"matplotlib": ("draws with matplotlib", "plot"), "mujoco": ("simulates with MuJoCo", "robot")}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit code: 0 done, 1 could not be done, 2 (argparse's) not understood."""
    options = _parser().parse_args(arguments)
    try:
        print(options.run(options))
    except _Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing not in _EXTRAS:
            raise
        does, extra = _EXTRAS[missing]
        words = f"crashbo {options.command} {does}, which is not installed. Run: pip install 'crashbo[{extra}]'"
        print(words, file=sys.stderr)
        return 1
    return 0


class _Refusal(Exception):
    """Why a command cannot be done, in one sentence for the user."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="crashbo", description="Bayesian optimisation that learns from crashes.")
    parser.add_argument("--version", action="version", version=f"crashbo {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    demo = commands.add_parser(
        "demo",
        help="watch a simulated quadruped learn to jump, crash by crash",
        description="Solo8 learns four gains to jump as high as it can, while its boards trip above a current that "
        "nobody told. Live in the terminal; films, figures and a page are saved.",
    )
    demo.add_argument("--trials", type=_whole, default=50, metavar="N", help="jumps (default: %(default)s)")
    demo.add_argument("--seed", type=int, default=0, help="of robot and optimiser (default: %(default)s)")
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
        "goes on when the same command is given again.",
    )
    reproduce.add_options(again)
    again.set_defaults(run=_reproduce)
    return parser


def _add_output(command: argparse.ArgumentParser, default: str) -> None:
    words = "where to save (default: %(default)s)"
    command.add_argument("--output", type=Path, default=Path(default), metavar="DIR", help=words)


def _whole(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on; got {word!r}")
    return int(word)


def _demo(options: argparse.Namespace) -> str:
    from crashbo.app import demo, keepsakes  # only here: MuJoCo and matplotlib are extras, and slow to import

    folder = _folder(options.output)
    story = demo.play(options.trials, options.seed, _say)
    _say("Saving films and figures ...")
    return f"Report    {keepsakes.save(story, folder)}"


def _illustrate(options: argparse.Namespace) -> str:
    from crashbo.app import plots  # only here: matplotlib is an extra, and slow to import

    seen = illustration.gather()
    path = _folder(options.output) / "illustration.png"
    plots.save(plots.draw_illustration(seen), path)
    return f"{illustration.summary(seen)}\nFigure      {path}"


def _reproduce(options: argparse.Namespace) -> str:
    try:
        return reproduce.reproduce(options)
    except ValueError as error:
        raise _Refusal(str(error)) from error
    except OSError as error:
        raise _not_writable(options.output, error) from error
    except KeyboardInterrupt:
        raise _Refusal("Stopped. Finished runs are kept: the same command goes on from here.") from None


def _say(words: Any) -> None:
    print(words, flush=True)  # live even where the output is piped


def _folder(path: Path) -> Path:
    """The folder to save in, made if need be, before any work is done."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / ".crashbo").touch()
        (path / ".crashbo").unlink()
    except OSError as error:
        raise _not_writable(path, error) from error
    return path


def _not_writable(path: Path, error: OSError) -> _Refusal:
    rule = f"--output must be a directory that can be written to; got {str(path)!r}"
    return _Refusal(f"{rule} ({error.strerror}). Name another.")
