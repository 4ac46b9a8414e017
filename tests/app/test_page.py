"""The page in a real browser: a study by clicking, two browsers in step, a server that is killed."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install 'crashbo[app]'")
from jumper import SAID, current_of, height_of  # noqa: E402

from crashbo.app.bench import Bench, Definition  # noqa: E402

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium here: apt install chromium")
PATIENCE = 60_000  # ms


class Server:
    """`crashbo serve` that can be killed and started again on the same port."""

    def __init__(self, store):
        self.store, self.port, self.process = store, 0, None

    def start(self):
        code = "import sys; from crashbo.app.cli import main; sys.exit(main())"
        command = [sys.executable, "-c", code, "serve", "--store", self.store, "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.port = int(self.process.stdout.readline().strip().rpartition(":")[2])
        return self

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def server(store):
    Bench.create(store, Definition.of({**SAID, "name": "<b>jump</b>"}))
    server = Server(store).start()
    yield server
    server.kill()


@pytest.fixture
def browser():
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


def opened(browser, server, **more):
    page = browser.new_page(**more)
    page.set_default_timeout(PATIENCE)
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.goto(f"http://127.0.0.1:{server.port}/")
    return page


def number_of(page):
    return int(page.locator(".now-head strong").inner_text().removeprefix("Trial "))


def wait_for(page, number, patience=PATIENCE):
    playwright.expect(page.locator(".now-head strong")).to_have_text(f"Trial {number}", timeout=patience)


def do(page, kind, bench):
    """Tell the trial on the screen by a click, and wait for the next; as a person would, once more if nothing came."""
    number = number_of(page)
    params = bench.trials[number].params
    for _ in range(3):
        if kind == "success":
            page.fill("input[name=cost]", f"{height_of(params):.4f}")
            page.fill("input[name='m:current']", f"{current_of(params):.2f}")
        else:
            page.fill("input[name=note]", f"<i>{kind}</i>")
        page.click(f"#tell-{kind}")
        with contextlib.suppress(AssertionError):
            wait_for(page, number + 1, PATIENCE / 3)
            break
    wait_for(page, number + 1)
    return number


def test_ten_trials_by_clicking_with_a_crash_an_undo_a_void_and_a_kill(browser, server, store):
    bench = Bench.open(store)
    page = opened(browser, server, viewport={"width": 1280, "height": 900})
    other = opened(browser, server, viewport={"width": 390, "height": 844}, has_touch=True, color_scheme="dark")
    page.click("#next")
    wait_for(page, 0)
    wait_for(other, 0)  # in step
    for kind in ("success", "success", "crash", "void"):
        do(page, kind, bench)

    undone = do(page, "success", bench)
    page.click("#toast-action")  # undo: the trial is back, and the one that came of it is withdrawn
    wait_for(page, undone)
    playwright.expect(other.locator(f"#trial-{undone} .state")).to_have_text("pending", timeout=PATIENCE)
    assert bench.trials[undone].state == "pending"
    page.check("input[name=cut]")
    page.click("#tell-crash")
    playwright.expect(page.locator("#form-error")).to_have_text("current must have a value to be cut off.")
    page.uncheck("input[name=cut]")
    page.fill("input[name=cost]", "0.4")
    page.keyboard.press("Enter")
    wait_for(page, undone + 2)
    assert bench.trials[undone].cost == 0.4
    assert bench.trials[undone + 1].reason == f"withdrawn: trial {undone} was undone"

    server.kill()  # in the middle, with -9
    playwright.expect(page.locator("#offline")).to_be_visible(timeout=PATIENCE)
    before = bench.trials
    server.start()
    playwright.expect(page.locator("#link")).to_have_text("live", timeout=PATIENCE)
    assert bench.trials == before
    while number_of(page) < 10:
        do(page, "success", bench)

    states = [t.state for t in bench.trials[:10]]
    assert states == ["success", "success", "crash", "void", "success", "void", *["success"] * 4]
    assert bench.trials[2].reason == "<i>crash</i>"
    assert page.locator("#study-name").inner_text() == "<b>jump</b>"
    wait_for(other, number_of(page))  # still in step
    for one in (page, other):
        playwright.expect(one.locator("#slices canvas.heat")).to_have_count(2, timeout=PATIENCE)
        playwright.expect(one.locator("#chart-level .level")).not_to_have_count(0, timeout=PATIENCE)
        playwright.expect(one.locator("#p-safe")).to_contain_text("%", timeout=PATIENCE)
        assert one.locator("#chart-cost circle.success").count() >= 6
        assert one.locator("#chart-cost path.cross").count() >= 1
        wide = one.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, "the page is wider than the screen"
        assert one.errors == []
    assert other.evaluate("document.documentElement.dataset.theme") == "dark"


def test_by_keyboard_alone(browser, server, store):
    bench = Bench.open(store)
    page = opened(browser, server)
    playwright.expect(page.locator("#next")).to_be_visible(timeout=PATIENCE)
    page.keyboard.press("n")
    wait_for(page, 0)
    page.keyboard.press("s")  # no cost yet: goes to its field
    page.keyboard.type("0.5")
    page.keyboard.press("Enter")
    wait_for(page, 1)
    page.keyboard.press("c")
    wait_for(page, 2)
    page.keyboard.press("u")
    wait_for(page, 1)
    page.keyboard.press("v")
    deadline = time.time() + 60
    while bench.trials[1].state != "void" and time.time() < deadline:
        time.sleep(0.1)
    assert [t.state for t in bench.trials[:3]] == ["success", "void", "void"]
    assert page.errors == []
