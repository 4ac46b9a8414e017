"""The command `crashbo`. May import every other layer."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from crashbo.app import illustration
from crashbo.version import __version__

_NO_MATPLOTLIB = "crashbo demo draws with matplotlib, which is not installed. Run: pip install 'crashbo[plot]'"


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
    return parser


def _demo(options: argparse.Namespace) -> str:
    try:
        from crashbo.app import plots  # only here: matplotlib is an extra, and slow to import
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("matplotlib"):
            raise
        raise _Refusal(_NO_MATPLOTLIB) from error
    seen = illustration.gather()
    path: Path = options.output / "illustration.png"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        plots.save(plots.draw_illustration(seen), path)
    except OSError as error:
        rule = f"--output must be a directory that can be written to; got {str(options.output)!r}"
        raise _Refusal(f"{rule} ({error.strerror}). Name another.") from error
    return f"{illustration.summary(seen)}\nFigure      {path}"
