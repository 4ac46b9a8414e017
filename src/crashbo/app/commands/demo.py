"""`crashbo demo`. May import every other layer."""

import argparse
from pathlib import Path
from typing import Any

from crashbo.app import illustration
from crashbo.app.commands.common import Refusal

_NO_MATPLOTLIB = "crashbo demo draws with matplotlib, which is not installed. Run: pip install 'crashbo[plot]'"


def add_to(commands: Any) -> None:
    """Add the command."""
    demo = commands.add_parser(
        "demo",
        help="draw how crashes are learnt from, on one parameter",
        description="Three successes and two crashes on one parameter: what is learnt, and where to try next.",
    )
    demo.add_argument(
        "--output", type=Path, default=Path("crashbo-demo"), metavar="DIR", help="where to save (default: %(default)s)"
    )
    demo.set_defaults(run=_demo)


def _demo(options: argparse.Namespace) -> str:
    try:
        from crashbo.app import plots  # only here: matplotlib is an extra, and slow to import
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("matplotlib"):
            raise
        raise Refusal(_NO_MATPLOTLIB) from error
    seen = illustration.gather()
    path: Path = options.output / "illustration.png"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        plots.save(plots.draw_illustration(seen), path)
    except OSError as error:
        rule = f"--output must be a directory that can be written to; got {str(options.output)!r}"
        raise Refusal(f"{rule} ({error.strerror}). Name another.") from error
    return f"{illustration.summary(seen)}\nFigure      {path}"
