"""The code of the README and of the site: found, and run as a reader would, page by page.

A page says in a comment before a block what its test has to know; nothing else is left out or changed:

    <!-- test: skip: why it cannot be run here -->
    <!-- test: needs: torch -->                  not run where this module is missing
    <!-- test: with: trials=50 -> trials=6 -->   a smaller budget, and nothing but a budget
    <!-- test: before: x = 1 -->                 lines that the reader has already: an experiment, an optimizer
    <!-- test: run -->                           of a shell block: run its commands, in the page's folder
    <!-- test: file: old.csv -->                 the reader saves it under this name
    <!-- test: prints -->                        of a text block: what the code before it prints
    <!-- test: elsewhere: crashbo run -->         a file that a command of the page runs, not the page itself

A block whose first line is a file's name (`# worker.py`) is saved under it, too.
"""

import argparse
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from crashbo.app.cli import main, parser

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").rglob("*.md")))]

_NOTE = re.compile(r"<!-- test: (.*?)\s*-->", re.DOTALL)
_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
_SAVED = re.compile(r"# ([\w.-]+\.(?:py|toml|sh))\n")
_OF_THE_SYSTEM = ("apt", "cd", "export", "git", "sbatch", "srun", "ruff", "mypy")


@dataclass(frozen=True)
class Block:
    """A block of code on a page, with what the page says of it to its test."""

    page: str
    line: int
    language: str
    code: str
    notes: tuple[str, ...]

    def said(self, kind: str) -> list[str]:
        """What the notes of one kind say."""
        return [
            note.partition(":")[2].strip(" ").lstrip("\n")
            for note in self.notes
            if note.partition(":")[0].strip() == kind
        ]

    @property
    def file(self) -> str | None:
        """The name under which a reader saves it, if so."""
        named = _SAVED.match(self.code)
        return named[1] if named else next(iter(self.said("file")), None)

    @property
    def skipped(self) -> bool:
        """Whether the page says that it cannot be run."""
        return bool(self.said("skip"))

    @property
    def smaller(self) -> str:
        """The code, with the budgets that the page gives to its test."""
        code = self.code
        for swap in self.said("with"):
            old, arrow, new = swap.partition(" -> ")
            assert arrow, f"{self}: {swap} lacks its arrow"
            assert code.count(old) == 1, f"{self}: {old} must stand there once"
            assert re.sub(r"[\d.]+", "", old) == re.sub(r"[\d.]+", "", new), f"{self}: only a number may change"
            code = code.replace(old, new)
        return code

    def __str__(self) -> str:
        return f"{self.page}, line {self.line}"


def blocks(page: str) -> list[Block]:
    """The blocks of code of a page, in order."""
    text, found, end = (ROOT / page).read_text(encoding="utf-8"), [], 0
    for fence in _FENCE.finditer(text):
        notes = tuple(_NOTE.findall(text, end, fence.start()))
        line = text.count("\n", 0, fence.start()) + 1
        found.append(Block(page, line, fence[2], dedent(fence[3]), notes))
        end = fence.end()
    assert not _NOTE.findall(text, end), f"{page}: a note to the test stands before no block"
    return found


def run_page(page: str, folder: Path) -> dict[str, object]:
    """Run the code of a page in one namespace, one block after the other, as a reader would; what it defined."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.file is not None:
            (folder / block.file).write_text(block.code, encoding="utf-8")
        if block.skipped or block.said("elsewhere"):
            continue
        if block.language == "python":
            for lines in block.said("before"):
                exec(compile(dedent(lines), f"before {block}", "exec"), names)
            exec(compile("\n" * block.line + block.smaller, page, "exec"), names)
        elif block.language == "sh" and "run" in block.notes:
            for words in commands(block.smaller):
                assert words[0] == "crashbo", f"{block}: only commands of crashbo are run, not {words}"
                assert main(words[1:]) == 0, f"{block}: crashbo {words[1:]}"
    return names


def promised(page: str) -> list[str]:
    """What a page says that its code prints: after `# ->`, or in a block of text."""
    return [line for block in blocks(page) for line in _promises(block)]


def _promises(block: Block) -> list[str]:
    return block.code.splitlines() if "prints" in block.notes else re.findall(r"# -> (.*)", block.code)


def commands(shell: str) -> Iterator[list[str]]:
    """The commands of a shell block, as words, without settings of variables before them."""
    for line in shell.replace("\\\n", " ").splitlines():
        if line.startswith("#SBATCH"):
            continue
        words = shlex.split(re.sub(r"\$\([^)]*\)", "$(...)", line), comments=True)
        while words:
            end = next((i for i, w in enumerate(words) if w in ("&&", "||", ";", "|")), len(words))
            command, words = words[:end], words[end + 1 :]
            while command and re.match(r"\w+=", command[0]):
                command = command[1:]
            if command:
                command[0] = command[0].removeprefix(".venv/bin/")
                yield command


def check_command(words: list[str], known: set[str]) -> None:
    """Refuse a command that does not exist, or that has options which do not; `known` are files of the page's own."""
    name, *rest = words
    if name == "crashbo":
        _check_ours(rest)
    elif name in ("pip", "python3", "python"):
        _check_python(name, rest, known)
    elif name == "make":
        targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert {w for w in rest if "=" not in w} <= set(targets), words
    else:
        assert name in _OF_THE_SYSTEM, f"{name} is not known: run it, or say why not (skip)"


def _check_ours(words: list[str]) -> None:
    try:
        parser().parse_args(words)
    except SystemExit as refusal:
        raise AssertionError(f"crashbo {shlex.join(words)} is refused") from refusal


def _check_python(name: str, words: list[str], known: set[str]) -> None:
    if name == "pip" or words[:2] == ["-m", "pip"]:
        for extras in re.findall(r"(?:crashbo|\.)\[([\w,-]+)\]", " ".join(words)):
            assert set(extras.split(",")) <= _extras(), words
    elif words[0] != "-m" and words[0] not in known:
        text = (ROOT / words[0]).read_text(encoding="utf-8")
        for option in re.findall(r"--[\w-]+", " ".join(words)):
            assert f'"{option}"' in text, f"{words[0]} has no {option}"


def _extras() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def mentions(page: str) -> list[list[str]]:
    """Commands of ours that a page names amid its sentences: their names and options."""
    text = _FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    return [[w.strip("[]'\"") for w in said.split()] for said in re.findall(r"`crashbo ([a-z][^`]*)`", text)]


def check_mention(words: list[str]) -> None:
    """Refuse a mention of a command or an option that does not exist."""
    (subparsers,) = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    assert words[0] in subparsers.choices, f"there is no crashbo {words[0]}"
    known = subparsers.choices[words[0]]._option_string_actions
    for word in words[1 : words.index("--") if "--" in words else None]:
        assert not word.startswith("--") or word in known, f"crashbo {words[0]} has no {word}"
