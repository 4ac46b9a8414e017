"""The page where trials are compared, in a real browser: by clicks and keys, on a desk and on a phone, with films."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install 'crashbo[app]'")
from test_page import PATIENCE, Server, opened  # noqa: E402

from crashbo.app.bench import Bench, Definition, Told  # noqa: E402

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium here: apt install chromium")
SAID = {
    "name": "gait",
    "compared": True,
    "strategy": "random",
    "parameters": {"knee": [0.0, 1.0], "hip": [0.0, 1.0]},
    "constraints": {"current": {"unit": "A"}},
}
# A GIF of one pixel.
GIF = bytes.fromhex("47494638396101000100800000000000ffffff2c00000000010001000002024401003b")


def cost(params: dict[str, Any]) -> float:
    return float((params["knee"] - 0.3) ** 2 + (params["hip"] - 0.6) ** 2)


@pytest.fixture
def films(tmp_path: Path) -> Path:
    (tmp_path / "films").mkdir()
    return tmp_path / "films"


@pytest.fixture
def server(store: str, films: Path) -> Any:
    Bench.create(store, Definition.of(SAID))
    server = Server(store, "--films", str(films)).start()
    yield server
    server.kill()


@pytest.fixture
def browser() -> Any:
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


def on_screen(page: Any) -> int:
    head = page.locator(".now-head strong")
    playwright.expect(head).to_have_text(re.compile(r"Trial \d+"), timeout=PATIENCE)
    return int(head.inner_text().removeprefix("Trial "))


def judge(page: Any, bench: Bench, *, key: bool = False) -> int:
    """Give the verdict on the trial on the screen, by a click or a key, and wait until it is stored."""
    number = on_screen(page)
    trial = bench.trials[number]
    verdict = "success"
    if trial.against is not None:
        verdict = "better" if cost(trial.params) < cost(bench.trials[trial.against].params) else "worse"
    playwright.expect(page.locator(f"#tell-{verdict}")).to_be_enabled(timeout=PATIENCE)
    page.fill("input[name='m:current']", "88.5")
    if key:
        page.locator("h1").click()
        page.keyboard.press({"success": "s", "better": "b", "worse": "w"}[verdict])
    else:
        page.click(f"#tell-{verdict}")
    playwright.expect(page.locator(".now-head strong")).to_have_text(f"Trial {number + 1}", timeout=PATIENCE)
    return number


@pytest.mark.parametrize("phone", [False, True])
def test_trials_are_compared_by_clicks_and_keys(
    browser: Any, server: Any, store: str, films: Path, phone: bool
) -> None:
    bench = Bench.open(store)
    small = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    page = opened(browser, server, **(small if phone else {"viewport": {"width": 1280, "height": 900}}))
    page.click("#next")
    assert page.locator("#tell-better").count() == 0  # the first has no rival
    for i in range(4):
        (films / f"{i}.gif").write_bytes(GIF)
        judge(page, bench, key=i == 2)
    assert [t.state for t in bench.trials[:4]] == ["success"] * 4
    assert bench.trials[1].measured == {"current": 88.5}
    said = [s.comparison for s in bench.comparisons()]
    assert len(said) == 3
    assert all(cost(bench.trials[c.better].params) < cost(bench.trials[c.worse].params) for c in said)

    rival = bench.trials[4].against
    playwright.expect(page.locator("#pair")).to_contain_text(f"trial {rival}", timeout=PATIENCE)
    (films / "4.gif").write_bytes(GIF)
    page.reload()
    playwright.expect(page.locator(".films img")).to_have_count(2, timeout=PATIENCE)
    for verdict in ("better", "same", "worse", "crash", "void"):  # all in sight, above the fold
        box = page.locator(f"#tell-{verdict}").bounding_box()
        assert box["y"] + box["height"] <= (844 if phone else 900)

    playwright.expect(page.locator("#tell-same")).to_be_enabled(timeout=PATIENCE)
    page.click("#tell-same")
    playwright.expect(page.locator(".now-head strong")).to_have_text("Trial 5", timeout=PATIENCE)
    assert bench.comparisons()[-1].comparison.tie
    page.click("#undo")  # both words of the click: the trial is back, and the one that came of it withdrawn
    playwright.expect(page.locator(".now-head strong")).to_have_text("Trial 4", timeout=PATIENCE)
    assert bench.trials[4].state == "pending"
    assert bench.comparisons()[-1].undone
    playwright.expect(page.locator("#tell-crash")).to_be_enabled(timeout=PATIENCE)
    page.click("#tell-crash")
    playwright.expect(page.locator(".now-head strong")).to_have_text("Trial 6", timeout=PATIENCE)
    assert bench.trials[4].state == "crash"
    playwright.expect(page.locator("#ranking tbody tr")).to_have_count(4, timeout=PATIENCE)
    assert page.errors == []


def test_a_success_told_elsewhere_waits_to_be_compared(browser: Any, server: Any, store: str) -> None:
    bench = Bench.open(store)
    page = opened(browser, server, viewport={"width": 1280, "height": 900})
    page.uncheck("#go-on")
    for knee in (0.2, 0.8, 0.5):
        bench.add({"knee": knee, "hip": 0.5}, Told.of(success=True))
    head = page.locator(".now-head")
    playwright.expect(head).to_contain_text("succeeded. Was it better than trial 0?", timeout=PATIENCE)
    assert on_screen(page) == 1
    playwright.expect(page.locator("#tell-worse")).to_be_enabled(timeout=PATIENCE)
    page.click("#tell-worse")
    playwright.expect(head.locator("strong")).to_have_text("Trial 2", timeout=PATIENCE)
    assert [(s.comparison.better, s.comparison.worse) for s in bench.comparisons()] == [(0, 1)]
    playwright.expect(page.locator("#tell-skip")).to_be_enabled(timeout=PATIENCE)
    page.keyboard.press("l")  # later
    playwright.expect(page.locator("#next")).to_be_visible(timeout=PATIENCE)
    page.click("#undo")  # the comparison alone: who told the success did not say it
    playwright.expect(head.locator("strong")).to_have_text("Trial 1", timeout=PATIENCE)
    assert bench.trials[1].state == "success"
    assert page.errors == []
