from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.http.protobuf import MEDIA_TYPE, decode_protobuf
from pilotage.sandbox.kinds.builtin_groups import KUEUE_GROUP
from pilotage.sandbox.kinds.builtin_kinds import builtin_registry
from tests.sandbox.api_world import World


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    encoded = b""
    while value > 0x7F:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def body(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


def metadata(name: str) -> bytes:
    return field(1, field(1, name) + field(2, "") + field(7, 0) + field(8, b""))


def decoded(api_version: str, kind: str, raw: bytes) -> dict[str, Any]:
    return decode_protobuf(body(api_version, kind, raw))


def test_zeros_that_mean_not_set_are_dropped() -> None:
    raw = metadata("shop") + field(2, b"") + field(3, b"")
    assert decoded("v1", "Namespace", raw) == {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {"name": "shop"},
    }


def test_zeros_of_pointers_are_kept() -> None:
    spec = field(1, 0) + field(5, 0)
    found = decoded("apps/v1", "Deployment", metadata("web") + field(2, spec))
    assert found["spec"] == {"replicas": 0}


def test_maps_bytes_and_scalars() -> None:
    data = field(1, "key") + field(2, b"\x00\xff")
    labels = field(1, field(1, "s") + field(11, field(1, "a") + field(2, "b")))
    found = decoded("v1", "Secret", labels + field(2, data) + field(3, "Opaque") + field(5, 0))
    assert found["metadata"] == {"name": "s", "labels": {"a": "b"}}
    assert found["data"] == {"key": "AP8="}
    assert found["immutable"] is False


def test_inlined_messages_quantities_and_ports() -> None:
    empty_dir = field(2, field(1, "1Gi"))
    volume = field(1, "scratch") + field(2, field(2, empty_dir))
    handler = field(2, field(1, "/healthz") + field(2, field(1, 1) + field(3, "http")))
    probe = field(1, handler) + field(2, 5)
    resources = field(2, field(1, "cpu") + field(2, field(1, "100m")))
    container = field(1, "c") + field(8, resources) + field(11, probe)
    found = decoded("v1", "Pod", metadata("p") + field(2, field(1, volume) + field(2, container)))
    assert found["spec"]["volumes"] == [{"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}]
    [shown] = found["spec"]["containers"]
    assert shown["resources"] == {"requests": {"cpu": "100m"}}
    assert shown["readinessProbe"] == {"httpGet": {"path": "/healthz", "port": "http"}, "initialDelaySeconds": 5}


def test_times_negative_numbers_and_numbers_as_ports() -> None:
    owner = field(1, field(1, "e") + field(9, field(1, 1_767_225_600)) + field(10, -1))
    times = field(6, field(1, 1_767_225_600)) + field(10, field(1, 1_767_225_600) + field(2, 5000))
    found = decoded("v1", "Event", owner + times)
    assert found["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    assert found["metadata"]["deletionGracePeriodSeconds"] == -1
    assert found["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert found["eventTime"] == "2026-01-01T00:00:00.000005Z"


def test_what_kubectl_create_namespace_sends_makes_a_namespace() -> None:
    world = World()
    sent = body("v1", "Namespace", metadata("shop") + field(2, b"") + field(3, b""))
    created = world.ok("POST", "/api/v1/namespaces", sent, content_type=MEDIA_TYPE)
    assert created["metadata"]["name"] == "shop" and created["status"]["phase"] == "Active"


def test_delete_options_are_read_too() -> None:
    world = World()
    world.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    options = body("v1", "DeleteOptions", field(2, field(1, "another-uid")))
    status = world.refused("DELETE", "/api/v1/namespaces/shop", options, content_type=MEDIA_TYPE)
    assert status["code"] == 409


def test_every_built_in_kind_can_be_read() -> None:
    for resource_type in builtin_registry():
        if resource_type.group != KUEUE_GROUP:
            found = decoded(resource_type.api_version, resource_type.kind, metadata("x"))
            assert found["kind"] == resource_type.kind, resource_type


def test_schemas_of_definitions_are_read_with_what_their_messages_stand_for() -> None:
    """`items` and `additionalProperties` are a schema, a list of them or a boolean; defaults are JSON in bytes."""
    text = field(5, "string")
    items = field(24, field(1, text))
    several = field(24, field(2, text) + field(2, b""))
    free = field(30, field(1, 1))
    closed = field(30, b"")
    mapped = field(30, field(1, 1) + field(2, text))
    default = field(8, field(1, b'{"a":1}'))
    properties = b"".join(
        field(29, field(1, name) + field(2, schema))
        for name, schema in {
            "items": items,
            "several": several,
            "free": free,
            "closed": closed,
            "mapped": mapped,
            "default": default + field(38, 1) + field(41, "name"),
            "anything": field(24, field(1, b"")),
        }.items()
    )
    version = field(1, "v1") + field(4, field(1, properties))
    found = decoded("apiextensions.k8s.io/v1", "CustomResourceDefinition", metadata("x") + field(2, field(7, version)))
    schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert schema == {
        "items": {"items": {"type": "string"}},
        "several": {"items": [{"type": "string"}, {}]},
        "free": {"additionalProperties": True},
        "closed": {"additionalProperties": False},
        "mapped": {"additionalProperties": {"type": "string"}},
        "default": {
            "default": {"a": 1},
            "x-kubernetes-preserve-unknown-fields": True,
            "x-kubernetes-list-map-keys": ["name"],
        },
        "anything": {"items": {}},
    }


def test_who_takes_only_protobuf_is_told_before_anything_is_written() -> None:
    world = World()
    sent = {"metadata": {"name": "shop"}}
    status = world.refused("POST", "/api/v1/namespaces", sent, accept=MEDIA_TYPE)
    assert (status["code"], status["reason"]) == (406, "NotAcceptable")
    assert world.refused("GET", "/api/v1/namespaces/shop")["code"] == 404
    both = f"{MEDIA_TYPE},application/json"
    assert world.ok("POST", "/api/v1/namespaces", sent, accept=both)["metadata"]["name"] == "shop"


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"{}", 400),
        (b"k8s\x00\xff\xff", 400),
        (body("v1", "Pod", b"\x0a\xff\x01x"), 400),
        (body("v1", "Pod", b"\x0b"), 400),
        (body("v1", "Pod", field(1, 5)), 400),
        (body("example.com/v1", "Widget", b""), 415),
        (b"k8s\x00", 415),
    ],
)
def test_what_cannot_be_read_is_rejected(raw: bytes, code: int) -> None:
    with pytest.raises(ApiError) as refused:
        decode_protobuf(raw)
    assert refused.value.code == code


@given(st.binary(max_size=200))
def test_no_bytes_whatever_break_the_reader(raw: bytes) -> None:
    for kind in ("Pod", "Secret"):
        try:
            assert isinstance(decode_protobuf(body("v1", kind, raw)), dict)
        except ApiError as refused:
            assert refused.code == 400
