"""A recipe of docs/extend.md, saved by the reader; as they stand on the page, all are run by test_pages.py."""

import crashbo
import pages


def test_the_problem_is_found_by_its_name_once_it_is_saved(tmp_path, monkeypatch):
    recipe = next(block.code for block in pages.blocks("docs/extend.md") if "press_problem" in block.code)
    (tmp_path / "my_machine.py").write_text(recipe)
    monkeypatch.syspath_prepend(tmp_path)
    assert crashbo.problems.get("my_machine:press_problem").name == "press"
