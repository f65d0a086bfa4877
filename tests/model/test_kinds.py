"""Where kinds live, and that every field of every kind is read from the JSON name that Kubernetes writes."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from pilotage.model import decode_pod
from pilotage.model.kinds import KINDS, kind_of

from .documents import DOCUMENTS

METADATA = {
    "name": "thing",
    "uid": "1234",
    "resourceVersion": "7",
    "generation": 2,
    "labels": {"app": "web"},
    "annotations": {"note": "x"},
    "ownerReferences": [
        {"apiVersion": "v1", "kind": "Thing", "name": "o", "uid": "5", "controller": True, "blockOwnerDeletion": True}
    ],
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "deletionTimestamp": "2026-01-02T00:00:00Z",
    "finalizers": ["example.com/hold"],
    "generateName": "thing-",
}
UNKNOWN = {"unknownField": {"deep": [1, 2, None]}}


@pytest.mark.parametrize("plural", sorted(set(KINDS) - {"pods"}))
def test_every_known_field_is_read_and_unknown_ones_are_ignored(plural: str) -> None:
    document = {"metadata": METADATA, **DOCUMENTS[plural]}
    decoded = KINDS[plural].decode(json.dumps({**document, **UNKNOWN}).encode())
    assert msgspec.json.decode(msgspec.json.encode(decoded)) == document


def test_every_field_of_a_pod_is_read_and_unknown_ones_are_ignored() -> None:
    document = DOCUMENTS["pods"]
    spec, status = document["spec"] | UNKNOWN, document["status"] | UNKNOWN
    pod = decode_pod(json.dumps({"metadata": METADATA, "spec": spec, "status": status, **UNKNOWN}).encode())
    assert msgspec.json.decode(msgspec.json.encode(pod.spec)) == document["spec"]
    assert msgspec.json.decode(msgspec.json.encode(pod.status)) == document["status"]


@pytest.mark.parametrize("plural", sorted(KINDS))
def test_document_leaves_no_field_of_the_kind_out(plural: str) -> None:
    """Guards the tests above: a field that no document names would not be tested."""
    decoded = KINDS[plural].decode(json.dumps({"metadata": METADATA, **DOCUMENTS[plural]}).encode())
    roots = [decoded.spec, decoded.status] if plural == "pods" else [decoded]
    assert [path for root in roots for path in _fields_at_default(root, "")] == []


def _fields_at_default(struct: msgspec.Struct, path: str) -> list[str]:
    found: list[str] = []
    for field in msgspec.structs.fields(struct):
        value: Any = getattr(struct, field.name)
        default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
        if field.name == "namespace" or (field.name == "metadata" and path):
            continue  # nested metadata is that of a template: a few labels
        if value == default:
            found.append(f"{path}.{field.name}")
        values = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
        inner = [item for item in values if isinstance(item, msgspec.Struct)][:1]
        found += [deeper for item in inner for deeper in _fields_at_default(item, f"{path}.{field.name}")]
    return found


@pytest.mark.parametrize(
    ("plural", "namespace", "name", "path"),
    [
        ("pods", None, None, "/api/v1/pods"),
        ("pods", "x", None, "/api/v1/namespaces/x/pods"),
        ("pods", "x", "y", "/api/v1/namespaces/x/pods/y"),
        ("nodes", None, "y", "/api/v1/nodes/y"),
        ("nodes", "ignored", "y", "/api/v1/nodes/y"),
        ("deployments", "x", "y", "/apis/apps/v1/namespaces/x/deployments/y"),
        ("resourceslices", None, None, "/apis/resource.k8s.io/v1/resourceslices"),
        ("workloads", "x", None, "/apis/kueue.x-k8s.io/v1beta2/namespaces/x/workloads"),
    ],
)
def test_path_of_collections_and_objects(plural: str, namespace: str | None, name: str | None, path: str) -> None:
    assert KINDS[plural].path(namespace, name) == path


def test_kinds_are_found_by_resource_and_by_kind() -> None:
    for plural, info in KINDS.items():
        assert info.plural == plural
        assert kind_of(info.kind) is info
    assert kind_of("Nonsense") is None
    assert KINDS["deployments"].api_version == "apps/v1"
    assert KINDS["pods"].api_version == "v1"


def test_every_kind_offers_the_same_short_ways_to_its_metadata() -> None:
    data = json.dumps({"metadata": {**METADATA, "namespace": "ns"}, "spec": {}}).encode()
    for info in KINDS.values():
        decoded = info.decode(data)
        assert (decoded.name, decoded.namespace, decoded.uid, decoded.key) == ("thing", "ns", "1234", "ns/thing")
        assert (decoded.labels, decoded.annotations) == ({"app": "web"}, {"note": "x"})
        assert decoded.resource_version == "7"


def test_key_of_an_object_without_namespace_is_its_name() -> None:
    assert KINDS["nodes"].decode(b'{"metadata":{"name":"n"}}').key == "n"
