"""Strategic merge: keyed lists, directives and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.rules.patch import STRATEGIC_MERGE_PATCH, apply_patch


def strategic(kind: str, current: dict[str, Any], patch: Any) -> dict[str, Any]:
    return apply_patch(STRATEGIC_MERGE_PATCH, kind, current, json.dumps(patch).encode())


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


CASES: list[tuple[str, str, dict[str, Any], Any, dict[str, Any]]] = [
    (
        "containers merge by name",
        "Pod",
        {"spec": {"containers": [{"name": "a", "image": "x", "tty": True}, {"name": "b", "image": "y"}]}},
        {"spec": {"containers": [{"name": "b", "image": "z"}]}},
        {"spec": {"containers": [{"name": "a", "image": "x", "tty": True}, {"name": "b", "image": "z"}]}},
    ),
    (
        "lists inside a merged element merge too",
        "Pod",
        {"spec": {"containers": [{"name": "a", "env": [{"name": "K", "value": "1"}], "args": ["x"]}]}},
        {"spec": {"containers": [{"name": "a", "env": [{"name": "L", "value": "2"}], "args": ["y"]}]}},
        {
            "spec": {
                "containers": [
                    {"name": "a", "env": [{"name": "L", "value": "2"}, {"name": "K", "value": "1"}], "args": ["y"]}
                ]
            }
        },
    ),
    (
        "container ports by containerPort in a template",
        "Deployment",
        {"spec": {"template": {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}}}},
        {
            "spec": {
                "template": {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "w"}]}]}}
            }
        },
        {
            "spec": {
                "template": {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "w"}]}]}}
            }
        },
    ),
    (
        "service ports by port",
        "Service",
        {"spec": {"ports": [{"port": 80, "targetPort": 1}, {"port": 81}]}},
        {"spec": {"ports": [{"port": 80, "targetPort": 2}]}},
        {"spec": {"ports": [{"port": 80, "targetPort": 2}, {"port": 81}]}},
    ),
    (
        "conditions by type",
        "Node",
        {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Up"}]}},
        {"status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Disk", "status": "True"}]}},
        {
            "status": {
                "conditions": [
                    {"type": "Ready", "status": "False", "reason": "Up"},
                    {"type": "Disk", "status": "True"},
                ]
            }
        },
    ),
    (
        "taints have no merge key and are replaced",
        "Node",
        {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
        {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}},
        {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}},
    ),
    (
        "tolerations are replaced",
        "Pod",
        {"spec": {"tolerations": [{"key": "a"}]}},
        {"spec": {"tolerations": [{"key": "b"}]}},
        {"spec": {"tolerations": [{"key": "b"}]}},
    ),
    (
        "finalizers are a set",
        "ConfigMap",
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"finalizers": ["b", "c"]}},
        {"metadata": {"finalizers": ["a", "b", "c"]}},
    ),
    (
        "scalars are deleted from a set",
        "ConfigMap",
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]}},
        {"metadata": {"finalizers": ["c", "b"]}},
    ),
    (
        "null removes, also below a new object",
        "ConfigMap",
        {"metadata": {"labels": {"a": "1", "b": "2"}}},
        {"metadata": {"labels": {"a": None}, "annotations": {"x": None, "y": "1"}}},
        {"metadata": {"labels": {"b": "2"}, "annotations": {"y": "1"}}},
    ),
    (
        "an element is deleted by its key",
        "Pod",
        {"spec": {"volumes": [{"name": "a"}, {"name": "b"}]}},
        {"spec": {"volumes": [{"name": "a", "$patch": "delete"}]}},
        {"spec": {"volumes": [{"name": "b"}]}},
    ),
    (
        "a list is replaced by directive",
        "Pod",
        {"spec": {"volumes": [{"name": "a"}, {"name": "b"}]}},
        {"spec": {"volumes": [{"$patch": "replace"}, {"name": "c"}]}},
        {"spec": {"volumes": [{"name": "c"}]}},
    ),
    (
        "an object is replaced by directive",
        "Pod",
        {"spec": {"nodeSelector": {"a": "1"}}},
        {"spec": {"nodeSelector": {"$patch": "replace", "b": "2"}}},
        {"spec": {"nodeSelector": {"b": "2"}}},
    ),
    (
        "an object is deleted by directive",
        "Pod",
        {"spec": {"nodeSelector": {"a": "1"}, "nodeName": "n"}},
        {"spec": {"nodeSelector": {"$patch": "delete"}}},
        {"spec": {"nodeName": "n"}},
    ),
    (
        "retained keys drop the others",
        "Deployment",
        {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}},
        {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
        {"spec": {"strategy": {"type": "Recreate"}}},
    ),
    (
        "the order is set and unlisted elements keep their place",
        "Pod",
        {"spec": {"containers": [{"name": "a"}, {"name": "x"}, {"name": "b"}]}},
        {
            "spec": {
                "$setElementOrder/containers": [{"name": "new"}, {"name": "b"}, {"name": "a"}],
                "containers": [{"name": "new"}],
            }
        },
        {"spec": {"containers": [{"name": "new"}, {"name": "x"}, {"name": "b"}, {"name": "a"}]}},
    ),
    (
        "a disruption budget's selector is replaced",
        "PodDisruptionBudget",
        {"spec": {"selector": {"matchLabels": {"a": "1"}}}},
        {"spec": {"selector": {"matchLabels": {"b": "1"}}}},
        {"spec": {"selector": {"matchLabels": {"b": "1"}}}},
    ),
    (
        "a patch element without counterpart of the right type replaces it",
        "Pod",
        {"spec": "broken"},
        {"spec": {"nodeName": "n"}},
        {"spec": {"nodeName": "n"}},
    ),
    (
        "a stored element without its key does not hinder the patch of another",
        "Pod",
        {"spec": {"volumes": [{}, {"name": "b"}]}},
        {"spec": {"volumes": [{"name": "b", "emptyDir": {}}]}},
        {"spec": {"volumes": [{}, {"name": "b", "emptyDir": {}}]}},
    ),
]


@pytest.mark.parametrize(("kind", "current", "patch", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_patch_gives(kind: str, current: dict[str, Any], patch: Any, expected: dict[str, Any]) -> None:
    assert strategic(kind, current, patch) == expected


def test_set_element_order_moves_listed_elements() -> None:
    current = pod(containers=[{"name": "a"}, {"name": "b"}, {"name": "server"}])
    patch = {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}
    names = [c["name"] for c in strategic("Pod", current, patch)["spec"]["containers"]]
    assert names == ["b", "a", "server"]


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        ({"spec": {"containers": [{"image": "x"}]}}, "spec.containers[0]: does not contain the merge key 'name'"),
        ({"spec": {"containers": ["x"]}}, "spec.containers[0]: expected an object"),
        ({"spec": {"containers": [{"name": ["x"]}]}}, "spec.containers[0].name: expected a string"),
        ({"spec": {"$patch": "zap"}}, "spec: unknown $patch directive 'zap'"),
        ({"spec": {"$retainKeys": "x"}}, "$retainKeys must be a list"),
        ({"spec": {"$retainKeys": ["a"], "b": 1}}, "does not list the patched field 'b'"),
        ({"spec": {"$setElementOrder/containers": "x"}}, "expected a list"),
        ({"spec": {"$frobnicate": []}}, "unknown directive"),
        (["x"], "is an object"),
    ],
)
def test_wrong_patch_is_rejected_with_the_place(patch: Any, told: str) -> None:
    with pytest.raises(ApiError) as caught:
        strategic("Pod", pod(containers=[{"name": "a"}]), patch)
    assert caught.value.code == 400
    assert told in caught.value.message


def test_custom_resource_is_rejected() -> None:
    with pytest.raises(ApiError) as caught:
        strategic("Job", {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}, {})
    assert (caught.value.code, caught.value.reason) == (415, "UnsupportedMediaType")
