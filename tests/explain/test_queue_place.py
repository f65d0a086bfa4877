"""What the queue of the running scheduler adds to an explanation."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from pilotage.cluster.state import Cluster
from pilotage.explain.engine import put
from pilotage.explain.queue_place import queue_place, with_queue, with_siblings
from pilotage.explain.render import render
from pilotage.explain.report import QueuePlace, Report
from pilotage.explain.subject import UnknownSubject, find_siblings, find_subject
from pilotage.explain.text_lines import queue_lines
from pilotage.model import KINDS, Pod
from pilotage.queue.report import QueuedPodReport, QueueReport
from pilotage.testing import PodBuilder, pod


def report(**parts: tuple[QueuedPodReport, ...]) -> QueueReport:
    return QueueReport(time=0.0, counts={}, **parts)  # type: ignore[arg-type]


def queued(uid: str, **facts: object) -> QueuedPodReport:
    return QueuedPodReport("default", uid, uid, 0, 3, 90.4, **facts)  # type: ignore[arg-type]


def test_unschedulable_pod_waits_for_the_plugins_that_rejected_it() -> None:
    found = queue_place(report(unschedulable=(queued("a"), queued("b", rejectors=("NodePorts",)))), "b")
    assert found == QueuePlace("unschedulable", 90.4, 3, rejectors=("NodePorts",))
    assert list(queue_lines(found)) == [
        "place: unschedulable",
        "since: 1m30s ago",
        "attempts: 3",
        "waits for events of: NodePorts",
    ]


def test_backoff_says_how_much_is_left_and_errors_have_their_own() -> None:
    found = queue_place(report(backoff=(queued("a", backoff_seconds=4.26, is_error=True),)), "a")
    assert found is not None
    assert [*queue_lines(found)][0::3] == ["place: error backoff", "backoff left: 4.3s"]


def test_an_error_that_no_report_can_find_out_is_in_the_first_line() -> None:
    """Whatever failed besides filters: an extender, a binding, a plugin that raised."""
    fits = replace(unplaced("a"), fits=True, feasible=3)
    failed = queued("a", is_error=True, message="extender http://e: the answer is no JSON.")
    told = with_queue(fits, report(backoff=(failed,)), waiting("a"), [], "")
    assert told.answer == (
        "default/a fits on 3 of 3 nodes. Its last attempt failed: extender http://e: the answer is no JSON."
    )
    assert told.queue is not None and told.queue.last_error == failed.message
    woken = queued("a", message="old news", rejectors=("Fit",))
    assert with_queue(fits, report(backoff=(woken,)), waiting("a"), [], "").answer == "default/a fits on 3 of 3 nodes."


def test_a_group_that_was_tried_waits_for_its_time_and_not_for_events() -> None:
    group = queued("g", kind="PodGroup", backoff_seconds=2.0, rejectors=("NodeResourcesFit",))
    found = queue_place(report(backoff=(group,)), "g")
    assert found is not None and found.waits_for_time
    assert [*queue_lines(found)][3:] == ["backoff left: 2s", "waits for: time, as every group that was tried"]


def test_gate_is_named() -> None:
    found = queue_place(report(gated=(queued("a", gated_by="SchedulingGates"),)), "a")
    assert found is not None and found.gated_by == "SchedulingGates"
    assert [*queue_lines(found)][-1] == "gated by: SchedulingGates"


def test_pod_that_is_not_queued_says_nothing() -> None:
    assert queue_place(report(active=(queued("a"),)), "z") is None


def test_permit_plugin_that_holds_the_pod_is_named() -> None:
    held = queued("a", held_by=("Gang", "Quota"), node="n")
    found = queue_place(report(in_flight=(held,)), "a")
    assert found is not None and [*queue_lines(found)][-1] == "held by (Permit): Gang, Quota"
    told = with_queue(unplaced("a"), report(in_flight=(held,)), waiting("a"), [], "")
    assert told.answer == "default/a has a place on n and is held there by plugins Gang, Quota (Permit)."
    assert told.fits and told.held_by == ("Gang", "Quota") and told.message == ""


def unplaced(name: str) -> Report:
    return Report(f"default/{name}", f"default/{name} fits on none of 3 nodes.", False, "default-scheduler", 3, "0/3")


def waiting(name: str) -> Pod:
    return pod(name).uid(name).build()


@pytest.mark.parametrize(
    ("rejectors", "siblings", "line"),
    [
        ([("Fit",)], [], "1 other pod waits for the same reason (Fit)."),
        ([("Fit",), ("Fit",), ("Ports",), ()], [], "2 other pods wait for the same reason (Fit)."),
        ([("Fit",), ("Fit",)], ["p0"], "2 other pods wait for the same reason (Fit), 1 of them of deploy/web."),
        ([("Fit",), ("Fit",)], ["p0", "p1"], "2 other pods of deploy/web wait for the same reason (Fit)."),
        ([("Ports",), ("Fit", "Ports")], ["p0"], None),
    ],
)
def test_how_many_others_wait_for_the_same_plugins(
    rejectors: list[tuple[str, ...]], siblings: list[str], line: str | None
) -> None:
    others = tuple(queued(f"p{number}", rejectors=names) for number, names in enumerate(rejectors))
    queue = report(unschedulable=(queued("a", rejectors=("Fit",)), *others))
    told = with_queue(unplaced("a"), queue, waiting("a"), [waiting(name) for name in siblings], "deploy/web")
    second = render(told).splitlines()[1]
    assert second == (line or "")


def test_a_pod_that_waits_for_no_one_has_no_company() -> None:
    queue = report(active=(queued("a"), queued("b")))
    assert with_queue(unplaced("a"), queue, waiting("a"), [], "").others is None
    assert with_queue(unplaced("z"), queue, waiting("z"), [], "") == unplaced("z")


def owned(name: str, owner: str, cpu: int = 1) -> PodBuilder:
    obj = pod(name).uid(name).requests(cpu=cpu).json()
    obj["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": f"uid-{owner}", "controller": True}
    ]
    return PodBuilder(obj)


@pytest.mark.parametrize("subject", ["deploy/web", "rs/web-1", "web-a"])
def test_without_a_queue_equal_pods_of_the_workload_wait_for_the_same(subject: str) -> None:
    cluster = Cluster()
    for kind, name, owner in (("Deployment", "web", ""), ("ReplicaSet", "web-1", "uid-web")):
        references = [{"kind": "Deployment", "name": "web", "uid": owner, "controller": True}] if owner else []
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "ownerReferences": references}
        codec = next(info.codec for info in KINDS.values() if info.kind == kind)
        template = {"spec": {"containers": [{"name": "c"}]}}
        put(cluster, kind, codec.decode(msgspec.json.encode({"metadata": metadata, "spec": {"template": template}})))
    others = [
        owned("web-b", "web-1"),
        owned("old", "web-1", cpu=2),
        owned("on", "web-1").node("n"),
        owned("db", "db-1"),
    ]
    for builder in (owned("web-a", "web-1"), *others):
        put(cluster, "Pod", builder.build())
    found = find_subject(cluster, subject, "default")
    siblings, workload = find_siblings(cluster, subject, found)
    assert sorted(one.name for one in siblings) == ["old", "web-a", "web-b"]
    told = with_siblings(unplaced("web-a"), found, siblings, workload)
    named = "replicaset/web-1" if subject == "web-a" else subject
    assert render(told).splitlines()[1] == f"1 other pod of {named} waits for the same reason."


@pytest.mark.parametrize("subject", ["deploy/web", "job/train"])
def test_workload_that_no_scheduler_watches_is_known_from_what_it_owns(subject: str) -> None:
    cluster = Cluster()
    owner = {"kind": "Deployment", "name": "web", "uid": "uid-web", "controller": True}
    metadata = {"name": "web-1", "namespace": "default", "uid": "uid-web-1", "ownerReferences": [owner]}
    template = {"spec": {"containers": [{"name": "c"}]}}
    replica_set = msgspec.json.encode({"metadata": metadata, "spec": {"template": template}})
    put(cluster, "ReplicaSet", KINDS["replicasets"].codec.decode(replica_set))
    for name in ("web-a", "web-b"):
        put(cluster, "Pod", owned(name, "web-1").build())
    of_job = owned("train-a", "train").json()
    of_job["metadata"]["ownerReferences"][0]["kind"] = "Job"
    put(cluster, "Pod", PodBuilder(of_job).build())
    found = find_subject(cluster, subject, "default")
    siblings, workload = find_siblings(cluster, subject, found)
    assert found in siblings and workload == subject
    assert sorted(one.name for one in siblings) == (["train-a"] if subject == "job/train" else ["web-a", "web-b"])
    with pytest.raises(UnknownSubject, match="not found"):
        find_subject(cluster, "deploy/train", "default")
