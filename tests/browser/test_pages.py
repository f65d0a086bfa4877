"""Every page of the console as a person meets it: content, markup in names, keyboard, phone, dark, accessible."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.processes import Background, SandboxProcess, pilotage

from .looking import HOSTILE, NODES, Visitor, link_of, violations

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.e2e, pytest.mark.browser]

PAGES = {
    "": "Overview",
    "waiting": "Waiting",
    "waiting?by=owner&search=giant": "Waiting",
    "pods/default/giant": "Pod default/giant",
    "pods/default/web": "Pod default/web",
    "pods/default/hostile": "Pod default/hostile",
    "podgroups/default/gang": "Pod group default/gang",
    "nodes/node-00001": "Node node-00001",
    "queues": "Queues",
    "queues/shared": "Queue shared",
    "inside": "Inside",
    "no/such/page": "No such page",
}


@pytest.mark.parametrize("path", PAGES)
def test_page_opens_without_an_error_and_is_accessible(visitor: Visitor, path: str) -> None:
    page = visitor.open(path)
    assert page.inner_text("h1") == PAGES[path]
    if path == "no/such/page":
        visitor.errors.clear()  # The browser reports the 404 itself.
    else:
        visitor.wait_for("#state", "live")
    visitor.keep_picture(path.replace("/", "-").partition("?")[0] or "overview")
    assert violations(page) == []


def test_the_check_for_accessibility_finds_what_is_wrong(visitor: Visitor) -> None:
    visitor.page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert any(found.startswith("button-name") for found in violations(visitor.page))


def test_links_lead_from_the_overview_to_the_verdict_on_a_pod(visitor: Visitor) -> None:
    page = visitor.page
    page.click("#region-reasons >> text=NodeResourcesFit")
    assert "search=NodeResourcesFit" in page.url
    page.click("text=default/giant")
    assert page.inner_text("h1") == "Pod default/giant"
    assert "Insufficient cpu" in page.inner_text("#region-grid")
    assert "would fit if" in page.inner_text("#region-verdict").lower()


def test_a_group_says_what_it_lacks_and_leads_to_its_members(visitor: Visitor) -> None:
    page = visitor.open("waiting")
    page.click("text=default/gang")
    assert "does not fit" in page.inner_text("#region-verdict")
    assert "Insufficient cpu" in page.inner_text("#region-verdict")
    page.click("#region-members >> text=default/gang-2")
    assert "placed together with its group" in page.inner_text("#region-verdict")
    page.click("#region-facts >> text=default/gang")
    assert page.inner_text("h1") == "Pod group default/gang"


def test_search_is_in_the_address_and_stays_when_the_page_refreshes(visitor: Visitor) -> None:
    page = visitor.open("waiting")
    page.fill("input[name=search]", "giant")
    page.keyboard.press("Enter")
    page.wait_for_url("**search=giant**")
    page.fill("input[name=search]", "half typ")
    visitor.wait_for("#state", "live")
    assert page.input_value("input[name=search]") == "half typ"
    assert "hostile" not in page.inner_text("#region-waiting")


@pytest.mark.parametrize("path", ["waiting", "pods/default/hostile", "nodes/node-00001"])
def test_markup_of_objects_is_shown_and_not_obeyed(visitor: Visitor, path: str) -> None:
    page = visitor.open(path)
    visitor.wait_for("#state", "live")
    shown = page.inner_text("main")
    assert "<img src=x onerror=document.title='owned'>" in shown and r"\x1b[31m\u202e" in shown
    assert page.locator("main img").count() == 0 and "owned" not in page.title()


def test_markup_in_the_address_is_shown_and_not_obeyed(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.root}waiting?search={HOSTILE.replace(' ', '%20')}&namespace=<script>alert(1)</script>")
    visitor.wait_for("#state", "live")
    assert page.locator("main img, main script:not([type])").count() == 0 and "owned" not in page.title()


def test_what_markup_would_do_is_forbidden_as_well(visitor: Visitor) -> None:
    """Were it not escaped, the policy of the page would still stop it."""
    page = visitor.page
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">')")
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'document.title=2'}))")
    page.evaluate("() => new Promise((done) => setTimeout(done, 100))")
    assert page.title() == "Overview - Pilotage"
    assert any("Content Security Policy" in error for error in visitor.errors)
    visitor.errors.clear()


def test_the_heat_map_answers_to_the_keyboard(visitor: Visitor) -> None:
    page = visitor.page
    page.focus("#fleet")
    page.keyboard.press("ArrowRight")
    first = page.inner_text("#fleet-cell")
    page.keyboard.press("ArrowRight")
    second = page.inner_text("#fleet-cell")
    assert first and second and first != second and second.endswith("%")
    width = page.evaluate("document.getElementById('fleet').clientHeight")
    page.keyboard.press("+")
    assert page.evaluate("document.getElementById('fleet').clientHeight") > width
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/nodes/**")
    assert page.inner_text("h1") == f"Node {second.partition(':')[0]}"


def test_a_chart_says_the_values_below_the_mouse(visitor: Visitor) -> None:
    page = visitor.page
    chart = page.locator("figure.chart", has_text="on nodes")
    chart.wait_for()
    now = chart.locator("b").inner_text()
    picture = chart.locator("svg[role=img]")
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    assert box is not None and int(now) > 0
    page.mouse.move(box["x"] + box["width"] - 1, box["y"] + box["height"] / 2)
    chart.locator(".when", has_text="at ").wait_for()
    assert chart.locator("b").inner_text() == now and picture.locator(".cursor").count() == 1
    page.mouse.move(box["x"], box["y"] - 40)
    chart.locator(".when", has_text="at ").wait_for(state="hidden")
    assert picture.locator(".cursor").count() == 0


def test_every_node_has_a_cell(visitor: Visitor) -> None:
    page = visitor.page
    seen = {page.inner_text("#fleet-cell")}
    page.focus("#fleet")
    for _ in range(NODES + 3):
        page.keyboard.press("ArrowRight")
        seen.add(page.inner_text("#fleet-cell").partition(":")[0])
    assert len(seen - {""}) == NODES


def test_keyboard_comes_to_the_content_first(visitor: Visitor) -> None:
    page = visitor.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


@pytest.mark.parametrize("path", ["", "waiting", "pods/default/giant", "podgroups/default/gang", "queues", "inside"])
def test_a_phone_shows_pages_without_scrolling_sideways(browser: Browser, link: str, path: str) -> None:
    context = browser.new_context(viewport={"width": 375, "height": 700}, is_mobile=True, has_touch=True)
    visitor = Visitor(context.new_page(), link)
    page = visitor.open(path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    visitor.keep_picture(f"phone-{path.replace('/', '-') or 'overview'}")
    context.close()
    assert visitor.errors == []


@pytest.mark.parametrize("path", ["", "waiting", "pods/default/giant", "queues"])
def test_dark_pages_are_dark_and_readable(browser: Browser, link: str, path: str) -> None:
    context = browser.new_context(color_scheme="dark")
    visitor = Visitor(context.new_page(), link)
    page = visitor.open(path)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 21, 28)"
    assert violations(page) == []
    context.close()


def test_without_javascript_everything_is_there(browser: Browser, link: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    visitor = Visitor(context.new_page(), link)
    page = visitor.open("pods/default/giant")
    assert "Insufficient cpu" in page.inner_text("#region-grid")
    context.close()


def test_a_verdict_is_copied_as_text(visitor: Visitor) -> None:
    page = visitor.open("pods/default/giant")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("text=Copy as text")
    page.locator("button", has_text="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("default/giant fits on none") and "Would fit if:" in copied


def test_a_workload_in_a_line_leads_to_its_story_and_a_pod_to_its_workload(visitor: Visitor) -> None:
    page = visitor.open("queues")
    page.click("#region-queues >> text=shared")
    visitor.wait_for("#region-line", "not within 1d")  # Nothing runs that could end.
    page.click("#region-line >> text=research/job-queued")
    assert page.inner_text("h1").startswith("Workload research/job-queued")
    story = page.inner_text("main")
    assert "insufficient" in story and "QuotaReserved" in story and "not within 1d" in story
    visitor.wait_for("#state", "live")
    visitor.keep_picture("workload")
    assert violations(page) == []


def test_of_a_pod_with_a_node_another_like_it_is_judged(visitor: Visitor) -> None:
    page = visitor.open("pods/default/web")
    assert f"of {NODES} nodes" in page.inner_text("#region-another")
    assert page.locator("#region-another svg.bar").count() == 3
    assert f"No filter rejects any of the {NODES} nodes" in page.inner_text("#region-grid")


def test_on_paper_everything_is_open_and_nothing_is_to_be_clicked(visitor: Visitor) -> None:
    page = visitor.open("pods/default/giant")
    assert page.locator("#as-text").is_hidden()
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#as-text").is_visible()
    assert page.locator("nav").is_hidden() and page.locator("button").first.is_hidden()
    assert len(page.pdf()) > 10_000
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert page.locator("#as-text").is_hidden()


def test_reports_of_simulations_are_listed_drawn_and_compared(
    browser: Browser, sandbox: SandboxProcess, tmp_path: Path
) -> None:
    trace = tmp_path / "day.jsonl"
    assert pilotage("trace", "generate", "-o", trace, "--pods", "30").returncode == 0
    for seed in ("0", "1"):
        result = tmp_path / f"seed-{seed}.result"
        assert pilotage("simulate", trace, "-o", result, "--ties", "random", "--seed", seed).returncode == 0
    written = f"<h1>Written</h1><script>document.title='owned'</script>{HOSTILE}"
    (tmp_path / "written.html").write_text(written, encoding="utf-8")
    console = Background("console", "--kubeconfig", sandbox.kubeconfig, "--reports", tmp_path)
    context = browser.new_context()
    try:
        visitor = Visitor(context.new_page(), link_of(console))
        page = visitor.page
        page.click("nav >> text=Reports")
        assert violations(page) == []
        page.click("text=seed-0.result")
        assert page.inner_text("h1") == "seed-0" and page.locator("svg.picture").count() >= 4
        assert violations(page) == []
        visitor.keep_picture("report")
        page.click("text=All reports")
        for box in page.get_by_role("checkbox").all():
            box.check()
        page.click("text=Compare those")
        assert page.url.count("run=") == 2 and "(n=2)" in page.inner_text("#measures")
        assert visitor.errors == []
        visitor.open("reports")
        page.click("text=written.html")
        assert page.inner_text("h1") == "Written" and "owned" not in page.title()
    finally:
        context.close()
        console.end()
