"""Whatever stands in the JSON: an object decodes or is rejected by name, alone or in a batch, and others survive."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilotage.model.errors import DecodeError
from pilotage.model.kinds import KINDS
from pilotage.model.pod_resources import assigned_requests, non_zero_requests, pod_requests
from tests.model.documents import DOCUMENTS

plurals = st.sampled_from(sorted(KINDS))
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5)
)
junk = st.one_of(scalars, st.lists(scalars, max_size=2), st.dictionaries(st.text(max_size=3), scalars, max_size=2))


def _document(plural: str, name: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(json.dumps(DOCUMENTS[plural]))
    return {"metadata": {"name": name, "namespace": "ns", "resourceVersion": "1"}, **body}


def _places(tree: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The paths of everything in the document except what names the object."""
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    found = [] if path in ((), ("metadata",), ("metadata", "name"), ("metadata", "namespace")) else [path]
    for key, child in children:
        found += _places(child, (*path, key))
    return found


@st.composite
def spoilt_objects(draw: st.DrawFn, kinds: st.SearchStrategy[str] = plurals) -> tuple[str, bytes]:
    """A kind and a document of it in which one to three places hold something else."""
    plural = draw(kinds)
    document = _document(plural, "spoilt")
    for _ in range(draw(st.integers(1, 3))):
        *parents, last = draw(st.sampled_from(_places(document)))
        place: Any = document
        for key in parents:
            place = place[key]
        place[last] = draw(junk)
    return plural, json.dumps(document).encode()


@given(spoilt_objects())
def test_spoilt_object_decodes_or_is_rejected_by_name(case: tuple[str, bytes]) -> None:
    plural, data = case
    try:
        decoded = KINDS[plural].decode(data)
    except DecodeError as error:
        assert str(error).startswith(f"{KINDS[plural].kind} ns/spoilt: ")
        assert error.path
    else:
        assert decoded.key == "ns/spoilt"


@given(spoilt_objects())
def test_batch_decodes_as_the_objects_alone_do(case: tuple[str, bytes]) -> None:
    plural, spoilt = case
    kind = KINDS[plural]
    good = json.dumps(_document(plural, "good")).encode()
    objects = [good, spoilt, good]
    page = kind.decode_list(b'{"metadata":{"resourceVersion":"1"},"items":[' + b",".join(objects) + b"]}")
    events = kind.decode_events(b"".join(b'{"type":"ADDED","object":' + data + b"}\n" for data in objects))
    try:
        expected = [kind.decode(good).key, kind.decode(spoilt).key, kind.decode(good).key]
        assert [event.object.key for event in events] == [item.key for item in page.items] == expected
    except DecodeError as error:
        assert [item.key for item in page.items] == ["ns/good", "ns/good"]
        assert [str(problem) for problem in page.errors] == [str(error)] == [str(events[1].object)]
        assert events[0].object.key == events[2].object.key == "ns/good"


@given(spoilt_objects(st.just("pods")))
def test_requests_of_every_decoded_pod_can_be_worked_out(case: tuple[str, bytes]) -> None:
    """Quantities are judged when a pod is decoded, so that nothing later can stumble over them."""
    try:
        pod = KINDS["pods"].decode(case[1])
    except DecodeError:
        return
    assert all(isinstance(amount, int) for amount in pod_requests(pod.spec).values())
    assert all(isinstance(amount, int) for amount in non_zero_requests(pod.spec))
    assert all(isinstance(amount, int) for amount in assigned_requests(pod).values())


@given(plurals, st.integers(0, 10_000), st.integers(0, 255))
def test_damaged_bytes_are_rejected_not_fatal(plural: str, position: int, byte: int) -> None:
    data = bytearray(json.dumps(_document(plural, "spoilt")).encode())
    data[position % len(data)] = byte
    try:
        KINDS[plural].decode(bytes(data))
    except DecodeError as error:
        assert error.kind == KINDS[plural].kind
