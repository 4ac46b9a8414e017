"""The gallery: each example runs, with few trials, leaves a picture, and stands on the page with it."""

import faulthandler
import os
import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGE = (ROOT / "docs" / "gallery.md").read_text()
FEW = {"lab_by_hand": 3, "optuna_fleet": 5, "training_memory": 6}  # trials; where each costs more than a moment
MORE = {"optuna_fleet": ["--workers", "2"]}
NEEDS_LINUX = {"segfault", "training_memory"}


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of connections that the end of a process closes
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_leaves_its_picture(example, tmp_path, monkeypatch):
    name = example.stem
    if name in NEEDS_LINUX and sys.platform != "linux":
        pytest.skip("its limits are watched on Linux only")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    faulthandler.disable()  # pytest's, which would show a page for every segfault
    budget = ["--trials", str(FEW.get(name, 8)), *MORE.get(name, [])]
    monkeypatch.setattr(sys, "argv", [str(example), *budget, "--output", str(tmp_path / "picture.png")])
    runpy.run_path(str(example), run_name="__main__")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_each_example_stands_on_the_page_with_its_picture():
    shown = re.findall(r"!\[.+\]\(images/gallery/(\w+)\.png\)\]", PAGE)  # each links to itself, for phones
    assert re.findall(r"^\[.*\]\(\.\./examples/(\w+)\.py\)$", PAGE, re.MULTILINE) == shown
    assert set(shown) == {path.stem for path in EXAMPLES}
    for path in EXAMPLES:
        picture = ROOT / "docs" / "images" / "gallery" / f"{path.stem}.png"
        assert picture.stat().st_size < 150_000, "a picture of the site is modest"
