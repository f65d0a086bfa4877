"""The console over time: what changes is shown, whoever has no key sees nothing, and an absence is said."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.processes import Background, SandboxProcess, free_port
from tests.real_cluster.servers import SandboxServer

from .looking import Visitor, link_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.e2e, pytest.mark.browser]


def giant(sandbox: SandboxProcess, name: str) -> None:
    done = sandbox.kubectl(
        "run", name, "--image=i", "--overrides",
        '{"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"777"}}}]}}',
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_new_pod_appears_and_goes_in_two_tabs_without_a_reload(visitor: Visitor, sandbox: SandboxProcess) -> None:
    page = visitor.open("waiting")
    tab = Visitor(page.context.new_page(), visitor.link)
    tab.open("pods/default/late")
    assert "There is no pod default/late" in tab.page.inner_text("main")
    tab.errors.clear()
    for one in (page, tab.page):
        one.evaluate("window.wasNotReloaded = true")
    giant(sandbox, "late")
    page.bring_to_front()
    visitor.wait_for("#region-waiting", "default/late")
    assert page.evaluate("window.wasNotReloaded")
    tab.page.bring_to_front()
    tab.wait_for("#region-verdict", "fits on none")
    tab.wait_for("#region-grid", "Insufficient cpu")
    sandbox.kubectl("delete", "pod", "late", "--now")
    tab.wait_for("#region-facts", "There is no pod default/late now")
    assert tab.page.locator("#region-grid").count() == 0
    assert tab.page.evaluate("window.wasNotReloaded")


def test_whoever_has_no_key_sees_nothing(browser: Browser, visitor: Visitor) -> None:
    context = browser.new_context()
    page = context.new_page()
    for path in ("", "waiting", "live?view=/console/waiting", "?key=wrong", "static/console.js"):
        answer = page.goto(visitor.root + path)
        assert answer is not None and answer.status == 401, path
        assert "giant" not in page.content()
    context.close()


def test_the_key_does_not_stay_in_the_address_and_scripts_cannot_read_it(visitor: Visitor) -> None:
    key = visitor.link.partition("key=")[2]
    page = visitor.page
    assert key and key not in page.url and key not in page.content()
    assert key not in page.evaluate("document.cookie")
    assert page.context.cookies()[0]["httpOnly"]


def test_a_page_says_when_the_scheduler_is_away_and_goes_on(visitor: Visitor, sandbox: SandboxProcess) -> None:
    visitor.open("waiting")
    visitor.wait_for("#state", "live")
    sandbox.signal_all(signal.SIGSTOP)
    try:
        visitor.wait_for("#state.away", "the scheduler does not answer")
    finally:
        sandbox.signal_all(signal.SIGCONT)
    visitor.wait_for("#state", "live")
    visitor.errors.clear()  # Connections that were lost.


def test_a_console_that_was_restarted_says_what_to_do(browser: Browser, sandbox: SandboxProcess) -> None:
    port = free_port()
    arguments = ("console", "--kubeconfig", sandbox.kubeconfig, "--port", str(port))
    first = Background(*arguments)
    context = browser.new_context()
    visitor = Visitor(context.new_page(), link_of(first))
    visitor.wait_for("#state", "live")
    assert "(follows, does not schedule)" in visitor.page.inner_text("header")
    first.end()
    visitor.wait_for("#state.away", "the scheduler does not answer")
    second = Background(*arguments)
    try:
        link = link_of(second)
        visitor.wait_for("#state.away", "no longer logged in")
        visitor.page.goto(link)
        visitor.wait_for("#state", "live")
    finally:
        context.close()
        second.end()


def test_a_console_says_when_the_api_server_is_away_and_goes_on(browser: Browser, tmp_path: Path) -> None:
    server = SandboxServer(tmp_path)
    server.start()
    console = Background("console", "--kubeconfig", server.admin)
    context = browser.new_context()
    try:
        visitor = Visitor(context.new_page(), link_of(console))
        visitor.wait_for("#state", "live")
        server.kill()
        visitor.wait_for("#state.away", "no contact with the API server for")
        server.start()
        visitor.wait_for("#state:not(.away)", "live")
        assert visitor.errors == []
    finally:
        context.close()
        console.end()
        server.stop()
