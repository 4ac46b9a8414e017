"""Fills the reference of the command line with what the commands themselves say. A hook of MkDocs."""

import argparse
import os
from collections.abc import Iterator
from typing import Any

_HERE = "<!-- commands -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page, with every command's help where it has the mark."""
    return markdown.replace(_HERE, "\n".join(_sections())) if _HERE in markdown else markdown


def _sections() -> Iterator[str]:
    os.environ["COLUMNS"] = "100"  # the width that argparse wraps to
    from crashbo.app.cli import parser

    (commands,) = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    for name, command in commands.choices.items():
        yield f"## crashbo {name}\n\n```text\n{command.format_help().strip()}\n```\n"
