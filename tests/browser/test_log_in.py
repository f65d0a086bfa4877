"""`run --console` in a browser: the API server says who a visitor is; schedulers come, go and take over."""

from __future__ import annotations

import ssl
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.processes import Background, eventually, free_port
from tests.real_cluster.servers import TOKEN, SandboxServer

from .looking import Visitor, violations

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.e2e, pytest.mark.browser]

ELECTION = ("--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms")


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxServer]:
    running = SandboxServer(tmp_path_factory.mktemp("server"))
    running.start()
    yield running
    running.stop()


@contextmanager
def scheduler(server: SandboxServer, port: int, *flags: str) -> Iterator[Background]:
    """One whose console answers."""
    address = (f"--secure-port={port}", "--bind-address=127.0.0.1")
    running = Background("run", "--kubeconfig", server.admin, "--console", *address, *flags)
    try:
        eventually("the form is there", lambda: running.process.poll() is not None or is_there(port))
        assert running.process.poll() is None, running.process.communicate()[1]
        yield running
    finally:
        running.end()


def is_there(port: int) -> bool:
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(f"https://127.0.0.1:{port}/console/login", context=trusting, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextmanager
def visiting(browser: Browser, port: int) -> Iterator[Visitor]:
    """Somebody who comes without a token."""
    context = browser.new_context(ignore_https_errors=True)
    try:
        yield Visitor(context.new_page(), f"https://127.0.0.1:{port}/console/")
    finally:
        context.close()


def log_in(visitor: Visitor, token: str = TOKEN) -> None:
    visitor.page.get_by_label("Token").fill(token)
    visitor.page.keyboard.press("Enter")


def test_a_person_logs_in_with_a_token_and_is_refused_with_a_wrong_one(browser: Browser, server: SandboxServer) -> None:
    port = free_port()
    with scheduler(server, port, "--leader-elect=false"), visiting(browser, port) as visitor:
        page = visitor.page
        assert page.inner_text("h1") == "Log in to Pilotage" and page.url.endswith("/console/login")
        assert page.evaluate("document.activeElement.id") == "token" and violations(page) == []
        log_in(visitor, "a-wrong-token")
        page.locator("[role=alert]").wait_for()
        assert "does not know this token" in page.inner_text("main")
        visitor.keep_picture("log-in")
        visitor.errors.clear()  # The browser reports the 401 itself.
        log_in(visitor)
        page.wait_for_url("**/console/")
        visitor.wait_for("#state", "live")
        assert page.inner_text("h1") == "Overview" and violations(page) == []
        [cookie] = page.context.cookies()
        assert cookie["httpOnly"] and cookie["secure"] and cookie["sameSite"] == "Strict"
        assert TOKEN not in page.content() and TOKEN not in page.evaluate("document.cookie")
        # As if it had expired while the page was open.
        page.context.add_cookies([{**cookie, "value": "expired"}])
        visitor.wait_for("#state.away", "you are no longer logged in")
        page.click("text=log in again")
        assert page.inner_text("h1") == "Log in to Pilotage"
        visitor.errors.clear()
        log_in(visitor)
        visitor.wait_for("#state", "live")
        page.click("text=Log out")
        assert page.inner_text("h1") == "Log in to Pilotage" and page.context.cookies() == []
        assert visitor.errors == []


def test_a_page_says_that_the_scheduler_was_restarted_and_goes_on(browser: Browser, server: SandboxServer) -> None:
    port = free_port()
    with scheduler(server, port, "--leader-elect=false") as first, visiting(browser, port) as visitor:
        log_in(visitor)
        visitor.wait_for("#state", "live")
        assert visitor.page.locator("#notice").is_hidden()
        first.end()
        visitor.wait_for("#state.away", "the scheduler does not answer")
        with scheduler(server, port, "--leader-elect=false"):
            visitor.wait_for("#notice", "a scheduler answers that was started anew")
            visitor.wait_for("#state:not(.away)", "live")


def test_a_page_of_a_standby_says_when_it_takes_over(browser: Browser, server: SandboxServer) -> None:
    first, second = free_port(), free_port()
    with scheduler(server, first, *ELECTION) as leader, visiting(browser, first) as at_leader:
        log_in(at_leader)
        at_leader.wait_for("#state", "live")
        with scheduler(server, second, *ELECTION), visiting(browser, second) as visitor:
            log_in(visitor)
            visitor.wait_for("#state", "standby, another scheduler decides")
            assert "(follows, does not schedule)" in visitor.page.inner_text("header")
            leader.end()
            visitor.wait_for("#notice", "this scheduler decides: it leads now")
            assert "standby" not in visitor.state() and "follows" not in visitor.page.inner_text("header")
            visitor.wait_for("#region-calls", "Calls to the API server")


def test_nobody_is_logged_out_while_the_api_server_is_away(browser: Browser, tmp_path: Path) -> None:
    own, port = SandboxServer(tmp_path), free_port()
    own.start()
    try:
        with scheduler(own, port, "--leader-elect=false"), visiting(browser, port) as visitor:
            log_in(visitor)
            visitor.wait_for("#state", "live")
            own.kill()
            visitor.wait_for("#state.away", "the API server does not answer")
            own.start()
            visitor.wait_for("#state:not(.away)", "live")
    finally:
        own.stop()
