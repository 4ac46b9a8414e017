"""What MkDocs cannot do by itself: the commands' own help, the source of the examples, and formulas. A hook."""

import argparse
import html
import os
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Any

_HERE = "<!-- commands -->"
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
_EXAMPLE = re.compile(r"^\[\S+\]\(\.\./(examples/\w+\.py)\)$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page, with every command's help where it has the mark, and examples in the place of links to them."""
    filled = markdown.replace(_HERE, "\n".join(_sections())) if _HERE in markdown else markdown
    return _EXAMPLE.sub(lambda link: _folded(link[1]), filled)


def on_page_content(page_html: str, **_: Any) -> str:
    """The page, with its formulas as MathML: browsers draw that by themselves, without a script from elsewhere."""
    from latex2mathml.converter import convert

    def drawn(formula: re.Match[str]) -> str:
        display = "block" if formula[1] == "div" else "inline"
        return str(convert(html.unescape(formula[2]), display=display))

    return _FORMULA.sub(drawn, page_html)


def _folded(path: str) -> str:
    """The source of a file, to be unfolded and copied."""
    source = (Path(__file__).parents[1] / path).read_text(encoding="utf-8")
    return f'??? example "{path}"\n\n' + indent(f"```python\n{source}```\n", "    ")


def _sections() -> Iterator[str]:
    os.environ["COLUMNS"] = "100"  # the width that argparse wraps to
    from crashbo.app.cli import parser

    (commands,) = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    for name, command in commands.choices.items():
        yield f"## crashbo {name}\n\n```text\n{command.format_help().strip()}\n```\n"
