"""The page in a real browser: a study by clicking, two browsers in step, a server that is killed."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install 'crashbo[app]'")
from jumper import SAID, current_of, height_of  # noqa: E402

from crashbo.app import report  # noqa: E402
from crashbo.app.bench import Bench, Definition, Told, table  # noqa: E402
from crashbo.app.gathered import Gathered  # noqa: E402

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium here: apt install chromium")
PATIENCE = 60_000  # ms


class Server:
    """`crashbo serve` that can be killed and started again on the same port."""

    def __init__(self, store, *more):
        self.store, self.more, self.port, self.process = store, more, 0, None

    def start(self):
        code = "import sys; from crashbo.app.cli import main; sys.exit(main())"
        command = [sys.executable, "-c", code, "serve", "--store", self.store, "--port", str(self.port), *self.more]
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


def ready(page):
    """Wait until verdicts are taken."""
    playwright.expect(page.locator("#tell-crash")).to_be_enabled(timeout=PATIENCE)


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
    page.click("#undo")  # the trial is back, and the one that came of it is withdrawn
    wait_for(page, undone)
    playwright.expect(other.locator(f"#trial-{undone} .state")).to_have_text("pending", timeout=PATIENCE)
    assert bench.trials[undone].state == "pending"
    page.check("input[name=cut]")
    page.click("#tell-crash")  # it waits for the second in which no verdict is taken
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
    ready(page)
    page.keyboard.press("Enter")
    wait_for(page, 1)
    page.keyboard.press("c")  # within a second: not taken
    ready(page)
    assert bench.trials[1].state == "pending"
    page.keyboard.press("c")
    wait_for(page, 2)
    page.keyboard.press("u")
    wait_for(page, 1)
    ready(page)
    page.keyboard.press("v")
    deadline = time.time() + 60
    while bench.trials[1].state != "void" and time.time() < deadline:
        time.sleep(0.1)
    assert [t.state for t in bench.trials[:3]] == ["success", "void", "void"]
    assert page.errors == []


LONG = {
    "name": "Ten-axis tuning of the hydraulic press, second campaign",
    "parameters": {
        **{
            f"proportional gain of axis number {i}": {"low": 1e-3, "high": 1e3, "log": True, "unit": "N m / rad s^2"}
            for i in range(9)
        },
        "lubrication regime": ["mineral-oil-46", "synthetic-ester-68", "none"],
    },
    "constraints": {
        "peak current of the main drive": {"unit": "A (rms, filtered)"},
        "oil temperature at the outlet": {"unit": "degrees Celsius"},
        "frame strain": {"unit": "um/m", "side": "below"},
    },
    "cost": {"label": "mean settling time of all axes", "unit": "milliseconds"},
}
SCREENS = [(1280, 800), (390, 844)]
AXE = os.environ.get("CRASHBO_AXE")  # axe.min.js, of the npm package axe-core


def eventually(holds, patience=60.0):
    deadline = time.time() + patience
    while not holds() and time.time() < deadline:
        time.sleep(0.1)
    return holds()


@pytest.mark.parametrize("screen", SCREENS)
def test_the_verdicts_stay_where_they_are_in_every_state(browser, store, screen):
    bench = Bench.create(store, Definition.of(LONG))
    server = Server(store).start()
    try:
        page = opened(browser, server, viewport={"width": screen[0], "height": screen[1]})
        playwright.expect(page.locator("#next")).to_be_visible(timeout=PATIENCE)
        places = {"before": page.locator(".verdicts").bounding_box()}
        page.click("#next")
        wait_for(page, 0)
        places["asked"] = page.locator(".verdicts").bounding_box()
        page.locator("#tell-success").click()
        playwright.expect(page.locator("#form-error")).to_contain_text("A success has a value", timeout=PATIENCE)
        places["complaint"] = page.locator(".verdicts").bounding_box()
        page.fill("input[name=note]", "typed")
        bench.tell(0, Told.of(crash="a long story " * 20), who="Bartholomew")
        playwright.expect(page.locator("#form-error")).to_contain_text("told elsewhere", timeout=PATIENCE)
        places["told elsewhere"] = page.locator(".verdicts").bounding_box()
        page.click("#leave")
        page.click("#halt")
        playwright.expect(page.locator("#halted")).to_be_visible(timeout=PATIENCE)
        places["halted"] = page.locator(".verdicts").bounding_box()
        for name, to in {"scrolled": "600", "at its end": "document.body.scrollHeight"}.items():
            page.evaluate(f"scrollTo(0, {to})")
            places[name] = page.locator(".verdicts").bounding_box()
        assert all(place == places["before"] for place in places.values()), places
        box = places["before"]
        assert box["y"] > 0
        assert box["y"] + box["height"] <= screen[1]
        assert box["x"] + box["width"] <= screen[0]
        assert page.evaluate("document.documentElement.scrollWidth") <= screen[0]
        assert page.errors == []
    finally:
        server.kill()


def test_a_trial_that_is_told_elsewhere_says_so_and_keeps_what_was_typed(browser, server, store):
    bench = Bench.open(store)
    ann, bob = (opened(browser, server) for _ in range(2))
    ann.click("#next")
    for page in (ann, bob):
        wait_for(page, 0)
    bob.fill("input[name=cost]", "0.5")
    ann.click("#tell-crash")
    playwright.expect(bob.locator("#form-error")).to_contain_text("Trial 0 was told elsewhere: crash", timeout=PATIENCE)
    wait_for(ann, 1)
    assert bob.locator(".now-head strong").inner_text() == "Trial 0"
    assert bob.input_value("input[name=cost]") == "0.5"
    for kind in ("success", "crash", "void"):
        assert bob.locator(f"#tell-{kind}").is_disabled()
    bob.keyboard.press("Escape")
    bob.keyboard.press("c")
    bob.click("#correct-it")
    assert bob.input_value("#dialog input[name=cost]") == "0.5"
    bob.select_option("#dialog select[name=kind]", "success")
    bob.click("#dialog-do")
    assert eventually(lambda: bench.trials[0].cost == 0.5)
    wait_for(bob, 1)
    assert bob.locator("#tell-crash").is_disabled()  # for a second
    assert [t.state for t in bench.trials] == ["success", "pending"]
    ann.fill("input[name=cost]", "0.7")
    ann.click("#tell-success")
    wait_for(bob, 2)  # nothing was typed: it goes along
    assert bob.errors == ann.errors == []


def test_what_was_typed_outlives_a_reload_and_a_server_that_is_away(browser, server, store):
    bench = Bench.open(store)
    page = opened(browser, server)
    page.click("#next")
    wait_for(page, 0)
    page.fill("input[name=cost]", "0.5")
    page.fill("input[name=note]", "squeaks")
    page.reload()
    wait_for(page, 0)
    assert page.input_value("input[name=note]") == "squeaks"
    page.keyboard.press("Escape")
    page.context.set_offline(True)
    page.click("#tell-success")
    time.sleep(1.0)
    assert bench.trials[0].state == "pending"
    page.context.set_offline(False)
    assert eventually(lambda: bench.trials[0].state == "success")
    assert bench.trials[0].reason == "squeaks"
    assert len([t for t in bench.trials if t.state == "success"]) == 1


def test_a_note_is_never_sent_by_enter_and_a_comma_is_asked_about(browser, server, store):
    bench = Bench.open(store)
    page = opened(browser, server)
    page.click("#next")
    wait_for(page, 0)
    playwright.expect(page.locator("#tell-success")).to_be_enabled(timeout=PATIENCE)
    page.fill("input[name=cost]", "1,234")
    page.focus("input[name=note]")
    page.keyboard.type("looks fine")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.click("#tell-success")
    playwright.expect(page.locator("#form-error")).to_contain_text("Is height 1.234 or 1234?")
    assert bench.trials[0].state == "pending"
    page.click("#form-error button >> nth=0")
    page.click("#tell-success")
    wait_for(page, 1)
    assert (bench.trials[0].cost, bench.trials[0].reason) == (1.234, "looks fine")
    playwright.expect(page.locator("#tell-crash")).to_be_enabled(timeout=PATIENCE)
    page.fill("input[name='m:current']", "0,5")
    page.fill("input[name=cost]", "3")
    page.click("#tell-crash")
    playwright.expect(page.locator("#form-error")).to_contain_text("A crash has no height")
    page.click("#tell-crash")
    wait_for(page, 2)
    assert (bench.trials[1].state, bench.trials[1].measured) == ("crash", {"current": 0.5})
    time.sleep(13)  # longer than any message stays
    page.keyboard.press("u")
    wait_for(page, 1)
    assert bench.trials[1].state == "pending"


def test_settings_are_corrected_bounds_confirmed_and_tables_previewed(browser, server, store, tmp_path):
    bench = Bench.open(store)
    bench.add({"knee": 0.2, "hip": 0.5}, Told.of(cost=0.4))
    page = opened(browser, server)
    page.click("[aria-label='Correct trial 0']")
    page.fill("#dialog input[name='p:knee']", "1.5")
    playwright.expect(page.locator("#dialog .field.beyond .hint")).to_have_text("beyond 0 to 1")
    page.click("#dialog-do")
    playwright.expect(page.locator("#dialog [role=alert]")).to_contain_text("Beyond the bounds: knee 1.5 (0 to 1)")
    page.check("#dialog input[name=beyond]")
    page.click("#dialog-do")
    assert eventually(lambda: bench.trials[0].params["knee"] == 1.5)
    playwright.expect(page.locator("#trial-0 td.beyond")).to_have_text("1.5000", timeout=PATIENCE)
    table = tmp_path / "old.csv"
    table.write_text("knee,hip,cost\n1.5,0.5,0.4\n0.3,0.6,0.7\n")
    page.click("#import")
    page.set_input_files("#import-file", str(table))
    playwright.expect(page.locator("#import-plan")).to_contain_text("1 new, 1 there already", timeout=PATIENCE)
    assert len(bench.trials) == 1
    page.click("#import-do")
    assert eventually(lambda: len(bench.trials) == 2)
    assert page.errors == []


def test_the_next_is_ready_before_the_last_is_told(browser, server, store):
    bench = Bench.open(store)
    page = opened(browser, server)
    page.click("#next")
    wait_for(page, 0)
    page.check("#ahead")
    assert eventually(lambda: len(bench.trials) == 2)
    playwright.expect(page.locator(".tabs button")).to_have_count(2, timeout=PATIENCE)
    assert number_of(page) == 0
    page.fill("input[name=cost]", "0.5")
    page.click("#tell-success")
    wait_for(page, 1)
    assert eventually(lambda: len(bench.trials) == 3)


def test_points_are_reached_by_keyboard_and_the_documentation_works(browser, server, store):
    bench = Bench.open(store)
    for i in range(4):
        bench.add({"knee": 0.1 * i, "hip": 0.5}, Told.of(cost=0.4) if i else Told.of(crash="fell"))
    page = opened(browser, server)
    playwright.expect(page.locator("#chart-cost .hit")).to_have_count(4, timeout=PATIENCE)
    assert page.locator("#chart-cost .hit[tabindex='0']").count() == 1
    playwright.expect(page.locator("#chart-matter .bar-row").first).to_be_visible(timeout=PATIENCE)  # models are there
    page.focus("#chart-cost .hit[tabindex='0']")
    page.keyboard.press("Home")
    first = page.locator("#chart-cost .hit:focus")
    playwright.expect(first).to_have_attribute("aria-label", re.compile("crash, fell"), timeout=PATIENCE)
    page.keyboard.press("Enter")
    playwright.expect(page.locator("tr.chosen")).to_have_id("trial-0")
    page.goto(f"http://127.0.0.1:{server.port}/docs")
    playwright.expect(page.locator("section.route")).not_to_have_count(0, timeout=PATIENCE)
    playwright.expect(page.locator("#routes")).to_contain_text("/api/trials/{number}/tell")
    assert page.errors == []


@pytest.mark.skipif(AXE is None, reason="no axe-core here: npm install axe-core, then CRASHBO_AXE=.../axe.min.js")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_is_found_by_axe(browser, server, store, scheme):
    bench = Bench.open(store)
    for i in range(4):
        bench.add({"knee": 0.1 * i, "hip": 0.5}, Told.of(cost=0.4, note="ok") if i else Told.of(crash="fell"))
    page = opened(browser, server, color_scheme=scheme)
    page.click("#next")
    playwright.expect(page.locator("#slices canvas.heat")).to_have_count(2, timeout=PATIENCE)
    page.evaluate(Path(AXE).read_text(encoding="utf-8"))
    for look in ("", "#add", "#import", "/docs"):
        if look.startswith("/"):
            page.goto(f"http://127.0.0.1:{server.port}{look}")
            playwright.expect(page.locator("section.route")).not_to_have_count(0, timeout=PATIENCE)
            page.evaluate(Path(AXE).read_text(encoding="utf-8"))
        elif look:
            page.keyboard.press("Escape")
            page.click(look)
        found = page.evaluate("axe.run().then((r) => r.violations.map((v) => [v.impact, v.id, v.nodes[0].html]))")
        assert [v for v in found if v[0] in ("serious", "critical")] == [], look


def test_the_report_s_table_is_printed_whole_on_a4(browser, store, tmp_path):
    bench = Bench.create(store, Definition.of({**LONG, "risk": {"crashes": 10, "trials": 60}}))
    for i in range(30):
        params = dict.fromkeys(LONG["parameters"], 0.001234 * (i + 1)) | {"lubrication regime": "synthetic-ester-68"}
        bench.add(
            params,
            Told.of(cost=1234.5678, measured=dict.fromkeys(LONG["constraints"], 98.7654), note="x" * 60),
            who="Ann",
        )
    entries = bench.entries()
    more = [table.more_of(e, bench.id) for e in entries]
    said = Gathered(bench.definition.titled, bench.trials, bench.best(), None, {}, {}, {}, {}, [], "2026-11-17", more)
    path = tmp_path / "report.html"
    path.write_text(report.to_html(said, {}), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1047, "height": 718})  # A4 on its side, less the margins
    page.goto(f"file://{path}")
    page.emulate_media(media="print")
    of_table = "const t = document.querySelector('.whole table')"
    wide = page.evaluate(f"() => {{ {of_table}; return [t.scrollWidth, t.getBoundingClientRect().right]; }}")
    assert max(wide) <= 1047
    text = page.inner_text("main")
    for words in (
        "10 of 10",
        "at most 10 crashes in 60 trials",
        "0.001 to 1000 N m / rad s^2",
        "logarithmic",
        "told on 20",
    ):
        assert words in text


def test_a_page_without_its_token_asks_for_it(browser, store):
    Bench.create(store, Definition.of(SAID))
    server = Server(store, "--token", "a-token-of-the-bench").start()
    try:
        page = opened(browser, server)
        page.fill("#dialog input[name=token]", "wrong-token")
        page.keyboard.press("Enter")
        playwright.expect(page.locator("#dialog [role=alert]")).to_contain_text("token must be", timeout=PATIENCE)
        page.fill("#dialog input[name=token]", "a-token-of-the-bench")
        page.keyboard.press("Enter")
        playwright.expect(page.locator("#next")).to_be_visible(timeout=PATIENCE)
        assert page.errors == []
    finally:
        server.kill()


def test_a_log_of_hundreds_has_pages_and_what_is_told_arrives_alone(browser, store):
    bench = Bench.create(store, Definition.of(SAID))
    bench.add_all([({"knee": i / 800, "hip": 0.5}, Told.of(void="unplugged"), None) for i in range(700)])  # no models
    server = Server(store).start()
    try:
        page = opened(browser, server)
        answers = []
        page.on("response", lambda answer: answers.append(answer) if "/api/state?" in answer.url else None)
        rows = page.locator("#log tbody tr")
        playwright.expect(page.locator(".pager span")).to_have_text("trials 600 to 699 of 700")
        assert rows.count() == 100
        assert page.locator("#chart-cost .hit").count() < 300
        Bench.open(store).add({"knee": 0.1, "hip": 0.2}, Told.of(void="by another process"))
        playwright.expect(page.locator("#trial-700")).to_be_visible()
        assert {t["number"] for answer in answers for t in answer.json()["trials"]} == {700}
        page.get_by_role("button", name="Older").click()
        playwright.expect(page.locator("#trial-600")).to_be_visible()
        assert rows.count() == 100
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert rows.count() == 701
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert rows.count() == 100
        assert page.errors == []
    finally:
        server.kill()


def test_several_goals_by_clicking(browser, store):
    said = {"name": "crane", "parameters": {"x": [0.0, 1.0], "y": [0.0, 1.0]}, "constraints": ["load"]}
    said |= {"objectives": {"time": "minimize", "payload": "maximize"}, "units": {"time": "s"}}
    bench = Bench.create(store, Definition.of(said))
    for x, y in ((0.1, 0.2), (0.4, 0.5), (0.8, 0.1), (0.6, 0.7)):
        bench.add({"x": x, "y": y}, Told.of(cost={"time": (1 - x) ** 2 + y, "payload": 1 - x**2}, measured={"load": x}))
    bench.add({"x": 0.9, "y": 0.9}, Told.of(crash="tripped"))
    server = Server(store).start()
    try:
        page = opened(browser, server, viewport={"width": 1280, "height": 900})
        playwright.expect(page.locator("#study-goal")).to_have_text("lowest time and highest payload", timeout=PATIENCE)
        playwright.expect(page.locator("#chart-cost .best-dot").first).to_be_visible(timeout=PATIENCE)
        assert page.locator("#chart-cost .cross").count() >= 1  # the crash stands beside the front
        page.locator("#chart-cost .hit[data-number='2']").dispatch_event("click")
        playwright.expect(page.locator("#front-setting")).to_have_text("Trial 2: x 0.8000, y 0.1000", timeout=PATIENCE)
        page.click("#next")
        wait_for(page, 5)
        ready(page)
        page.click("#tell-success")
        playwright.expect(page.locator(".now")).to_contain_text("A success has a value", timeout=PATIENCE)
        page.fill("input[name='c:time']", "0.4")
        page.click("#tell-success")
        playwright.expect(page.locator(".last-words")).to_contain_text("time 0.4 s", timeout=PATIENCE)
        assert bench.trials[5].cost == {"time": 0.4}
        assert page.errors == []
    finally:
        server.kill()


def test_the_operator_enters_what_is_met(store, browser):
    parameters = {"drive": [0.0, 1.0], "step": {"low": 0, "high": 1, "step": 0.1}, "heat": {"low": 5, "high": 40}}
    parameters["heat"]["context"] = True
    Bench.create(store, Definition.of({"name": "m", "parameters": parameters, "rules": ["drive <= step"]}))
    server = Server(store).start()
    try:
        page = opened(browser, server)
        page.click("#next")
        playwright.expect(page.locator("#form-error")).to_contain_text("heat must have a value")
        page.fill("[name='x:heat']", "18.2")
        page.click("#next")
        wait_for(page, 0)
        ready(page)
        page.fill("[name=cost]", "1.5")
        page.fill("[name='r:heat']", "19")
        page.click(".as-run summary")
        page.fill("[name='r:drive']", "0.31")
        page.click("#tell-success")
        playwright.expect(page.locator("#last")).to_contain_text("Trial 0")
        (trial, *_) = Bench.open(store).trials
        assert (trial.params["heat"], trial.ran["heat"], trial.ran["drive"]) == (18.2, 19.0, 0.31)
        assert trial.ran["step"] == trial.params["step"]
        assert not page.errors
    finally:
        server.kill()
