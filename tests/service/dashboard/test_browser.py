"""The pages in a real browser: Debian's chromium, driven by Playwright, against a real server."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from service import auth
from tests.service.dashboard.app import Served, application, listening
from tests.service.dashboard.conftest import World
from tests.service.dashboard.rows import tensor_names
from tests.service.dashboard.seed import Seed
from tests.service.dashboard.test_pages import PAGES

CHROMIUM = shutil.which("chromium")  # else the one that Playwright keeps, if it was fetched
ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
WITHOUT = "NINFER_GATE_TESTS_WITHOUT_BROWSER"
pytestmark = pytest.mark.skipif(
    CHROMIUM is None and bool(os.environ.get(WITHOUT)), reason=f"{WITHOUT} is set, and there is no chromium"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)


class Visit:
    """A browser window with what it complained about."""

    def __init__(self, context: BrowserContext) -> None:
        self.complaints: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))


def visit(
    stack: ExitStack,
    browser: Browser,
    served: Served,
    *,
    logged_in: bool = True,
    width: int = 1280,
    script: bool = True,
) -> Visit:
    context = browser.new_context(
        base_url=served.address, viewport={"width": width, "height": 800}, java_script_enabled=script
    )
    context.set_default_timeout(10_000)
    stack.callback(context.close)
    if logged_in:
        context.add_cookies([{"name": auth.COOKIE, "value": served.session(), "url": served.address}])
    return Visit(context)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_from_login_to_a_finding(stack: ExitStack, browser: Browser, world: World) -> None:
    visiting = visit(stack, browser, world, logged_in=False)
    page = visiting.page
    page.goto("/")
    page.get_by_label("Token").fill(world.token)
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(world.address + "/")
    row = page.get_by_role("row").filter(has_text="qwen3.6-27b-draft.ninfer")
    row.get_by_role("link", name="failed").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("failed")
    page.get_by_role("link", name="parity.code_mismatch").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("parity.code_mismatch")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("failed")
    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_url(world.address + "/login")
    assert visiting.complaints == []


def test_filters_live_in_the_address_and_back_works(stack: ExitStack, browser: Browser, world: World) -> None:
    visiting = visit(stack, browser, world)
    page = visiting.page
    start = f"/runs/{world.scene.failed.id}"
    page.goto(start)
    page.get_by_role("link", name="all 40").click()
    page.get_by_label("Format").select_option("BF16")
    page.get_by_label("Order").select_option("as in the file")
    page.get_by_role("button", name="Filter").click()
    expect(page).to_have_url(
        re.compile(re.escape(start) + r"\?outcome=all&format=BF16&order=ordinal#objects$")
    )
    names = page.locator("td.lead:has(bdi)").all_inner_texts()
    page.reload()
    assert page.locator("td.lead:has(bdi)").all_inner_texts() == names
    expect(page.get_by_label("Format")).to_have_value("BF16")
    page.go_back()
    expect(page).to_have_url(re.compile(r"outcome=all#objects$"))
    page.go_back()
    expect(page).to_have_url(world.address + start)
    assert visiting.complaints == []


def test_a_long_list_is_walked_by_keyboard(stack: ExitStack, browser: Browser, world: World) -> None:
    visiting = visit(stack, browser, world)
    page = visiting.page
    page.goto(PAGES["artifact"](world.scene))
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.get_by_role("link", name="next").focus()
    page.keyboard.press("Enter")
    expect(page.locator("td.lead:has(bdi)").last).to_have_text(tensor_names(3_000)[199])
    assert visiting.complaints == []


def test_from_the_catalogue_to_the_bytes_of_a_block(stack: ExitStack, browser: Browser, world: World) -> None:
    visiting = visit(stack, browser, world)
    page = visiting.page
    page.goto("/schemes")
    page.get_by_label("Name").fill("iq2_xxs")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name="ggml_iq2_xxs").click()
    drawn = page.get_by_role("table", name="blocks, 66 B, one of 65,536: byte by byte")
    first = drawn.get_by_role("row").nth(1).get_by_role("cell")
    expect(first.first).to_have_text("d")
    colours = [
        first.nth(index).evaluate("cell => getComputedStyle(cell).backgroundColor") for index in range(3)
    ]
    assert len(set(colours)) == 3  # the content policy lets the style through
    page.get_by_label("Sizes for the shape").fill("2x256")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("table", name="blocks, 66 B, one of 2: byte by byte")).to_be_visible()
    page.get_by_text("Decoder in ONNX text form").click()
    expect(page.locator("details pre")).to_contain_text("Gather")
    assert visiting.complaints == []


WIDTHS = (360, 740, 768, 970, 1030, 1600)


def test_nothing_sticks_out_at_any_width_and_nothing_is_complained_about(
    stack: ExitStack, browser: Browser, world: World
) -> None:
    """Every page is loaded once and drawn at every width: no script of ours asks how wide a window is."""
    visiting = visit(stack, browser, world)
    for name, address in PAGES.items():
        visiting.page.goto(address(world.scene))
        for width in WIDTHS:
            visiting.page.set_viewport_size({"width": width, "height": 800})
            drawn, excess = visiting.page.evaluate(
                "[innerWidth, document.documentElement.scrollWidth - document.documentElement.clientWidth]"
            )
            assert (name, drawn, excess) == (name, width, 0)
    assert visiting.complaints == []


def test_progress_is_live_and_the_page_shows_the_verdict(
    stack: ExitStack, browser: Browser, empty: Served
) -> None:
    seed = Seed(empty.parts.database)
    run = seed.run(seed.artifact("a.ninfer", tensor_names(5)), "running")
    visiting = visit(stack, browser, empty)
    page = visiting.page
    page.goto(f"/runs/{run.id}")
    seed.advance(run, 0.25)
    expect(page.get_by_text("25.0 %")).to_be_visible()
    seed.advance(run, 0.75)
    expect(page.get_by_text("75.0 %")).to_be_visible()
    share = page.evaluate("(bar => bar.value / bar.max)(document.querySelector('progress'))")
    assert share == pytest.approx(0.75, abs=0.001)
    seed.finish(run, "cancelled")
    expect(page.get_by_role("heading", level=1)).to_have_text("cancelled")
    expect(page.locator("progress")).to_have_count(0)
    loads = page.evaluate("performance.getEntriesByType('navigation')[0].type")
    page.wait_for_timeout(1_000)
    assert loads == "reload"
    assert page.evaluate("performance.now()") > 900
    assert visiting.complaints == []


def test_a_list_of_jobs_is_live(stack: ExitStack, browser: Browser, empty: Served) -> None:
    seed = Seed(empty.parts.database)
    artifact = seed.artifact("a.ninfer", tensor_names(5))
    first, second = seed.run(artifact, "running"), seed.run(artifact, "running")
    page = visit(stack, browser, empty).page
    page.goto("/jobs")
    seed.advance(first, 0.5)
    expect(page.get_by_text("50.0 %")).to_be_visible()
    seed.finish(second, "passed")
    expect(page.locator(f'[data-mark="{second.job_id}"]')).to_have_text("passed")
    expect(page.locator(f'[data-mark="{first.job_id}"]')).to_have_text("running")


def test_a_lost_connection_is_said_and_found_again(
    stack: ExitStack, browser: Browser, tmp_path: Path
) -> None:
    app = application(tmp_path)
    parts = app.state.parts
    stack.callback(parts.database.close)
    seed = Seed(parts.database)
    run = seed.run(seed.artifact("a.ninfer", tensor_names(5)), "running")
    with listening(app) as address:
        served = Served(parts, address, auth.new_token(parts.database))
        page = visit(stack, browser, served).page
        page.goto(f"/runs/{run.id}")
        expect(page.get_by_text("0 %")).to_be_visible()
        expect(page.get_by_text("Connection lost")).to_be_hidden()
    expect(page.get_by_text("Connection lost")).to_be_visible()
    parts.closing.clear()
    seed.advance(run, 0.5)
    with listening(app, int(address.rpartition(":")[2])):
        expect(page.get_by_text("50.0 %")).to_be_visible(timeout=15_000)
        expect(page.get_by_text("Connection lost")).to_be_hidden()
        page.goto("about:blank")


def test_digests_are_copied_whole(stack: ExitStack, browser: Browser, world: World) -> None:
    visiting = visit(stack, browser, world)
    page = visiting.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/?q=" + world.scene.large.digest)
    page.get_by_role("button", name=f"Copy {world.scene.large.digest}").click()
    assert page.evaluate("navigator.clipboard.readText()") == world.scene.large.digest
    assert visiting.complaints == []


def test_a_page_reads_without_scripts(stack: ExitStack, browser: Browser, empty: Served) -> None:
    seed = Seed(empty.parts.database)
    run = seed.run(seed.artifact("a.ninfer", tensor_names(5)), "running")
    page = visit(stack, browser, empty, script=False).page
    page.goto(f"/runs/{run.id}")
    expect(page.get_by_role("link", name="Refresh")).to_be_visible()
    assert page.locator('noscript meta[http-equiv="refresh"]').count() == 1 or 'content="5"' in page.content()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Stopping")).to_be_disabled()


def test_a_link_on_another_site_shows_the_run(stack: ExitStack, browser: Browser, world: World) -> None:
    page = visit(stack, browser, world).page
    target = f"{world.address}/runs/{world.scene.failed.id}"
    page.route(
        "http://other.example/",
        lambda route: route.fulfill(content_type="text/html", body=f'<a href="{target}">run</a>'),
    )
    page.goto("http://other.example/")
    page.get_by_role("link", name="run").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("failed")
    expect(page).to_have_url(target)


def test_hostile_names_run_nothing(stack: ExitStack, browser: Browser, world: World) -> None:
    visiting = visit(stack, browser, world)
    visiting.page.on("dialog", lambda dialog: visiting.complaints.append(dialog.message))
    for name in ("hostile run", "hostile artifact", "artifacts"):
        visiting.page.goto(PAGES[name](world.scene))
        assert visiting.page.locator("img").count() == 0
    assert visiting.complaints == []


def test_a_page_prints_without_its_controls(stack: ExitStack, browser: Browser, world: World) -> None:
    page = visit(stack, browser, world).page
    page.goto(f"/runs/{world.scene.failed.id}")
    page.emulate_media(media="print")
    expect(page.get_by_role("navigation", name="Pages")).to_be_hidden()
    expect(page.get_by_role("button", name="Filter")).to_be_hidden()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
