"""Names, labels, annotations, owners and finalizers."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.rules.validation import validate_create, validate_update


def config_map(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", **metadata}}


def paths(obj: dict[str, Any], kind: str = "ConfigMap") -> list[str]:
    return [error.path for error in validate_create(kind, obj)]


@pytest.mark.parametrize("name", ["a", "a-b", "a.b", "0", "a" * 253])
def test_good_names(name: str) -> None:
    assert paths(config_map(name=name)) == []


@pytest.mark.parametrize("name", ["A", "-a", "a-", "a..b", "a_b", "a/b", "a" * 254, "a\n", "ä"])
def test_bad_names(name: str) -> None:
    assert paths(config_map(name=name)) == ["metadata.name"]


def test_missing_name_is_required() -> None:
    (error,) = validate_create("ConfigMap", {"metadata": {}})
    assert str(error) == "metadata.name: Required value: name or generateName is required"


@pytest.mark.parametrize(("kind", "name"), [("Namespace", "a.b"), ("Namespace", "a" * 64), ("Service", "1a")])
def test_stricter_kinds(kind: str, name: str) -> None:
    errors = validate_create(kind, {"metadata": {"name": name}, "spec": {"ports": [{"port": 1, "protocol": "TCP"}]}})
    assert [error.path for error in errors] == ["metadata.name"]


@pytest.mark.parametrize(
    "labels",
    [
        {"a": ""},
        {"example.com/a": "b"},
        {"A_b.c-d": "A_b.c-d"},
        {"a" * 63: "b" * 63},
        {"x" * 60 + "." + "y" * 60 + "/a": "b"},
    ],
)
def test_good_labels(labels: dict[str, str]) -> None:
    assert paths(config_map(labels=labels)) == []


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ({"": "a"}, "name part must be non-empty"),
        ({"/a": "a"}, "prefix part must be non-empty"),
        ({"a/b/c": "a"}, "a qualified name must consist of"),
        ({"A.com/b": "a"}, "prefix part a lowercase RFC 1123 subdomain"),
        ({"a b": "a"}, "name part must consist of"),
        ({"a" * 64: "a"}, "name part must be no more than 63 bytes"),
        ({"a" * 1000: "a"}, "name part must be no more than 63 bytes"),
        ({"a": "-b"}, "a valid label must be an empty string or consist of"),
        ({"a": "b" * 64}, "must be no more than 63 bytes"),
    ],
)
def test_bad_labels(labels: dict[str, str], told: str) -> None:
    (error,) = validate_create("ConfigMap", config_map(labels=labels))
    assert error.path == "metadata.labels"
    assert error.problem.startswith(told)


def test_annotations_take_any_value_but_not_any_key_or_size() -> None:
    assert paths(config_map(annotations={"Example.com/a": "any text\n"})) == []
    assert paths(config_map(annotations={"a b": ""})) == ["metadata.annotations"]
    assert paths(config_map(annotations={"a": "x" * 262_144})) == ["metadata.annotations"]
    assert paths(config_map(annotations={"a": "\ud800"})) == []


def test_owner_references_are_complete_and_have_one_controller() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    assert paths(config_map(ownerReferences=[owner])) == []
    assert paths(config_map(ownerReferences=[{}])) == [
        f"metadata.ownerReferences[0].{field}" for field in ("apiVersion", "kind", "name", "uid")
    ]
    (error,) = validate_create("ConfigMap", config_map(ownerReferences=[owner, {**owner, "name": "q", "uid": "v"}]))
    assert "Only one reference can have Controller set to true" in error.problem


def test_finalizer_must_be_qualified() -> None:
    assert paths(config_map(finalizers=["example.com/x", "foregroundDeletion"])) == []
    assert paths(config_map(finalizers=["a b"])) == ["metadata.finalizers"]


@pytest.mark.parametrize("field", ["name", "namespace", "uid"])
def test_identity_is_immutable(field: str) -> None:
    old = config_map(name="a", namespace="a", uid="a")
    new = config_map(**{**old["metadata"], field: "b"})
    (error,) = validate_update("ConfigMap", old, new)
    assert str(error) == f'metadata.{field}: Invalid value: "b": field is immutable'


def test_dying_object_gets_no_new_finalizers() -> None:
    dying = {"deletionTimestamp": "2024-01-01T00:00:00Z", "finalizers": ["a/b", "c/d"]}
    assert validate_update("ConfigMap", config_map(**dying), config_map(**{**dying, "finalizers": ["a/b"]})) == []
    (error,) = validate_update("ConfigMap", config_map(**dying), config_map(**{**dying, "finalizers": ["x/y"]}))
    assert str(error) == (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"x/y"}'
    )


def test_stored_garbage_can_be_mended() -> None:
    assert validate_update("ConfigMap", {"metadata": "broken"}, config_map()) == []


def test_unknown_kind_is_checked_for_metadata_only() -> None:
    assert paths({"apiVersion": "example.com/v1", "metadata": {"name": "x"}, "spec": 5}, kind="Pod") == []
    assert paths({"apiVersion": "example.com/v1", "metadata": {"name": "X"}}, kind="Pod") == ["metadata.name"]
