"""List pages and watch lines: the good objects survive the bad ones."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from pilotage.model.codec import Bookmark, StatusError, WatchEvent
from pilotage.model.errors import DecodeError
from pilotage.model.kinds import KINDS

KIND_NAMES = sorted(KINDS)
STATUS = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "too old resource version",
    "reason": "Expired",
    "code": 410,
}


def _body(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "resourceVersion": "1"}, "spec": {}, **more}


def _lines(*events: tuple[str, Any]) -> bytes:
    return b"".join(json.dumps({"type": kind, "object": body}).encode() + b"\n" for kind, body in events)


def _page(*items: Any, **metadata: str) -> bytes:
    return json.dumps({"kind": "List", "metadata": metadata, "items": list(items)}).encode()


@pytest.mark.parametrize("plural", KIND_NAMES)
def test_list_page_has_items_version_and_continue_token(plural: str) -> None:
    page = KINDS[plural].decode_list(_page(_body("a"), _body("b"), **{"resourceVersion": "42", "continue": "more"}))
    assert [item.name for item in page.items] == ["a", "b"]
    assert (page.resource_version, page.continue_token, page.errors) == ("42", "more", ())


@pytest.mark.parametrize("plural", KIND_NAMES)
def test_watch_lines_become_events(plural: str) -> None:
    data = _lines(("ADDED", _body("a")), ("MODIFIED", _body("b")), ("DELETED", _body("c")))
    events = KINDS[plural].decode_events(data)
    assert [(event.type, event.object.key) for event in events] == [
        ("ADDED", "ns/a"),
        ("MODIFIED", "ns/b"),
        ("DELETED", "ns/c"),
    ]
    assert [event.object.resource_version for event in events] == ["1", "1", "1"]


@pytest.mark.parametrize("plural", KIND_NAMES)
def test_error_event_holds_the_status_whatever_the_kind(plural: str) -> None:
    events = KINDS[plural].decode_events(_lines(("ADDED", _body("a")), ("ERROR", STATUS)))
    assert events[0].object.name == "a"
    assert events[1] == WatchEvent("ERROR", StatusError(410, "Expired", "too old resource version"))


@pytest.mark.parametrize("plural", KIND_NAMES)
@pytest.mark.parametrize("more", [{}, {"spec": {"containers": None}, "status": {}}, {"spec": None}])
def test_bookmark_needs_only_a_version(plural: str, more: dict[str, Any]) -> None:
    bookmark = {"kind": "x", "metadata": {"resourceVersion": "99", "creationTimestamp": None}, **more}
    assert KINDS[plural].decode_events(_lines(("BOOKMARK", bookmark))) == [WatchEvent("BOOKMARK", Bookmark("99"))]


def test_wrong_object_between_good_ones_is_an_error_in_its_place() -> None:
    data = _lines(("ADDED", _body("a")), ("MODIFIED", _body("b", status=5)), ("DELETED", _body("c")))
    first, second, third = KINDS["pods"].decode_events(data)
    assert (first.object.name, third.object.name) == ("a", "c")
    assert second.type == "MODIFIED"
    assert isinstance(second.object, DecodeError)
    assert str(second.object) == "Pod ns/b: status: expected object, got integer"


def test_broken_line_between_good_ones_is_an_error_in_its_place() -> None:
    broken = b'{"type":"ADDED","object":{"metadata":{"name":"b","namespace":"ns"},"spec":\n'
    first, second, third = KINDS["nodes"].decode_events(
        _lines(("ADDED", _body("a"))) + broken + _lines(("X", _body("c")))
    )
    assert (first.object.name, third.object.name) == ("a", "c")
    assert isinstance(second.object, DecodeError)
    assert (second.object.kind, second.object.key) == ("Node", "ns/b")


def test_wrong_content_found_late_spoils_only_its_own_object() -> None:
    """The parts of a pod are judged after the whole batch was read."""
    bad = _body("b", spec={"priority": "high"})
    events = KINDS["pods"].decode_events(_lines(("ADDED", _body("a")), ("ADDED", bad)))
    page = KINDS["pods"].decode_list(_page(_body("a"), bad))
    assert events[0].object.name == page.items[0].name == "a"
    assert str(events[1].object) == str(page.errors[0]) == "Pod ns/b: spec.priority: expected integer, got string"


def test_blank_lines_and_a_missing_last_newline_do_not_matter() -> None:
    line = _lines(("ADDED", _body("a")))
    assert len(KINDS["nodes"].decode_events(line + b"\n" + line.strip())) == 2
    assert KINDS["nodes"].decode_events(b"") == []
    assert KINDS["nodes"].decode_events(b"\n") == []


def test_wrong_items_of_a_page_are_listed_and_the_others_survive() -> None:
    data = _page(_body("a"), _body("b", spec="x"), {"metadata": {}}, _body("c"), resourceVersion="5")
    page = KINDS["nodes"].decode_list(data)
    assert [item.name for item in page.items] == ["a", "c"]
    assert page.resource_version == "5"
    assert [str(error) for error in page.errors] == [
        "Node ns/b: spec: expected object, got string",
        "Node: metadata.name: required, but missing",
    ]


@pytest.mark.parametrize("items", ["null", "[]"])
def test_empty_page_has_no_items(items: str) -> None:
    page = KINDS["pods"].decode_list(f'{{"metadata":{{"resourceVersion":"7"}},"items":{items}}}'.encode())
    assert (page.items, page.resource_version, page.continue_token) == ([], "7", "")


@pytest.mark.parametrize("data", [b"", b"[]", b"not json", b'{"items":5}', b'{"items":[{]}', b"\xff\xfe"])
def test_page_that_is_none_is_rejected(data: bytes) -> None:
    with pytest.raises(DecodeError, match=r"^PodList"):
        KINDS["pods"].decode_list(data)


def test_deeply_nested_input_is_rejected_not_fatal() -> None:
    with pytest.raises(DecodeError):
        KINDS["pods"].decode(b'{"metadata":' + b"[" * 100_000)


def test_null_is_absent_in_every_kind_but_kept_in_documents_of_others() -> None:
    node = KINDS["csinodes"].decode(b'{"metadata":{"name":"n"},"spec":{"drivers":[{"name":"d","topologyKeys":null}]}}')
    assert node.spec.drivers[0].topology_keys == ()
    config = {"opaque": {"driver": "d", "parameters": {"mode": None}}}
    body = {"metadata": {"name": "c", "labels": None}, "spec": {"config": [config]}}
    kept = KINDS["deviceclasses"].decode(msgspec.json.encode(body))
    assert kept.spec.config[0].opaque.parameters == {"mode": None}
