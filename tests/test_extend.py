"""The recipes of docs/extend.md, and the page of the guard, run as printed."""

import re
from pathlib import Path

import crashbo

BLOCK = r"```python\n(.*?)```"
PAGE = (Path(__file__).parents[1] / "docs" / "extend.md").read_text()


def test_the_recipes_run_as_printed(capsys):
    blocks = re.findall(BLOCK, PAGE, flags=re.DOTALL)
    names: dict[str, object] = {"__name__": "__main__"}
    for code in blocks:
        exec(compile(code, "extend.md", "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    assert printed == [line for code in blocks for line in re.findall(r"# -> (.*)", code)]
    assert len(printed) == 4


def test_the_problem_is_found_by_its_name_once_it_is_saved(tmp_path, monkeypatch):
    recipe = next(code for code in re.findall(BLOCK, PAGE, flags=re.DOTALL) if "press_problem" in code)
    (tmp_path / "my_machine.py").write_text(recipe)
    monkeypatch.syspath_prepend(tmp_path)
    assert crashbo.problems.get("my_machine:press_problem").name == "press"


def test_the_guards_page_runs_as_printed(capsys):
    page = (Path(__file__).parents[1] / "docs" / "guard.md").read_text()
    names: dict[str, object] = {"__name__": "__main__"}
    for code in re.findall(BLOCK, page, flags=re.DOTALL):
        exec(compile(code, "guard.md", "exec"), names)
    crashes, threshold = capsys.readouterr().out.splitlines()
    assert int(crashes.split()[0]) <= 5
    assert "interval" in threshold or "at least" in threshold


def test_the_page_of_spaces_runs_as_printed():
    page = (Path(__file__).parents[1] / "docs" / "spaces.md").read_text()
    names: dict[str, object] = {"__name__": "__main__"}
    for code in re.findall(BLOCK, page, flags=re.DOTALL):
        exec(compile(code, "spaces.md", "exec"), names)
