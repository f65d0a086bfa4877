"""What admission adds to pods, and contradictions between those who want to add something."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotage.jobs.adapters import marks
from pilotage.jobs.adapters.pod_set_info import PodSetConflict, PodSetInfo, pod_set_infos
from pilotage.model.kueue import ResourceFlavor, ResourceFlavorSpec, Workload
from pilotage.model.meta import ObjectMeta
from pilotage.model.pod_spec import Toleration

SPOT = Toleration(key="spot", operator="Exists")


def flavor(name: str, labels: dict[str, str], *tolerations: Toleration) -> ResourceFlavor:
    return ResourceFlavor(
        metadata=ObjectMeta(name=name), spec=ResourceFlavorSpec(node_labels=labels, tolerations=tolerations)
    )


FLAVORS = {
    "spot": flavor("spot", {"pool": "spot"}, SPOT),
    "gpu": flavor("gpu", {"gpu": "a100"}),
    "clash": flavor("clash", {"pool": "other"}),
}


def admitted(flavors: dict[str, str], *updates: dict[str, Any], count: int | None = None) -> Workload:
    assignment: dict[str, Any] = {"name": "main", "flavors": flavors}
    if count is not None:
        assignment["count"] = count
    workload = {
        "metadata": {"name": "w"},
        "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": 4}]},
        "status": {
            "admission": {"clusterQueue": "cq", "podSetAssignments": [assignment]},
            "admissionChecks": [{"name": "c", "podSetUpdates": [{"name": "main", **one}]} for one in updates],
        },
    }
    return msgspec.convert(workload, Workload)


def only(found: list[PodSetInfo] | PodSetConflict) -> PodSetInfo:
    assert isinstance(found, list) and len(found) == 1
    return found[0]


def test_all_flavors_of_a_pod_set_are_added() -> None:
    info = only(pod_set_infos(admitted({"cpu": "spot", "memory": "spot", "gpu": "gpu"}), FLAVORS))
    assert info.node_selector == {"pool": "spot", "gpu": "a100"}
    assert info.tolerations == (SPOT,)
    assert info.count == 4
    assert info.labels == {
        marks.POD_SET: "main",
        marks.LOCAL_QUEUE_NAME: "lq",
        marks.CLUSTER_QUEUE_NAME: "cq",
    }


def test_the_admitted_count_is_the_one_that_counts() -> None:
    assert only(pod_set_infos(admitted({"cpu": "spot"}, count=2), FLAVORS)).count == 2


def test_checks_add_to_it_and_a_flavor_that_is_gone_adds_nothing() -> None:
    update = {"labels": {"a": "1"}, "annotations": {"b": "2"}, "nodeSelector": {"zone": "x"}}
    info = only(pod_set_infos(admitted({"cpu": "gone"}, update), FLAVORS))
    assert info.node_selector == {"zone": "x"} and info.labels["a"] == "1"
    assert info.annotations == {"b": "2", "kueue.x-k8s.io/workload": "w"}


def test_contradictions_are_named() -> None:
    found = pod_set_infos(admitted({"cpu": "spot", "gpu": "clash"}), FLAVORS)
    assert found == PodSetConflict("main", "nodeSelector", "pool", ("spot", "other"))
    assert found.message == 'pod set main: nodeSelector pool is to be "spot" and "other"'
    checks = pod_set_infos(admitted({}, {"labels": {"a": "1"}}, {"labels": {"a": "2"}}), FLAVORS)
    assert checks == PodSetConflict("main", "label", "a", ("1", "2"))
