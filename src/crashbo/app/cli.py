"""The command `crashbo`. May import every other layer."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from crashbo.app import illustration, reproduce
from crashbo.version import __version__

_NO_MATPLOTLIB = "crashbo {} draws with matplotlib, which is not installed. Run: pip install 'crashbo[plot]'"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit code: 0 done, 1 could not be done, 2 (argparse's) not understood."""
    options = _parser().parse_args(arguments)
    try:
        print(options.run(options))
    except _Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 1
    return 0


class _Refusal(Exception):
    """Why a command cannot be done, in one sentence for the user."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="crashbo", description="Bayesian optimisation that learns from crashes.")
    parser.add_argument("--version", action="version", version=f"crashbo {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    demo = commands.add_parser(
        "demo",
        help="draw how crashes are learnt from, on one parameter",
        description="Three successes and two crashes on one parameter: what is learnt, and where to try next.",
    )
    demo.add_argument(
        "--output", type=Path, default=Path("crashbo-demo"), metavar="DIR", help="where to save (default: %(default)s)"
    )
    demo.set_defaults(run=_demo)
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


def _demo(options: argparse.Namespace) -> str:
    with _drawing("demo", options.output):
        from crashbo.app import plots  # only here: matplotlib is an extra, and slow to import

        seen = illustration.gather()
        path: Path = options.output / "illustration.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        plots.save(plots.draw_illustration(seen), path)
    return f"{illustration.summary(seen)}\nFigure      {path}"


def _reproduce(options: argparse.Namespace) -> str:
    try:
        with _drawing("reproduce", options.output):
            return reproduce.reproduce(options)
    except ValueError as error:
        raise _Refusal(str(error)) from error
    except KeyboardInterrupt:
        raise _Refusal("Stopped. Finished runs are kept: the same command goes on from here.") from None


@contextmanager
def _drawing(command: str, output: Path) -> Iterator[None]:
    """Turns what can go wrong with figures and their folder into a sentence."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("matplotlib"):
            raise
        raise _Refusal(_NO_MATPLOTLIB.format(command)) from error
    except OSError as error:
        rule = f"--output must be a directory that can be written to; got {str(output)!r}"
        raise _Refusal(f"{rule} ({error.strerror}). Name another.") from error
