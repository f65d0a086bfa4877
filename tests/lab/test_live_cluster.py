"""Pods stay decoded while the scheduler writes its usual things, and can be read and written as JSON all the same."""

from __future__ import annotations

import msgspec
import pytest

from pilotage.cluster.state import Cluster
from pilotage.kube.errors import ApiStatusError
from pilotage.lab.live_cluster import LiveCluster
from pilotage.model import KINDS, Pod, WatchEvent
from pilotage.testing import VirtualClock, node, pod
from pilotage.testing.builders import PodBuilder

PODS = KINDS["pods"]
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"


class Watcher:
    """Stands where the intake of a scheduler is, and where the replay is."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Pod]] = []
        self.noted: list[tuple[str, ...]] = []

    def apply(self, kind: str, events: list[WatchEvent]) -> None:
        self.seen += [(event.type, event.object) for event in events]

    def pod_bound(self, pod: Pod, node_name: str) -> None:
        self.noted.append(("bound", pod.name, node_name))

    def pod_rejected(self, pod: Pod, message: str) -> None:
        self.noted.append(("rejected", pod.name, message))

    def pod_stopping(self, pod: Pod, seconds: float) -> None:
        self.noted.append(("stopping", pod.name, str(seconds)))


@pytest.fixture
def watcher() -> Watcher:
    return Watcher()


@pytest.fixture
def api(watcher: Watcher) -> LiveCluster:
    made = LiveCluster(VirtualClock(), watcher)
    made.connect(watcher, Cluster())  # type: ignore[arg-type]
    return made


def add(api: LiveCluster, builder: PodBuilder) -> Pod:
    raw = msgspec.Raw(msgspec.json.encode(builder.json()))
    return api.add_pod(api.decode_pod(raw), raw)


def status(**fields: object) -> bytes:
    return msgspec.json.encode({"metadata": {"uid": ""}, "status": fields})


REJECTED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "too full"}


async def test_a_rejection_and_a_binding_change_the_pod_and_are_told(api: LiveCluster, watcher: Watcher) -> None:
    first = add(api, pod("p").label("app", "a"))
    body = status(conditions=[REJECTED], nominatedNodeName="n")
    await api.patch(PODS, "default", "p", body, content_type=STRATEGIC, subresource="status")
    await api.bind("default", "p", first.uid, "n")
    (_, came), (_, waits), (_, bound) = watcher.seen
    assert waits.status.conditions[0].message == "too full" and waits.status.nominated_node_name == "n"
    assert bound.node_name == "n" and bound.status.conditions == () and bound.status.nominated_node_name == ""
    assert came.spec is waits.spec is bound.spec and came.labels is bound.labels
    assert len({came.resource_version, waits.resource_version, bound.resource_version}) == 3
    assert watcher.noted == [("rejected", "p", "too full"), ("bound", "p", "n")]


async def test_a_pod_is_bound_once_and_only_if_it_is_the_one_that_is_meant(api: LiveCluster) -> None:
    made = add(api, pod("p"))
    with pytest.raises(ApiStatusError, match="UID"):
        await api.bind("default", "p", "another", "n")
    await api.bind("default", "p", made.uid, "n")
    with pytest.raises(ApiStatusError, match="already assigned to node n"):
        await api.bind("default", "p", made.uid, "m")
    with pytest.raises(ApiStatusError, match="not found"):
        await api.bind("default", "q", "", "m")


async def test_what_is_read_as_json_has_what_was_decided(api: LiveCluster) -> None:
    made = add(api, pod("p").label("app", "a"))
    await api.bind("default", "p", made.uid, "n")
    document = msgspec.json.decode(await api.get(PODS, "default", "p"))
    assert document["spec"]["nodeName"] == "n" and document["metadata"]["uid"] == made.uid
    assert document["metadata"]["labels"] == {"app": "a"} and document["spec"]["containers"][0]["name"] == "main"


async def test_annotations_and_anything_else_can_be_written(api: LiveCluster, watcher: Watcher) -> None:
    add(api, pod("p").annotation("a", "1"))
    body = msgspec.json.encode({"metadata": {"annotations": {"b": "2"}}})
    await api.patch(PODS, "default", "p", body, content_type=MERGE)
    assert watcher.seen[-1][1].annotations == {"a": "1", "b": "2"}
    body = msgspec.json.encode({"metadata": {"labels": {"new": "label"}}})
    await api.patch(PODS, "default", "p", body, content_type=MERGE)
    last = watcher.seen[-1][1]
    assert last.labels == {"new": "label"} and last.annotations == {"a": "1", "b": "2"}


async def test_a_deletion_marks_the_pod_and_says_how_long_it_takes(api: LiveCluster, watcher: Watcher) -> None:
    add(api, pod("slow").spec(terminationGracePeriodSeconds=30))
    add(api, pod("quick").spec(terminationGracePeriodSeconds=0))
    for name in ("slow", "slow", "quick"):
        await api.delete(PODS, "default", name)
    assert watcher.noted == [("stopping", "slow", "0.5"), ("stopping", "quick", "0.0")]
    gone = api.remove_pod(("Pod", "default", "slow"))
    assert gone is not None and gone.is_terminating and watcher.seen[-1] == ("DELETED", gone)


def test_what_somebody_else_changes_leaves_what_was_decided(api: LiveCluster, watcher: Watcher) -> None:
    made = add(api, pod("p").spec(nodeName="n"))
    raw = msgspec.Raw(msgspec.json.encode(pod("p").label("new", "label").json()))
    api.change_pod(api.decode_pod(raw), raw)
    last = watcher.seen[-1][1]
    assert (last.uid, last.node_name, last.labels) == (made.uid, "n", {"new": "label"})


def test_other_objects_come_change_and_go(api: LiveCluster, watcher: Watcher) -> None:
    api.put(node("n").cpu("1").json())
    api.put(node("n").cpu("2").json())
    assert api.drop(("Node", "", "n")) and not api.drop(("Node", "", "n"))
    assert [kind for kind, _ in watcher.seen] == ["ADDED", "MODIFIED", "DELETED"]
