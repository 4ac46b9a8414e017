"""The recipes of docs/extend.md run as printed."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[1] / "docs" / "extend.md").read_text()


def test_the_recipes_run_as_printed(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, object] = {"__name__": "__main__"}
    for code in blocks:
        exec(compile(code, "extend.md", "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    assert printed == [line for code in blocks for line in re.findall(r"# -> (.*)", code)]
    assert len(printed) == 3
