"""The live page in a browser: it moves, compares, obeys the keyboard and fits a phone."""

import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pytest

pytest.importorskip("uvicorn")

from playwright.sync_api import Browser, Page, expect

from conformance.conftest import image_cache
from conformance.tiny import SESSIONS, TINY, tiny
from episodica.engine.run import run_one
from episodica.watch.app import live_app
from unit.watch.fake_run import FakeRun

__all__ = ["image_cache"]


@pytest.fixture
def address_of(serving: Callable[..., str]) -> Callable[..., str]:
    """A server for a folder that looks often, until the end of the test."""

    def serve(folder: Path, token: str | None = None) -> str:
        stopping = Event()
        return serving(live_app(folder, token=token, stopping=stopping.is_set, between=0.1), stopping)

    return serve


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three finished runs, one that fails and one that is on its way."""
    for seed in (0, 1):
        FakeRun(tmp_path / f"ft-{seed}", seed=seed).whole()
    FakeRun(tmp_path / "ida-0", "ida").whole()
    failed = FakeRun(tmp_path / "eiml-0", "eiml")
    failed.begin()
    (failed.folder / "error.log").write_text("Traceback: <script>window.hacked = 1</script>")
    return tmp_path


@pytest.fixture
def growing(runs: Path) -> FakeRun:
    run = FakeRun(runs / "erd-0", "erd")
    run.begin()
    run.steps(2)
    return run


def points(page: Page, chart: int) -> str:
    """Where the lines of a chart go."""
    return (
        page.locator("#panel .chart")
        .nth(chart)
        .locator(".line")
        .evaluate_all("lines => lines.map((line) => line.getAttribute('d')).join()")
    )


def changes(look: Callable[[], str], before: str) -> bool:
    give_up = time.monotonic() + 10
    while look() == before:
        if time.monotonic() > give_up:
            return False
        time.sleep(0.05)
    return True


def fits(page: Page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_page_loads_alone(page, address_of, runs):
    """The fixture sees to it that nothing goes wrong in the console."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    home = address_of(runs)
    page.goto(home)
    expect(page.locator("#runs li")).to_have_count(4)
    expect(page.locator("#link")).to_have_text("live")
    expect(page.locator("#panel h2")).to_have_text("eiml")
    assert all(url.startswith((home, "data:")) for url in asked)


def test_a_running_job_moves(page, address_of, growing):
    page.goto(address_of(growing.folder.parent))
    row = page.get_by_role("option", name="erd")
    expect(row).to_contain_text("task 1/4")
    row.click()
    expect(page.locator(".badge")).to_have_text("running")
    loss = points(page, 1)
    growing.steps(2)
    assert changes(lambda: points(page, 1), loss)
    accuracy = points(page, 0)
    growing.evaluate()
    growing.begin()
    growing.steps(2)
    growing.evaluate()
    assert changes(lambda: points(page, 0), accuracy)
    expect(page.locator("#panel .chart").first.locator("circle")).to_have_count(4)
    expect(page.locator(".facts")).to_contain_text("2 of 4")
    for _ in range(2):
        growing.begin()
        growing.steps(1)
        growing.evaluate()
    growing.write_results("finished")
    expect(page.locator(".badge")).to_have_text("finished")


def test_a_run_appears_in_a_folder_that_was_empty_and_goes_when_it_is_removed(page, address_of, tmp_path):
    page.goto(address_of(tmp_path))
    expect(page.locator("#nothing")).to_contain_text("This page waits")
    run = FakeRun(tmp_path / "ft-0")
    expect(page.locator("#runs li")).to_have_count(1)
    run.folder.rename(tmp_path / ".away")
    expect(page.locator("#runs li")).to_have_count(0)


def test_unseen_classes_that_the_encoder_has_seen_are_marked_wherever_their_accuracy_stands(page, address_of, tmp_path):
    doubtful = FakeRun(tmp_path / "erd-0", "erd")
    doubtful.log("notice", text="WARNING: its classes are not unseen")
    doubtful.whole()
    FakeRun(tmp_path / "ft-0").whole()
    page.goto(address_of(tmp_path))
    page.get_by_role("option", name="erd").click()
    expect(page.locator("#panel").get_by_role("alert")).to_have_text("⚠ its classes are not unseen")
    expect(page.get_by_role("option", name="erd").locator(".score")).to_contain_text("⚠")
    page.get_by_role("option", name="ft").click()
    expect(page.locator("#panel .warning")).to_be_hidden()
    expect(page.get_by_role("option", name="ft").locator(".score")).not_to_contain_text("⚠")
    page.locator("#all").click()
    page.locator("#compare").click()
    expect(page.locator("#panel").get_by_role("alert")).to_be_visible()


