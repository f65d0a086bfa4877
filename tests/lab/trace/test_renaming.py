"""Whatever names something else is found, and nothing else is touched."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.lab.trace.format import ObjectName
from pilotage.lab.trace.renaming import MalformedObject, rename, renamed_object

from .making import node, observed, pod


class Marked:
    """Says of every name what it was asked for."""

    def name(self, kind: str, name: str) -> str:
        return f"{kind}:{name}"

    def key(self, key: str) -> str:
        return f"key:{key}"

    def value(self, key: str, value: str) -> str:
        return f"value:{value}"

    def other(self, what: str, text: str) -> str:
        return f"{what}:{text}"


SELECTOR = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a"]}]}
RENAMED = {
    "matchLabels": {"key:app": "value:web"},
    "matchExpressions": [{"key": "key:tier", "operator": "In", "values": ["value:a"]}],
}
TERM = {"labelSelector": SELECTOR, "namespaces": ["n"], "topologyKey": "zone", "matchLabelKeys": ["app"]}
RENAMED_TERM = {
    "labelSelector": RENAMED,
    "namespaces": ["Namespace:n"],
    "topologyKey": "key:zone",
    "matchLabelKeys": ["key:app"],
}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"nodeName": "a"}, {"nodeName": "Node:a"}),
        ({"nodeSelector": {"disk": "ssd"}}, {"nodeSelector": {"key:disk": "value:ssd"}}),
        ({"nodeSelector": {"kubernetes.io/hostname": "a"}}, {"nodeSelector": {"key:kubernetes.io/hostname": "Node:a"}}),
        (
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}},
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [RENAMED_TERM]}}},
        ),
        (
            {"affinity": {"x": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]}},
            {"affinity": {"x": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["Node:a"]}]}]}},
        ),
        (
            {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1, "labelSelector": SELECTOR}]},
            {"topologySpreadConstraints": [{"topologyKey": "key:zone", "maxSkew": 1, "labelSelector": RENAMED}]},
        ),
        (
            {"tolerations": [{"key": "team", "value": "red", "effect": "NoSchedule"}, {"operator": "Exists"}]},
            {
                "tolerations": [
                    {"key": "key:team", "value": "value:red", "effect": "NoSchedule"},
                    {"operator": "Exists"},
                ]
            },
        ),
        ({"priorityClassName": "high"}, {"priorityClassName": "PriorityClass:high"}),
        ({"schedulingGroup": {"podGroupName": "g"}}, {"schedulingGroup": {"podGroupName": "PodGroup:g"}}),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
            {"volumes": [{"name": "volume:v", "persistentVolumeClaim": {"claimName": "PersistentVolumeClaim:c"}}]},
        ),
        (
            {"resourceClaims": [{"name": "gpu", "resourceClaimName": "g"}]},
            {"resourceClaims": [{"name": "gpu", "resourceClaimName": "ResourceClaim:g"}]},
        ),
        ({"overhead": {"labels": "1"}}, {"overhead": {"labels": "1"}}),
        ({"schedulerName": "mine"}, {"schedulerName": "mine"}),
    ],
)
def test_a_spec_names_other_things(spec: dict[str, Any], expected: dict[str, Any]) -> None:
    obj = {**pod("p"), "spec": spec}
    assert rename(obj, Marked())["spec"] == expected


def test_metadata_names_the_object_its_labels_and_its_owner() -> None:
    owner = {"kind": "Job", "name": "j", "uid": "1", "controller": True}
    labels = {"app": "web", "kueue.x-k8s.io/queue-name": "q"}
    made = rename(observed("p", "a", 1.0, namespace="n"), Marked())["metadata"]
    assert (made["name"], made["namespace"], made["uid"]) == ("Pod:p", "Namespace:n", "uid:uid-p")
    assert made["annotations"]["trace.pilotage.dev/observed-node"] == "Node:a"
    made = rename(pod("p", ownerReferences=[owner], labels=labels), Marked())["metadata"]
    assert made["ownerReferences"] == [{"kind": "Job", "name": "Job:j", "uid": "uid:1", "controller": True}]
    assert made["labels"] == {"key:app": "value:web", "key:kueue.x-k8s.io/queue-name": "LocalQueue:q"}


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        ("Service", {"spec": {"selector": {"a": "b"}}}, {"spec": {"selector": {"key:a": "value:b"}}}),
        (
            "PersistentVolume",
            {
                "spec": {
                    "claimRef": {"namespace": "n", "name": "c", "uid": "1"},
                    "csi": {"volumeHandle": "h", "driver": "d"},
                }
            },
            {
                "spec": {
                    "claimRef": {
                        "kind": "PersistentVolumeClaim",
                        "namespace": "Namespace:n",
                        "name": "PersistentVolumeClaim:c",
                        "uid": "uid:1",
                    },
                    "csi": {"volumeHandle": "handle:h", "driver": "d"},
                }
            },
        ),
        (
            "ResourceSlice",
            {
                "spec": {
                    "driver": "d",
                    "nodeName": "a",
                    "pool": {"name": "a"},
                    "devices": [{"attributes": {"pool": "x"}}],
                }
            },
            {
                "spec": {
                    "driver": "d",
                    "nodeName": "Node:a",
                    "pool": {"name": "Node:a"},
                    "devices": [{"attributes": {"pool": "x"}}],
                }
            },
        ),
        ("Node", {"status": {"images": [{"names": ["x"]}]}}, {"status": {"images": [{"names": ["image:x"]}]}}),
        (
            "ClusterQueue",
            {"spec": {"cohortName": "c", "resourceGroups": [{"flavors": [{"name": "f"}]}]}},
            {"spec": {"cohortName": "Cohort:c", "resourceGroups": [{"flavors": [{"name": "ResourceFlavor:f"}]}]}},
        ),
        (
            "ResourceClaim",
            {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}]}},
            {"status": {"reservedFor": [{"resource": "pods", "name": "Pod:p", "uid": "uid:1"}]}},
        ),
    ],
)
def test_other_kinds_name_things_too(kind: str, fields: dict[str, Any], expected: dict[str, Any]) -> None:
    made = rename({"kind": kind, "metadata": {"name": "x"}, **fields}, Marked())
    assert made == {"kind": kind, "metadata": {"name": f"{kind}:x"}, **expected}


def test_the_original_stays_as_it_is() -> None:
    before, again = node("a", disk="ssd"), node("a", disk="ssd")
    rename(before, Marked())
    assert before == again


def test_what_a_deletion_refers_to() -> None:
    assert renamed_object(ObjectName("v1", "Pod", "p", "n"), Marked()) == ObjectName(
        "v1", "Pod", "Pod:p", "Namespace:n"
    )
    assert renamed_object(ObjectName("v1", "Node", "a"), Marked()) == ObjectName("v1", "Node", "Node:a")


@pytest.mark.parametrize(
    "fields", [{"spec": {"tolerations": [7]}}, {"metadata": {"name": "x", "labels": 7}}, {"spec": 7}]
)
def test_what_cannot_be_understood_is_named(fields: dict[str, Any]) -> None:
    with pytest.raises(MalformedObject, match=r"^Pod p: |^Pod x: "):
        rename({**pod("p"), **fields}, Marked())
