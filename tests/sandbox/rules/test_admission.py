"""Admission: what the server decides about a new object by looking at others."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.rules.admission import PRIORITY_CLASSES, STORAGE_CLASSES, admit_create, admit_update, admit_valid


class Cluster:
    """A `Lookup` over a few objects."""

    def __init__(self, **objects: list[dict[str, Any]]) -> None:
        self._objects = {
            PRIORITY_CLASSES: objects.get("priority_classes", []),
            STORAGE_CLASSES: objects.get("storage_classes", []),
            "runtimeclasses.node.k8s.io": objects.get("runtime_classes", []),
            "services": objects.get("services", []),
            "limitranges": objects.get("limit_ranges", []),
        }

    def get(self, resource: str, namespace: str, name: str) -> dict[str, Any] | None:
        return next((one for one in self._objects.get(resource, []) if one["metadata"]["name"] == name), None)

    def list(self, resource: str, namespace: str | None = None) -> list[dict[str, Any]]:
        return self._objects.get(resource, [])


def named(name: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **fields}


def admitted(cluster: Cluster, **spec: Any) -> dict[str, Any]:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    admit_create("Pod", pod, cluster)
    return spec


def test_pod_without_class_has_priority_zero() -> None:
    spec = admitted(Cluster())
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert "priorityClassName" not in spec


def test_pod_takes_value_and_policy_of_its_class() -> None:
    cluster = Cluster(priority_classes=[named("high", value=100, preemptionPolicy="Never")])
    spec = admitted(cluster, priorityClassName="high", priority=100)
    assert (spec["priority"], spec["preemptionPolicy"]) == (100, "Never")


def test_global_default_applies_and_the_lowest_of_two_wins() -> None:
    cluster = Cluster(
        priority_classes=[
            named("b", value=7, globalDefault=True),
            named("a", value=5, globalDefault=True),
            named("c", value=1),
        ]
    )
    spec = admitted(cluster)
    assert (spec["priorityClassName"], spec["priority"]) == ("a", 5)


@pytest.mark.parametrize(
    ("name", "value"), [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)]
)
def test_system_classes_exist_without_objects(name: str, value: int) -> None:
    assert admitted(Cluster(), priorityClassName=name)["priority"] == value


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"priorityClassName": "foo"}, 'pods "p" is forbidden: no PriorityClass with name foo was found'),
        (
            {"priority": 5},
            'pods "p" is forbidden: the integer value of priority (5) must not be provided in pod spec; '
            "priority admission controller computed 0 from the given PriorityClass name",
        ),
        (
            {"preemptionPolicy": "Never"},
            'pods "p" is forbidden: the string value of PreemptionPolicy (Never) must not be provided in pod spec; '
            "priority admission controller computed PreemptLowerPriority from the given PriorityClass name",
        ),
    ],
)
def test_priority_that_contradicts_its_class_is_forbidden(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        admitted(Cluster(), **spec)
    assert (caught.value.code, caught.value.reason, caught.value.message) == (403, "Forbidden", message)


def test_pod_tolerates_failing_nodes_for_five_minutes() -> None:
    assert admitted(Cluster())["tolerations"] == [
        {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for what in ("not-ready", "unreachable")
    ]


@pytest.mark.parametrize(
    ("own", "added"),
    [
        ({"operator": "Exists"}, []),
        ({"key": "node.kubernetes.io/not-ready", "operator": "Exists"}, ["node.kubernetes.io/unreachable"]),
        (
            {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
            ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"],
        ),
    ],
)
def test_own_toleration_takes_the_place_of_the_default(own: dict[str, Any], added: list[str]) -> None:
    tolerations = admitted(Cluster(), tolerations=[dict(own)])["tolerations"]
    assert tolerations[0] == own
    assert [one["key"] for one in tolerations[1:]] == added


def test_service_account_is_filled_in() -> None:
    assert admitted(Cluster())["serviceAccountName"] == "default"
    spec = admitted(Cluster(), serviceAccountName="mine")
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("mine", "mine")


def test_runtime_class_brings_overhead_and_placement() -> None:
    runtime = named(
        "kata",
        overhead={"podFixed": {"cpu": "250m"}},
        scheduling={"nodeSelector": {"kata": "yes"}, "tolerations": [{"operator": "Exists"}]},
    )
    spec = admitted(Cluster(runtime_classes=[runtime]), runtimeClassName="kata", nodeSelector={"a": "b"})
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"a": "b", "kata": "yes"}
    assert spec["tolerations"] == [{"operator": "Exists"}]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"runtimeClassName": "none"}, 'pod rejected: RuntimeClass "none" not found'),
        ({"runtimeClassName": "kata", "overhead": {"cpu": "1"}}, "doesn't match RuntimeClass's defined Overhead"),
        ({"runtimeClassName": "kata", "nodeSelector": {"kata": "no"}}, "pod.spec.nodeSelector[kata] = no"),
        ({"overhead": {"cpu": "1"}}, "Pod Overhead set without corresponding RuntimeClass defined Overhead"),
        ({"runtimeClassName": "plain", "overhead": {"cpu": "1"}}, "without corresponding RuntimeClass"),
        ({"runtimeClassName": "kata", "overhead": {"cpu": "0.25"}}, ""),
    ],
)
def test_a_pod_must_not_contradict_its_runtime_class(spec: dict[str, Any], problem: str) -> None:
    overhead = {"podFixed": {"cpu": "250m"}}
    kata = named("kata", overhead=overhead, scheduling={"nodeSelector": {"kata": "yes"}})
    cluster = Cluster(runtime_classes=[kata, named("plain")])
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    if not problem:
        admit_create("Pod", pod, cluster)
        admit_valid("Pod", pod, cluster)
        return
    with pytest.raises(ApiError, match=re.escape(problem)) as refused:
        admit_create("Pod", pod, cluster)
        admit_valid("Pod", pod, cluster)
    assert refused.value.code == 403


def limit_range(name: str, **container: Any) -> dict[str, Any]:
    return named(name, spec={"limits": [{"type": "Container", **container}]})


def test_limit_ranges_complete_containers_the_first_by_name_first() -> None:
    ranges = [limit_range("b", default={"cpu": "2", "memory": "1Gi"}), limit_range("a", defaultRequest={"cpu": "1"})]
    containers = [{"name": "c"}, {"name": "d", "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "3"}}}]
    spec = {"containers": containers, "initContainers": [{"name": "i", "resources": {"limits": {"cpu": "4"}}}]}
    pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    admit_create("Pod", pod, Cluster(limit_ranges=ranges))
    assert [one["resources"] for one in (*containers, *spec["initContainers"])] == [
        {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}},
        {"requests": {"cpu": "3", "memory": "1Gi"}, "limits": {"cpu": "3", "memory": "1Gi"}},
        {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "4", "memory": "1Gi"}},
    ]
    assert pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: memory request for container c; cpu, memory limit for container c; "
        "memory request for container d; memory limit for container d; "
        "memory request for init container i; memory limit for init container i"
    )
    assert pod["status"]["qosClass"] == "Burstable"


def test_a_limit_range_is_not_stopped_by_nonsense_in_a_pod() -> None:
    for spec in ({"containers": 1}, {"containers": [1, {"resources": 2}, {"resources": {"limits": 3}}]}, None):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
        admit_create("Pod", pod, Cluster(limit_ranges=[limit_range("a", default={"cpu": "2"})]))


def test_all_broken_bounds_of_a_limit_range_are_reported_once() -> None:
    container = {"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "4"}}}
    spec = {"containers": [{"name": "a", **container}, {"name": "b", **container}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    ranges = [limit_range("a", min={"cpu": "2"}, max={"cpu": "3"}), limit_range("b", max={"cpu": "1"})]
    with pytest.raises(ApiError) as refused:
        admit_valid("Pod", pod, Cluster(limit_ranges=ranges))
    assert refused.value.message == (
        'pods "p" is forbidden: [minimum cpu usage per Container is 2, but request is 1, '
        "maximum cpu usage per Container is 3, but limit is 4]"
    )


DEFAULT = "storageclass.kubernetes.io/is-default-class"


def storage_class(name: str, created: str, default: str = "true") -> dict[str, Any]:
    return {"metadata": {"name": name, "creationTimestamp": created, "annotations": {DEFAULT: default}}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [({}, "new"), ({"storageClassName": ""}, ""), ({"storageClassName": "own"}, "own")],
)
def test_claim_gets_the_newest_default_class_unless_it_names_one(spec: dict[str, Any], expected: str) -> None:
    cluster = Cluster(
        storage_classes=[
            storage_class("old", "2023-01-01T00:00:00Z"),
            storage_class("new", "2024-01-01T00:00:00Z"),
            storage_class("newer", "2024-01-01T00:00:00Z"),
            storage_class("other", "2025-01-01T00:00:00Z", default="false"),
        ]
    )
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec}
    admit_create("PersistentVolumeClaim", claim, cluster)
    assert spec["storageClassName"] == expected


def test_second_global_default_is_forbidden() -> None:
    cluster = Cluster(priority_classes=[named("one", value=1, globalDefault=True)])
    second = named("two", value=2, globalDefault=True)
    with pytest.raises(ApiError, match="PriorityClass one is already marked as default"):
        admit_create("PriorityClass", second, cluster)


def test_service_gets_free_addresses() -> None:
    def service(**spec: Any) -> dict[str, Any]:
        return {"metadata": {"name": "s", "uid": "u"}, "spec": {"type": "NodePort", "ports": [{"port": 1}], **spec}}

    first, second = service(), service()
    admit_create("Service", first, Cluster())
    admit_create("Service", second, Cluster(services=[first]))
    assert first["spec"]["clusterIP"].startswith("10.96.")
    assert first["spec"]["clusterIPs"] == [first["spec"]["clusterIP"]]
    assert first["spec"]["clusterIP"] != second["spec"]["clusterIP"]
    ports = {one["spec"]["ports"][0]["nodePort"] for one in (first, second)}
    assert len(ports) == 2
    assert all(30000 <= port <= 32767 for port in ports)


def test_headless_service_stays_headless() -> None:
    service: dict[str, Any] = {"metadata": {"name": "s"}, "spec": {"type": "ClusterIP", "clusterIP": "None"}}
    admit_create("Service", service, Cluster())
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["clusterIPs"] == ["None"]


def test_replaced_service_keeps_its_addresses() -> None:
    ports = [{"port": 1, "protocol": "TCP", "nodePort": 30001}, {"port": 2, "protocol": "TCP", "nodePort": 30002}]
    old = {"spec": {"type": "NodePort", "clusterIP": "10.96.1.1", "clusterIPs": ["10.96.1.1"], "ports": ports}}
    new: dict[str, Any] = {"spec": {"type": "NodePort", "ports": [{"port": 2, "protocol": "TCP"}, {"port": 3}]}}
    admit_update("Service", old, new)
    assert new["spec"] == {
        "type": "NodePort",
        "clusterIP": "10.96.1.1",
        "clusterIPs": ["10.96.1.1"],
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"port": 2, "protocol": "TCP", "nodePort": 30002}, {"port": 3}],
    }


def test_replaced_pod_keeps_its_priority() -> None:
    old = {"spec": {"priority": 5, "preemptionPolicy": "Never"}}
    new: dict[str, Any] = {"spec": {"preemptionPolicy": "Never"}}
    admit_update("Pod", old, new)
    tolerations = new["spec"].pop("tolerations")
    assert new["spec"] == {"priority": 5, "preemptionPolicy": "Never"}
    assert [one["key"] for one in tolerations] == ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]
