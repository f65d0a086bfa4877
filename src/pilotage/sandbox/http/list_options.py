"""The query parameters of lists and watches, read once and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from pilotage.sandbox.errors import FieldError, bad_request, invalid, too_large_resource_version
from pilotage.sandbox.http.exchange import Request
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.operations.selection import ObjectSelection, parse_selection

Match = Literal["", "Exact", "NotOlderThan"]

_MATCHES: Final = ("", "Exact", "NotOlderThan")


@dataclass(frozen=True, slots=True)
class ListParameters:
    selection: ObjectSelection
    resource_version: int | None
    """None: the most recent state; 0: any state."""
    match: str
    limit: int
    continue_token: str
    timeout_seconds: int | None
    wants_bookmarks: bool
    sends_initial_events: bool | None
    asked: tuple[str, str]
    """The texts of the selectors: pages of one list must ask for the same."""


def list_options(request: Request, resource_type: ResourceType) -> ListParameters:
    query = request.query
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    initial = query.get("sendInitialEvents")
    options = ListParameters(
        selection=parse_selection(resource_type, labels, fields),
        resource_version=_version(query.get("resourceVersion", "")),
        match=query.get("resourceVersionMatch", ""),
        limit=_number(request, "limit") or 0,
        continue_token=query.get("continue", ""),
        timeout_seconds=_number(request, "timeoutSeconds"),
        wants_bookmarks=request.flag("allowWatchBookmarks"),
        sends_initial_events=None if initial is None else request.flag("sendInitialEvents"),
        asked=(labels, fields),
    )
    return options


def check_list(options: ListParameters, revision: int) -> None:
    """Reject what a list cannot mean, and a state that this server has not reached."""
    if options.sends_initial_events is not None:
        raise _forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
    if options.match not in _MATCHES:
        supported = 'supported values: "Exact", "NotOlderThan"'
        error = FieldError("resourceVersionMatch", supported, options.match, "FieldValueNotSupported")
        raise invalid("ListOptions", "meta.k8s.io", "", [error])
    if options.match and options.resource_version is None:
        problem = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        raise _forbidden("resourceVersionMatch", problem)
    if options.match == "Exact" and options.resource_version == 0:
        problem = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        raise _forbidden("resourceVersionMatch", problem)
    if options.continue_token and options.resource_version:
        raise bad_request("specifying resource version is not allowed when using continue")
    if options.resource_version is not None and options.resource_version > revision:
        raise too_large_resource_version(options.resource_version, revision)


def check_watch(options: ListParameters) -> None:
    if options.sends_initial_events is None:
        if options.match:
            problem = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            raise _forbidden("resourceVersionMatch", problem)
        return
    if options.match != "NotOlderThan":
        problem = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise _forbidden("resourceVersionMatch", problem)
    if options.sends_initial_events and not options.wants_bookmarks:
        raise _forbidden("sendInitialEvents", "sendInitialEvents requires allowWatchBookmarks")


def _version(text: str) -> int | None:
    if not text:
        return None
    if not text.isascii() or not text.isdigit():
        error = FieldError("resourceVersion", "must be a whole number, as the server gave it", text)
        raise invalid("ListOptions", "meta.k8s.io", "", [error])
    return int(text)


def _number(request: Request, name: str) -> int | None:
    text = request.query.get(name, "")
    if not text:
        return None
    if not text.isascii() or not text.removeprefix("-").isdigit():
        raise bad_request(f'invalid {name} "{text}": must be a whole number')
    return max(0, int(text))


def _forbidden(path: str, problem: str) -> Exception:
    return invalid("ListOptions", "meta.k8s.io", "", [FieldError(path, problem, type="FieldValueForbidden")])
