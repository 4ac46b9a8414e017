"""The documentation as a site: it builds without a warning, and its reference has every public name."""

import os
import re
import subprocess
import sys
from pathlib import Path

import crashbo

ROOT = Path(__file__).parents[1]
MODULES = {"models", "problems", "stopping", "strategies", "__version__"}


def test_the_site_builds_strictly(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = ("python", "told", "definition", "models")
    python = "".join((tmp_path / "reference" / page / "index.html").read_text() for page in pages)
    for name in set(crashbo.__all__) - MODULES:
        assert f'id="crashbo.{name}"' in python
    commands = (tmp_path / "reference" / "commands" / "index.html").read_text()
    assert "crashbo thresholds" in commands
    model = (tmp_path / "model" / "index.html").read_text()
    assert model.count("<math") > 50
    assert "arithmatex" not in model  # a formula that was left as it is typed
    assert "def experiment(gains):" in re.sub(r"<.*?>", "", (tmp_path / "gallery" / "index.html").read_text())


def test_every_page_is_in_the_sites_menu():
    menu = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")} == menu


def test_the_first_lines_of_the_site_are_those_of_the_readme_which_are_run():
    page, readme = ((ROOT / name).read_text() for name in ("docs/index.md", "README.md"))
    assert (
        re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
        == re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)[:1]
    )
