"""The README's promises that can be run: its code, its length, its links."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_there_is_code_to_run():
    assert BLOCKS


def test_the_code_runs_as_printed(capsys):
    names: dict[str, object] = {}
    for code in BLOCKS:  # one after the other, as a reader would type them
        exec(compile(code, "README.md", "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    assert printed == [line for code in BLOCKS for line in re.findall(r"# -> (.*)", code)]


def test_it_is_short():
    assert len(README.splitlines()) <= 120


PAGES = ["README.md", "CONTRIBUTING.md", "docs/results/README.md"]
PAGES += [f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES)
def test_local_links_lead_somewhere(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert ((ROOT / page).parent / target).exists(), target
