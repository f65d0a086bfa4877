from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.kinds.builtin_kinds import BUILTIN_TYPES, builtin_registry
from pilotage.sandbox.kinds.shapes import check_shape

REGISTRY = builtin_registry()


@pytest.mark.parametrize("resource_type", BUILTIN_TYPES, ids=lambda t: f"{t.kind}.{t.api_version}")
def test_every_kind_has_a_shape(resource_type: Any) -> None:
    check_shape(resource_type, {"kind": resource_type.kind, "metadata": {"name": "x", "labels": {"a": "b"}}})
    with pytest.raises(ApiError, match=r"metadata\.labels"):
        check_shape(resource_type, {"kind": resource_type.kind, "metadata": {"labels": "a=b"}})


@pytest.mark.parametrize(
    ("resource", "obj", "where"),
    [
        ("pods", {"metadata": []}, "metadata: "),
        ("pods", {"spec": "x"}, "spec: "),
        ("pods", {"spec": {"containers": {}}}, "spec.containers: "),
        ("pods", {"spec": {"containers": [7]}}, r"spec.containers\[0\]: expected object, got integer"),
        ("pods", {"spec": {"containers": [{"name": []}]}}, r"spec.containers\[0\].name: expected string, got array"),
        ("pods", {"spec": {"priority": 1.5}}, "spec.priority: expected integer, got number"),
        ("pods", {"metadata": {"labels": {"a": "b", "n": 5}}}, r"metadata.labels\[\*\]: expected string, got integer"),
        ("pods", {"metadata": {"labels": []}}, "metadata.labels: expected object, got array"),
        ("pods", {"kind": 4, "metadata": {}}, "kind: expected string, got integer"),
        (
            "pods",
            {"spec": {"containers": [{"resources": {"limits": {"cpu": "1", "memory": {}}}}]}},
            r"spec.containers\[0\].resources.limits\[\*\]: expected integer or number or string, got object",
        ),
        ("pods", {"spec": {"containers": [{"image": 1}]}}, r"spec.containers\[0\].image: expected string, got integer"),
        ("pods", {"spec": {"hostNetwork": "yes"}}, "spec.hostNetwork: expected boolean, got string"),
        ("nodes", {"spec": {"taints": [{"key": []}]}}, r"spec.taints\[0\].key: "),
        ("deployments.apps", {"spec": {"replicas": "three"}}, "spec.replicas: expected integer, got string"),
        ("poddisruptionbudgets.policy", {"spec": {"minAvailable": [1]}}, "spec.minAvailable: "),
        ("leases.coordination.k8s.io", {"spec": {"leaseDurationSeconds": "15"}}, "spec.leaseDurationSeconds: "),
        ("pods", ["not", "an", "object"], "expected object"),
    ],
)
def test_a_wrong_type_is_400_with_the_path(resource: str, obj: object, where: str) -> None:
    with pytest.raises(ApiError, match=where) as refused:
        check_shape(REGISTRY.of(resource), obj)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("resource", "obj", "message"),
    [
        (
            "pods",
            {"spec": {"priority": 2**31}},
            "spec.priority: Invalid value: 2147483648: expected integer <= 2147483647",
        ),
        (
            "pods",
            {"spec": {"containers": [{"ports": [{"containerPort": -(10**30)}]}]}},
            f"spec.containers[0].ports[0].containerPort: Invalid value: -{10**30}: expected integer >= -2147483648",
        ),
        (
            "services",
            {"spec": {"ports": [{"targetPort": 2**31}]}},
            "spec.ports[0].targetPort: Invalid value: 2147483648: expected integer <= 2147483647",
        ),
        (
            "configmaps",
            {"metadata": {"generation": 2**63}},
            "metadata.generation: Invalid value: 9223372036854775808: expected integer <= 9223372036854775807",
        ),
        (
            "resourceslices.resource.k8s.io",
            {"spec": {"devices": [{"attributes": {"a": {"int": 2**63}}}]}},
            'spec.devices[0].attributes[*].int: Invalid value: {"a":{"int":9223372036854775808}}: '
            "expected integer <= 9223372036854775807",
        ),
    ],
)
def test_an_integer_too_large_for_its_field_is_422_with_the_value(
    resource: str, obj: dict[str, Any], message: str
) -> None:
    with pytest.raises(ApiError) as rejected:
        check_shape(REGISTRY.of(resource), {**obj, "metadata": {"name": "x", **obj.get("metadata", {})}})
    assert rejected.value.code == 422
    kind = REGISTRY.of(resource)
    suffix = f".{kind.group}" if kind.group else ""
    assert rejected.value.message == f'{kind.kind}{suffix} "x" is invalid: {message}'


def test_deep_nesting_below_an_unknown_field_is_no_crash() -> None:
    value: Any = []
    for _ in range(5000):
        value = [value]
    check_shape(REGISTRY.of("pods"), {"spec": {"containers": [{"name": "c", "lifecycle": {"x": value}}]}})


@pytest.mark.parametrize(
    ("resource", "obj"),
    [
        ("pods", {"spec": {"containers": [{"resources": {"requests": {"cpu": 1, "memory": "1Gi"}}}]}}),
        ("pods", {"spec": None, "status": None, "metadata": {"creationTimestamp": None}}),
        ("pods", {"spec": {"unheardOf": [1, {"a": None}]}}),
        ("services", {"spec": {"ports": [{"targetPort": "http"}, {"targetPort": 80}]}}),
        ("poddisruptionbudgets.policy", {"spec": {"minAvailable": "50%"}}),
    ],
)
def test_numbers_as_quantities_nulls_and_unknown_fields_pass(resource: str, obj: dict[str, Any]) -> None:
    check_shape(REGISTRY.of(resource), obj)
