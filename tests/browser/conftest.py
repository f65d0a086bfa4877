"""A browser and a cluster for the tests of one file: a browser has an event loop of its own as long as it is open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.e2e.processes import SandboxProcess

from .looking import Visitor, chromium, cluster, link_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def sandbox(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with cluster(tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest.fixture(scope="module")
def link(sandbox: SandboxProcess) -> str:
    return link_of(sandbox)


@pytest.fixture
def visitor(browser: Browser, link: str) -> Iterator[Visitor]:
    """Somebody who has just opened the link."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    made = Visitor(context.new_page(), link)
    yield made
    context.close()
    assert made.errors == []
