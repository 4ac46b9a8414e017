"""`crashbo benchmark`: methods on families of crash problems. May import every other layer."""

import argparse
from typing import Any

from crashbo.app.benchmark import campaign
from crashbo.app.commands.common import campaigning


def add_to(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "benchmark",
        help="compare methods on families of problems that crash",
        description="Our strategies and other optimisers on families of crash problems, each with a known optimum: one "
        "HTML page with regret, crashes and waste, and CSV beside it. Every finished run is kept: a benchmark that was "
        "stopped resumes when the same command is run again.",
    )
    campaign.add_options(parser)
    parser.set_defaults(run=_benchmark)


def _benchmark(options: argparse.Namespace) -> str:
    with campaigning(options.output):
        return campaign.benchmark(options)
