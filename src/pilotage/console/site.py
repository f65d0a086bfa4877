"""Which page answers which path, and what every page has around it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from pilotage.console.inside import inside
from pilotage.console.node import node_page
from pilotage.console.overview import overview
from pilotage.console.pod import pod_page
from pilotage.console.pod_group import group_page
from pilotage.console.queues import queue_page, queues_page, workload_page
from pilotage.console.reports import STYLE_SHEET, WRITTEN, reports_page, style_sheet, written_page
from pilotage.console.source import ConsoleSource
from pilotage.console.view import CSS, HEADERS, HTML, PageView, SchedulerState, events, page, render
from pilotage.console.waiting import waiting
from pilotage.escaping import visible
from pilotage.pictures import duration
from pilotage.serve.console_door import CONSOLE, LIVE, LOGIN, Sight, sight_of
from pilotage.serve.page import Page, PageAnswer, PageRequest, error_answer

PREFIX: Final = CONSOLE
_STATIC: Final = f"{PREFIX}/static/"
_TYPES: Final = {"css": CSS, "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
_LONGEST_PATH: Final = 1000
_REPORTS: Final = "reports"
_NAVIGATION: Final = (
    *(("", "Overview"), ("waiting", "Waiting"), ("queues", "Queues"), ("inside", "Inside"), (_REPORTS, "Reports")),
)

log = logging.getLogger(__name__)

ViewOf = Callable[..., PageView]
_PAGES: Final[dict[str, ViewOf]] = {
    "": overview,
    "waiting": waiting,
    "queues": queues_page,
    "inside": inside,
    _REPORTS: reports_page,
}
_OBJECTS: Final[dict[tuple[str, int], ViewOf]] = {
    ("pods", 2): pod_page,
    ("podgroups", 2): group_page,
    ("nodes", 1): node_page,
    ("queues", 1): queue_page,
    ("workloads", 2): workload_page,
}
_NAMESPACED: Final = frozenset({"pods", "podgroups", "workloads"})


class ConsolePages:
    """The pages of one source."""

    def __init__(self, source: ConsoleSource, title: str, log_out: str = "") -> None:
        """`title` says which cluster this is, `log_out` where a visitor who has logged in goes to end that."""
        self.source = source
        self._log_out = log_out
        self._title = title

    def answer(self, request: PageRequest, sight: Sight) -> PageAnswer:
        """The page for a visitor who may see so much; one that cannot be made says so."""
        try:
            return self._answer(request, sight)
        except Exception as error:
            log.exception("page of the console failed: path=%s", request.shown_path)
            note = f"This page cannot be made: {type(error).__name__}: {error}. The log of the scheduler says more."
            if request.path == LIVE:
                return error_answer(500, "InternalError", note)
            failed = PageView("Something is broken here", {"note": ("note.html", {"note": note})}, status=500)
            return page(failed, self._around(""))

    def _answer(self, request: PageRequest, sight: Sight) -> PageAnswer:
        if request.method not in ("GET", "HEAD"):
            return error_answer(405, "MethodNotAllowed", "the console only reads")
        if len(request.path) > _LONGEST_PATH:
            return error_answer(414, "URITooLong", "this is no page of the console")
        if request.path.startswith(_STATIC):
            return _static(request.path.removeprefix(_STATIC))
        if request.path == LOGIN:
            return _login(request)
        if request.path == LIVE:
            return self._live(request, sight)
        if request.path == WRITTEN:
            return written_page(self.source, sight, request)
        path = request.path.removeprefix(PREFIX).strip("/")
        return page(self._view(path, request, sight), self._around(path))

    def pages(self) -> dict[str, Page]:
        """For a site: everything below the prefix."""
        return {PREFIX: self.page, f"{PREFIX}/": self.page}

    def page(self, request: PageRequest) -> PageAnswer:
        """The page for a visitor of whom the door has said what they may see."""
        sight = sight_of(request)
        if sight is None:
            return error_answer(403, "Forbidden", "the console is served on the secure port only")
        return self.answer(request, sight)

    def _live(self, request: PageRequest, sight: Sight) -> PageAnswer:
        """What has changed on the page that `view` names."""
        clock = self.source.clock
        begin = clock.monotonic()
        shown = urlsplit(request.first("view"))
        query = parse_qs(shown.query, keep_blank_values=True, max_num_fields=20)
        path = shown.path.removeprefix(PREFIX).strip("/")
        asked = PageRequest(shown.path, query=query)
        known = request.headers.get("last-event-id") or request.first("known")
        view = self._view(unquote(path), asked, sight)
        return events(view, known, self._state(), lambda: clock.monotonic() - begin)

    def _view(self, path: str, request: PageRequest, sight: Sight) -> PageView:
        parts = path.split("/")
        if path in _PAGES:
            return _PAGES[path](self.source, sight, request)
        view_of = _OBJECTS.get((parts[0], len(parts) - 1))
        if view_of is None:
            return PageView(
                "No such page", {"note": ("note.html", {"note": f"There is no page {visible(path)}."})}, status=404
            )
        if parts[0] in _NAMESPACED and not sight.sees(parts[1]):
            note = f"You may not list pods in namespace {parts[1]}."
            return PageView("Forbidden", {"note": ("note.html", {"note": note})}, status=403)
        return view_of(self.source, sight, request, *parts[1:])

    def _state(self) -> SchedulerState:
        source = self.source
        seconds = source.process.seconds_without_server()
        if seconds:
            text = f"no contact with the API server for {duration(round(seconds))}"
            return SchedulerState(text, True, source.decides, source.started)
        text = "live; standby, another scheduler decides" if source.is_standby() else "live"
        return SchedulerState(text, False, source.decides, source.started)

    def _around(self, path: str) -> dict[str, Any]:
        here = path.partition("/")[0]
        hidden = () if self.source.reports else (_REPORTS,)
        items = [(f"{PREFIX}/{target}", name, target == here) for target, name in _NAVIGATION if target not in hidden]
        return {
            "navigation": items,
            "cluster": self._title,
            "prefix": PREFIX,
            "log_out": self._log_out,
            "state": self._state(),
        }


@cache
def _static(name: str) -> PageAnswer:
    if name == STYLE_SHEET:
        return style_sheet()
    kind = _TYPES.get(name.rpartition(".")[2])
    file = resources.files("pilotage.console") / "static" / name
    if kind is None or "/" in name or not file.is_file():
        return error_answer(404, "NotFound", "no such file")
    return PageAnswer(200, file.read_bytes(), kind, HEADERS)


def _login(request: PageRequest) -> PageAnswer:
    message = "The API server does not know this token, or it has expired." if request.first("failed") else ""
    body = str(render("login.html", {"message": message, "prefix": PREFIX})).encode()
    return PageAnswer(401 if message else 200, body, HTML, HEADERS)
