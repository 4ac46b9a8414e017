"""HTML pages that need no other file: tables, pictures and the frame around them. Imports nothing of crashbo.

No scripts, nothing loaded from elsewhere: a page can be mailed, opened in any viewer, and printed.
"""

import base64
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

_STYLE = Path(__file__).parent / "page" / "report.css"


def page(title: str, body: Iterable[str]) -> str:
    """The whole page."""
    style = _STYLE.read_text(encoding="utf-8")
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{style}</style></head>\n<body><main>"
        + "\n".join(filter(None, body))
        + "</main></body></html>\n"
    )


def numbers(cells: Iterable[tuple[str, str]]) -> str:
    """Large numbers side by side, each with a label."""
    return f"<div class='numbers'>{''.join(f'<div><b>{escape(n)}</b>{escape(what)}</div>' for n, what in cells)}</div>"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], classes: Sequence[str] = ()) -> str:
    """A table, which scrolls sideways if it is too wide; `classes` has one CSS class per row."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = ""
    for i, row in enumerate(rows):
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
        body += f"<tr class='{classes[i] if classes else ''}'>{cells}</tr>"
    return f"<div class='scroll'><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def picture(data: bytes, words: str, *, kind: str = "png", caption: str = "") -> str:
    """A picture, embedded in the page; `words` is its alternative text."""
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    source = f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"
    return f"<figure><img alt='{escape(words)}' src='{source}'>{below}</figure>"
