"""Rules for nodes."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.rules.validation import validate_create, validate_update


def node(spec: Any = None, **status: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": spec or {}, "status": status}


def messages(obj: dict[str, Any]) -> list[str]:
    return [str(error) for error in validate_create("Node", obj)]


def test_ordinary_node_is_fine() -> None:
    amounts = {
        "cpu": "4",
        "memory": "8Gi",
        "pods": "110",
        "ephemeral-storage": "1Gi",
        "hugepages-2Mi": "0",
        "x.io/g": 2,
    }
    taints = [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute", "value": "v"}]
    assert messages(node({"taints": taints, "unschedulable": True}, capacity=amounts, allocatable=amounts)) == []


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (
            node(capacity={"cpu": "-1"}),
            ['status.capacity[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
        ),
        (
            node(allocatable={"gpu": "1"}),
            ['status.allocatable[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified'],
        ),
        (node({"taints": [{"key": "a"}]}), ["spec.taints[0].effect: Required value: must specify a taint effect"]),
        (
            node({"taints": [{"key": "a", "effect": "No"}]}),
            [
                'spec.taints[0].effect: Unsupported value: "No": '
                'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'
            ],
        ),
        (
            node(
                {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule", "value": "x"}]}
            ),
            ['spec.taints[1]: Duplicate value: "taints must be unique by key and effect pair"'],
        ),
    ],
)
def test_wrong_node(obj: dict[str, Any], expected: list[str]) -> None:
    assert messages(obj) == expected


def test_status_update_is_judged_too() -> None:
    errors = validate_update("Node", node(), node(capacity={"cpu": "x"}))
    assert [error.path for error in errors] == ["status.capacity[cpu]"]


def test_provider_id_is_set_once() -> None:
    assert validate_update("Node", node(), node({"providerID": "a"})) == []
    errors = validate_update("Node", node({"providerID": "a"}), node({"providerID": "b"}))
    assert [error.path for error in errors] == ["spec.providerID"]
