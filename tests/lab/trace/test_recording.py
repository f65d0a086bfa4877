"""What reflectors tell becomes records: what matters, once, and nothing that the scheduler decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilotage.lab.trace.content import Redaction, Sighting, sighting
from pilotage.lab.trace.finishing import finish
from pilotage.lab.trace.format import TraceError, Writer
from pilotage.lab.trace.recording import Recording, TraceState, continued
from pilotage.model.codec import WatchEvent
from pilotage.model.kinds import KINDS

from .making import gap, header, node, observed, pod, put, read_all, told, write

WAITING = {"metadata": {"name": "late"}, "provisioner": "p", "volumeBindingMode": "WaitForFirstConsumer"}


class Cluster:
    """A recording and the server that it follows, in a time that is set by hand."""

    def __init__(self, path: Path, out: Writer | None = None, state: TraceState | None = None) -> None:
        self.path = path
        self.at = 0.0
        self.out = out or Writer(path, header(recording=True))
        self.recording = Recording(self.out, lambda: self.at, state or TraceState())

    def lists(self, plural: str, *objects: dict[str, Any]) -> None:
        self.recording.replace(KINDS[plural].kind, [self._seen(plural, obj) for obj in objects])

    def tells(self, event: str, plural: str, obj: dict[str, Any]) -> None:
        self.recording.apply(KINDS[plural].kind, [WatchEvent(event, self._seen(plural, obj))])

    def _seen(self, plural: str, obj: dict[str, Any]) -> Sighting:
        return sighting(KINDS[plural], msgspec.json.encode(obj), Redaction())

    def ends(self) -> list[tuple[Any, ...]]:
        self.out.close()
        assert self.recording.failure is None
        return told(list(read_raw(self.path)))


def read_raw(path: Path) -> list[Any]:
    from pilotage.lab.trace.format import read

    return list(read(path)[1])


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path / "t.jsonl.gz")


def test_a_pod_comes_is_bound_and_ends(cluster: Cluster) -> None:
    cluster.lists("nodes", node("a"))
    cluster.lists("pods")
    for at, event, obj in (
        (1.0, "ADDED", pod("p")),
        (2.0, "MODIFIED", pod("p", on="a")),
        (3.0, "MODIFIED", {**pod("p", on="a"), "status": {"phase": "Running", "podIP": "1.2.3.4"}}),
        (9.0, "MODIFIED", {**pod("p", on="a"), "status": {"phase": "Succeeded"}}),
        (10.0, "DELETED", pod("p", on="a")),
    ):
        cluster.at = at
        cluster.tells(event, "pods", obj)
    assert cluster.ends() == [(0, "a", None), (1, "p", None), (2, "p@a", None), (9, "gone", "p")]
    finish(cluster.path)
    assert told(read_all(cluster.path)) == [(0, "a", None), (1, "p", 7)]


def test_heartbeats_of_nodes_are_no_records_and_changes_are(cluster: Cluster) -> None:
    cluster.lists("nodes", node("a"))
    beat = node("a")
    beat["status"] = {**beat["status"], "conditions": [{"type": "Ready", "lastHeartbeatTime": "now", "status": "True"}]}
    cluster.at = 1
    cluster.tells("MODIFIED", "nodes", beat)
    cluster.at = 2
    cluster.tells("MODIFIED", "nodes", {**node("a"), "spec": {"unschedulable": True}})
    assert cluster.ends() == [(0, "a", None), (2, "a", None)]


def test_what_is_missing_from_a_new_list_is_gone_and_what_is_new_was_pending(cluster: Cluster) -> None:
    cluster.lists("pods", pod("old", on="a"))
    cluster.at = 5
    cluster.lists("pods", pod("new", on="b"))
    assert cluster.ends() == [(0, "old@a", None), (5, "gone", "old"), (5, "new", None), (5, "new@b", None)]


def test_a_mirror_pod_belongs_to_its_node_whenever_it_comes(cluster: Cluster) -> None:
    cluster.lists("pods")
    cluster.at = 5
    cluster.lists("pods", pod("static", on="b", annotations={"kubernetes.io/config.mirror": "x"}))
    assert cluster.ends() == [(5, "static@b", None)]


def test_a_pod_of_the_same_name_is_another_one(cluster: Cluster) -> None:
    cluster.lists("pods", pod("db-0", on="a", uid="1"))
    cluster.at = 5
    cluster.tells("MODIFIED", "pods", pod("db-0", uid="2"))
    assert cluster.ends() == [(0, "db-0@a", None), (5, "gone", "db-0"), (5, "db-0", None)]


def test_pods_that_are_over_are_not_worth_a_line(cluster: Cluster) -> None:
    cluster.lists("pods", {**pod("done", on="a"), "status": {"phase": "Failed"}})
    cluster.tells("DELETED", "pods", pod("done", on="a"))
    assert cluster.ends() == []


def claim(volume: str = "") -> dict[str, Any]:
    spec = {"storageClassName": "late", "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {**spec, **({"volumeName": volume} if volume else {})},
    }


def test_what_follows_from_placing_a_pod_is_left_to_whoever_replays(cluster: Cluster) -> None:
    cluster.lists("storageclasses", WAITING)
    cluster.lists("persistentvolumeclaims")
    cluster.lists("persistentvolumes")
    cluster.lists("resourceclaims")
    cluster.at = 1
    cluster.tells("ADDED", "persistentvolumeclaims", claim())
    gpu = {"metadata": {"name": "gpu", "namespace": "default"}, "spec": {}}
    cluster.tells("ADDED", "resourceclaims", gpu)
    cluster.at = 2
    made = {"name": "pv-1", "annotations": {"pv.kubernetes.io/provisioned-by": "p"}}
    cluster.tells("ADDED", "persistentvolumes", {"metadata": made, "spec": {"storageClassName": "late"}})
    cluster.tells("MODIFIED", "persistentvolumeclaims", claim("pv-1"))
    cluster.tells("MODIFIED", "resourceclaims", {**gpu, "status": {"allocation": {"devices": {}}}})
    extended = {"resource.kubernetes.io/extended-resource-claim": "true"}
    cluster.tells("ADDED", "resourceclaims", {"metadata": {"name": "x", "namespace": "n", "annotations": extended}})
    assert cluster.ends() == [(0, "late", None), (1, "data", None), (1, "gpu", None)]


def test_what_was_decided_before_is_the_state_at_the_beginning(cluster: Cluster) -> None:
    cluster.lists("storageclasses", WAITING)
    cluster.lists("persistentvolumeclaims", claim("pv-1"))
    cluster.at = 4
    grown = claim("pv-1")
    grown["spec"]["resources"] = {"requests": {"storage": "2Gi"}}
    cluster.tells("MODIFIED", "persistentvolumeclaims", grown)
    cluster.out.close()
    claims = [one.put_object()["spec"] for one in read_raw(cluster.path) if one.name.kind == "PersistentVolumeClaim"]
    assert [(spec["volumeName"], spec["resources"]["requests"]["storage"]) for spec in claims] == [
        ("pv-1", "1Gi"),
        ("pv-1", "2Gi"),
    ]


def test_jobs_count_if_they_name_a_queue(cluster: Cluster) -> None:
    plain = {"metadata": {"name": "plain", "namespace": "n"}, "spec": {}}
    queued = {
        "metadata": {"name": "queued", "namespace": "n", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
        "spec": {},
    }
    cluster.lists("jobs", plain, queued)
    assert cluster.ends() == [(0, "queued", None)]


def test_the_admission_of_a_job_is_a_decision(cluster: Cluster) -> None:
    def job(*, suspend: bool, parallelism: int = 2, **selector: str) -> dict[str, Any]:
        template = {"spec": {"containers": [], "nodeSelector": selector}}
        metadata = {"name": "j", "namespace": "n", "labels": {"kueue.x-k8s.io/queue-name": "q"}}
        return {"metadata": metadata, "spec": {"suspend": suspend, "parallelism": parallelism, "template": template}}

    cluster.lists("jobs")
    for at, obj in (
        (1.0, job(suspend=True)),
        (2.0, job(suspend=False, pool="a")),
        (3.0, job(suspend=False, parallelism=3)),
    ):
        cluster.at = at
        cluster.tells("MODIFIED", "jobs", obj)
    assert cluster.ends() == [(1, "j", None), (3, "j", None)]


def test_a_recording_that_cannot_be_written_says_so_once(cluster: Cluster) -> None:
    cluster.lists("nodes", node("a"))
    cluster.at = -1  # no writer takes that
    cluster.tells("ADDED", "nodes", node("b"))
    first = cluster.recording.failure
    cluster.tells("ADDED", "nodes", node("c"))
    assert isinstance(first, TraceError) and cluster.recording.failure is first


def test_a_recording_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.jsonl.gz",
        [
            put(0, node("a")),
            put(1, observed("p", "a", 2.0)),
            put(1, observed("over", "a", 2.0), runs=1),
            put(3, pod("q")),
        ],
    )
    out, state, missed = continued(path, header().start_time + 13, header())
    assert (state.at, missed) == (13.0, 10.0)
    cluster = Cluster(path, out, state)
    cluster.at = state.at
    cluster.lists("nodes", node("a"))
    cluster.lists("pods", pod("p", on="a"), pod("new", on="a"))
    cluster.at = 20
    cluster.tells("DELETED", "pods", pod("p", on="a"))
    cluster.ends()
    finish(path)
    assert told(read_all(path)) == [
        (0, "a", None),
        (1, "p", 18),
        (1, "over", 1),
        (3, "q", None),
        (13, "gap", 10),
        (13, "gone", "q"),
        (13, "new", None),
    ]


def test_only_recordings_of_the_same_cluster_go_on(tmp_path: Path) -> None:
    system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "1"}}
    path = write(tmp_path / "t.jsonl", [put(0, system)], source="record")
    before = path.read_bytes()
    with pytest.raises(TraceError, match="another cluster; choose another name"):
        continued(path, header().start_time, header(source="record"), "2")
    with pytest.raises(TraceError, match=r"1: is no recording that could go on, but a trace of record"):
        continued(path, header().start_time, header(source="other"))
    assert [one.read_bytes() for one in tmp_path.iterdir()] == [before]
    out, _, _ = continued(path, header().start_time, header(source="record"), "1")
    out.close()


def test_what_is_half_written_is_dropped_when_a_recording_goes_on(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", [put(0, node("a")), put(2, pod("p"))], recording=True)
    path.write_bytes(path.read_bytes()[:-9])
    out, state, _ = continued(path, header().start_time + 4, header())
    out.close()
    assert told(read_all(path)) == [(0, "a", None), (4, "gap", 4)]
    assert state.objects.keys() == {"Node"}


def test_a_clock_that_went_back_does_not_disturb_the_order(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", [gap(50, 1)])
    out, state, missed = continued(path, header().start_time + 4, header())
    out.close()
    assert (state.at, missed) == (50.0, 0.0)