def test_comparison(page, address_of, runs):
    page.goto(address_of(runs))
    page.get_by_label("Filter runs").fill("ft")
    expect(page.locator("#runs li")).to_have_count(2)
    page.get_by_text("Choose shown").click()
    expect(page.locator("#panel h2")).to_have_text("2 runs side by side")
    expect(page.locator("#panel .chart").first.locator(".line")).to_have_count(2)
    differences = page.get_by_role("region", name="Settings that differ")
    expect(differences.locator("tbody tr")).to_have_count(1)
    expect(differences).to_contain_text("seed")
    expect(page.get_by_role("region", name="Results").locator("tbody tr")).to_have_count(2)
    expect(page.locator("#term option")).to_have_text(["meta", "distill"])
    page.reload()
    expect(page.locator("#panel h2")).to_have_text("2 runs side by side")
    page.get_by_label("Take ft seed=0 out").click()
    expect(page.locator("#panel h2")).to_have_text("1 run side by side")


def test_by_keyboard_alone(page, address_of, runs):
    page.goto(address_of(runs))
    expect(page.locator("#runs li")).to_have_count(4)
    page.keyboard.press("Tab")  # to the link that skips the list
    page.keyboard.press("Tab")
    expect(page.locator("#filter")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#runs li").nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press(" ")
    page.keyboard.press("End")
    page.keyboard.press(" ")
    chosen = page.locator("#runs li[aria-selected=true]")
    expect(chosen).to_have_count(2)
    expect(page.locator("#panel h2")).to_have_text("2 runs side by side")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.locator("#panel h2")).to_have_text("eiml")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.locator("#panel .chart svg").first.focus()
    page.keyboard.press("Escape")
    expect(page.locator("#runs li").nth(0)).to_be_focused()


def test_values_of_a_curve_by_arrow_keys(page, address_of, runs):
    page.goto(address_of(runs))
    page.get_by_role("option", name="ida").click()
    chart = page.locator("#panel .chart").first
    expect(chart.locator("circle")).to_have_count(8)
    chart.locator("svg").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(chart.locator(".reading")).to_contain_text("session 2")
    expect(chart.locator(".reading")).to_contain_text("36.0 ± 0.5")


def test_states_filter(page, address_of, runs):
    page.goto(address_of(runs))
    page.get_by_role("button", name="1 failed").click()
    expect(page.locator("#runs li")).to_have_count(1)
    page.get_by_role("button", name="1 failed").click()
    expect(page.locator("#runs li")).to_have_count(4)


def test_what_folders_hold_is_text_and_never_markup(page, address_of, runs):
    FakeRun(runs / "<img src=x onerror=hacked=1>", "ft")
    page.goto(address_of(runs))
    page.get_by_role("option", name="eiml").click()
    expect(page.locator("#panel pre.error")).to_contain_text("<script>window.hacked = 1</script>")
    expect(page.locator("#runs")).to_contain_text("<img src=x onerror=hacked=1>")
    assert page.locator("#runs img, #panel script").count() == 0
    assert page.evaluate("window.hacked") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_wider_than_the_screen(browser: Browser, address_of, runs, scheme):
    page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page.goto(address_of(runs))
    expect(page.locator("#runs li")).to_have_count(4)
    assert fits(page)
    page.get_by_role("option", name="ida").click()
    expect(page.locator("#panel h2")).to_have_text("ida")
    expect(page.locator("#roster")).to_be_hidden()
    assert fits(page)
    page.get_by_text("← Runs").click()
    page.get_by_text("Choose shown").click()
    page.get_by_text("Compare 4").click()
    expect(page.locator("#panel h2")).to_have_text("4 runs side by side")
    expect(page.get_by_role("region", name="Settings that differ")).to_be_visible()
    assert fits(page)
    page.close()


def test_the_token_is_asked_once_and_leaves_the_address(page, address_of, runs):
    home = address_of(runs, token="a-secret-of-enough-letters")
    page.goto(f"{home}?token=a-secret-of-enough-letters")
    expect(page.locator("#runs li")).to_have_count(4)
    assert "token" not in page.url
    page.goto(home)
    expect(page.locator("#link")).to_have_text("live")


def test_a_real_run(page, address_of, tmp_path):
    page.goto(address_of(tmp_path))
    run = Thread(target=run_one, args=(tiny({**TINY, "kernels": "torch"}), tmp_path, lambda event: None))
    run.start()
    expect(page.locator("#panel .badge")).to_have_text("finished")
    run.join()
    assert page.locator("#panel .chart").first.locator("circle").count() == 2 * SESSIONS
    assert points(page, 1)
