"""Wrong JSON types: one error that names the field, whatever it is nested in."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.rules.validation import validate_create


def pod(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i"}]} if spec is None else spec
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **metadata}, "spec": spec}


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (pod("x"), 'spec: Invalid value: "x": expected object, got string'),
        (pod({"containers": "x"}), 'spec.containers: Invalid value: "x": expected array, got string'),
        (pod({"containers": [7]}), "spec.containers[0]: Invalid value: 7: expected object, got integer"),
        (pod({"containers": [{"name": []}]}), "spec.containers[0].name: Invalid value: []: expected string, got array"),
        (pod(labels={"a": "b", "n": 5}), "metadata.labels[n]: Invalid value: 5: expected string, got integer"),
        (pod(labels=[]), "metadata.labels: Invalid value: []: expected object, got array"),
        (
            pod({"containers": [{"resources": {"limits": {"cpu": "1", "memory": {}}}}]}),
            "spec.containers[0].resources.limits[memory]: Invalid value: {}: expected integer or number or string, "
            "got object",
        ),
        (pod({"priority": 2**31}), "spec.priority: Invalid value: 2147483648: expected integer <= 2147483647"),
        (pod({"priority": 1.5}), "spec.priority: Invalid value: 1.5: expected integer, got number"),
        (pod({"hostNetwork": "yes"}), 'spec.hostNetwork: Invalid value: "yes": expected boolean, got string'),
        ({"kind": "Pod", "metadata": 3}, "metadata: Invalid value: 3: expected object, got integer"),
        ({"kind": 4, "metadata": {}}, "kind: Invalid value: 4: expected string, got integer"),
    ],
)
def test_wrong_type_is_told_with_its_path(obj: dict[str, Any], message: str) -> None:
    (error,) = validate_create("Pod", obj)
    assert str(error) == message
    assert error.type == "FieldValueTypeInvalid"


def test_key_of_a_map_in_a_map_is_found_among_many() -> None:
    labels: dict[str, Any] = {f"k{number}": "v" for number in range(1000)}
    labels["k777"] = False
    (error,) = validate_create("Pod", pod(labels=labels))
    assert error.path == "metadata.labels[k777]"


def test_replicas_given_as_text_is_told() -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": "3"}}
    (error,) = validate_create("Deployment", deployment)
    assert str(error) == 'spec.replicas: Invalid value: "3": expected integer, got string'


def test_null_is_the_same_as_absent() -> None:
    assert validate_create("Pod", pod(labels=None, annotations=None, ownerReferences=None)) == []


def test_unknown_fields_pass() -> None:
    assert validate_create("Pod", pod({"containers": [{"name": "c", "image": "i", "zz": 1}], "future": {}})) == []


def test_deep_nesting_is_an_error_not_a_crash() -> None:
    value: Any = []
    for _ in range(5000):
        value = [value]
    errors = validate_create("Pod", pod({"containers": [{"name": "c", "image": "i", "lifecycle": {"x": value}}]}))
    assert isinstance(errors, list)
