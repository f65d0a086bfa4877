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
