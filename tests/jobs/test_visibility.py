"""The visibility API over queues in a few lines: order, windows, refusals, and what is told beyond Kueue's answer."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pilotage.jobs.queue_lines import Window
from pilotage.jobs.reports import QueueLine
from pilotage.jobs.visibility import VisibilityApi
from pilotage.jobs.visibility_discovery import GROUP, aggregated_document, resource_list
from pilotage.model.meta import OwnerReference
from pilotage.simulate.queueing_file import Named

from .world import World

BASE = f"/apis/{GROUP}/v1beta2"
OF_MAIN = f"{BASE}/clusterqueues/main/pendingworkloads"


class Visible(World):
    """Queues with one holder of everything, so that whoever is submitted waits."""

    def __init__(self, **config: Any) -> None:
        super().__init__(**config)
        self.api = VisibilityApi(lambda: self.engine)
        self.queue("main")
        self.add("localQueue", "second", clusterQueue="main")

    def fill(self) -> None:
        self.submit("filler", "main", cpu=4, createdAt=-100)

    def wait(self, *names: str, queue: str = "lq-main") -> None:
        """Submitted in this order, a second apart."""
        for at, name in enumerate(names):
            self.add("workload", name, queue=queue, requests={"cpu": 1}, createdAt=at - 50)

    def get(self, path: str = OF_MAIN, **query: Any) -> dict[str, Any]:
        answer = self.api.answer("GET", path, {name: str(value) for name, value in query.items()})
        assert answer.code == 200, answer
        return answer.document

    def names(self, path: str = OF_MAIN, **query: Any) -> list[str]:
        return [item["metadata"]["name"] for item in self.get(path, **query)["items"]]

    def item(self, name: str, path: str = OF_MAIN) -> dict[str, Any]:
        return next(item for item in self.get(path)["items"] if item["metadata"]["name"] == name)

    def refused(self, path: str, **query: str) -> tuple[int, str, str]:
        code, document = self.api.answer("GET", path, query)
        assert document["kind"] == "Status" and document["code"] == code and document["status"] == "Failure"
        return code, document["reason"], document["message"]


@pytest.fixture
def world() -> Visible:
    return Visible()


def positions(document: dict[str, Any]) -> list[tuple[str, int, int]]:
    return [
        (item["metadata"]["name"], item["positionInClusterQueue"], item["positionInLocalQueue"])
        for item in document["items"]
    ]


# --- order and positions ----------------------------------------------------------------------------------------------


def test_the_answer_is_a_summary_of_kueue(world: Visible) -> None:
    world.fill()
    world.wait("a")
    document = world.get()
    assert (document["kind"], document["apiVersion"]) == ("PendingWorkloadsSummary", f"{GROUP}/v1beta2")
    (item,) = document["items"]
    assert set(item["metadata"]) == {"name", "namespace", "creationTimestamp"}
    known = {"priority": 0, "localQueueName": "lq-main", "positionInClusterQueue": 0, "positionInLocalQueue": 0}
    assert item.items() >= known.items()


def test_who_holds_quota_is_not_pending(world: Visible) -> None:
    world.fill()
    assert world.names() == []


def test_positions_are_those_of_the_whole_queue_in_both_views(world: Visible) -> None:
    world.fill()
    world.wait("a", "b")
    world.add("workload", "c", queue="second", requests={"cpu": 1}, createdAt=-45)
    world.submit("urgent", "main", priority=9, createdAt=-1)
    assert positions(world.get()) == [("urgent", 0, 0), ("a", 1, 1), ("b", 2, 2), ("c", 3, 0)]
    own = f"{BASE}/namespaces/ns/localqueues/second/pendingworkloads"
    assert positions(world.get(own)) == [("c", 3, 0)]


def test_put_aside_active_and_backing_off_stand_in_one_line() -> None:
    world = Visible(waitForPodsReady={"timeout": "10s", "requeuingStrategy": {"timestamp": "Creation"}})
    world.submit("unready", "main", cpu=4, createdAt=-9)
    world.stage.advance(11)
    world.submit("filler", "main", cpu=4, createdAt=-100)
    world.submit("too-large", "main", cpu=99, createdAt=-5)
    world.submit("next", "main", cpu=1, createdAt=-3)
    assert world.names() == ["unready", "too-large", "next"]
    late = world.item("unready")
    assert (late["eligible"], late["requeueCount"]) == (False, 1) and late["requeueAt"].endswith("Z")
    assert world.item("next")["eligible"] is True
    assert "requeueAt" not in world.item("next") and "requeueCount" not in world.item("next")
    assert world.item("too-large")["reason"] == "ExceedsMaxQuota" and "maximum" in world.item("too-large")["message"]


def test_a_preemptor_that_waits_for_its_victims_is_first(world: Visible) -> None:
    world.change("clusterQueue", "main", preemption={"withinClusterQueue": "LowerPriority"})
    world.submit("victim", "main", cpu=4, createdAt=-100, eviction="manual")
    world.submit("large", "main", cpu=99, priority=9, createdAt=-90)
    world.submit("preemptor", "main", cpu=4, priority=5, createdAt=-80)
    assert world.names() == ["preemptor", "large"]
    (need,) = world.item("preemptor")["waitsFor"]
    assert need["reason"] == "WaitingForPreemptedWorkloads"
    assert need["heldBy"] == [{"namespace": "ns", "name": "victim", "clusterQueue": "main"}]


# --- windows ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, "abcde"),
        ({"offset": 2}, "cde"),
        ({"limit": 2}, "ab"),
        ({"offset": 1, "limit": 2}, "bc"),
        ({"offset": 5}, ""),
        ({"offset": 99}, ""),
        ({"offset": -3}, "abcde"),
        ({"limit": -1}, ""),
        ({"limit": 0}, "abcde"),
        ({"limit": 10**12}, "abcde"),
        ({"offset": "+1", "limit": "1"}, "b"),
    ],
    ids=str,
)
def test_offset_and_limit(world: Visible, query: dict[str, Any], expected: str) -> None:
    world.fill()
    world.wait(*"abcde")
    world.wait("z", queue="second")
    assert world.names(f"{BASE}/namespaces/ns/localqueues/lq-main/pendingworkloads", **query) == list(expected)


def test_a_window_keeps_the_positions(world: Visible) -> None:
    world.fill()
    world.wait(*"abcde")
    assert positions(world.get(offset=3)) == [("d", 3, 3), ("e", 4, 4)]


@pytest.mark.parametrize(
    ("query", "length"), [({}, 1000), ({"limit": 0}, 1000), ({"limit": 1001}, 1001), ({"limit": 10**9}, 1002)], ids=str
)
def test_a_thousand_unless_more_are_asked_for(query: dict[str, Any], length: int) -> None:
    world = Visible()
    world.fill()
    for at in range(1002):
        fields = {"name": f"w{at:04}", "queue": "lq-main", "requests": {"cpu": 1}, "createdAt": at - 5000}
        world.stage.apply(named("workload", fields))
    world.settle()
    assert len(world.names(**query)) == length


@pytest.mark.parametrize(
    ("limit", "asked"), [("99999", 99_999), ("100000", 100_000), ("100001", 100_000), ("9" * 18, 100_000)]
)
def test_no_one_gets_more_than_a_hundred_thousand(limit: str, asked: int) -> None:
    windows: list[Window] = []

    class Engine:
        def lines_of_cluster_queue(self, name: str, window: Window) -> list[QueueLine]:
            windows.append(window)
            return []

    engine: Any = Engine()
    assert VisibilityApi(lambda: engine).answer("GET", OF_MAIN, {"limit": limit}).code == 200
    assert windows == [Window(0, asked)]


@pytest.mark.parametrize("text", ["x", "1.5", "", " 1", "1_0", "٣", "9" * 30])
@pytest.mark.parametrize("name", ["offset", "limit"])
def test_a_number_that_is_none_is_rejected(world: Visible, name: str, text: str) -> None:
    code, reason, message = world.refused(OF_MAIN, **{name: text})
    assert (code, reason) == (400, "BadRequest") and message.startswith(f"{name}=")


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("clusterqueues/nope/pendingworkloads", f'clusterqueue.{GROUP} "nope" not found'),
        ("namespaces/ns/localqueues/nope/pendingworkloads", f'localqueue.{GROUP} "nope" not found'),
        ("namespaces/other/localqueues/lq-main/pendingworkloads", f'localqueue.{GROUP} "lq-main" not found'),
        ("clusterqueues/main", "the server could not find the requested resource"),
        ("clusterqueues", "the server could not find the requested resource"),
        ("clusterqueues/main/runningworkloads", "the server could not find the requested resource"),
        ("namespaces/ns/clusterqueues/main/pendingworkloads", "the server could not find the requested resource"),
    ],
)
def test_what_does_not_exist_is_not_found(world: Visible, path: str, message: str) -> None:
    assert world.refused(f"{BASE}/{path}") == (404, "NotFound", message)


def test_a_workload_for_a_queue_that_is_missing_makes_no_queue(world: Visible) -> None:
    world.submit("early", "later")
    assert world.refused(f"{BASE}/namespaces/ns/localqueues/lq-later/pendingworkloads")[0] == 404


def test_a_local_queue_whose_cluster_queue_is_missing_is_empty(world: Visible) -> None:
    world.add("localQueue", "dangling", clusterQueue="nope")
    assert world.names(f"{BASE}/namespaces/ns/localqueues/dangling/pendingworkloads") == []


def test_a_deleted_queue_is_unknown_even_while_its_quota_is_held(world: Visible) -> None:
    world.fill()
    world.remove("clusterQueue", "main")
    assert world.refused(OF_MAIN)[0] == 404


def test_nothing_can_be_written(world: Visible) -> None:
    assert world.api.answer("POST", OF_MAIN, {}).code == 405


def test_before_there_is_an_engine_the_client_is_told_to_come_back() -> None:
    code, document = VisibilityApi(lambda: None).answer("GET", OF_MAIN, {})
    assert code == 503 and document["reason"] == "ServiceUnavailable"
    assert document["details"]["retryAfterSeconds"] == 1 and "try again" in document["message"]


# --- what is told besides ---------------------------------------------------------------------------------------------


def test_who_holds_the_quota_is_named_largest_first_over_the_whole_cohort() -> None:
    world = Visible()
    world.queue("east", "ring")
    world.queue("west", "ring")
    world.submit("small", "east", cpu=3, createdAt=-100)
    world.submit("big", "west", cpu=5, createdAt=-99)
    world.submit("late", "east", cpu=2, createdAt=-98)
    item = world.item("late", f"{BASE}/clusterqueues/east/pendingworkloads")
    assert item["reason"] == "WaitingForQuota" and "1 more needed" not in item["message"]
    (need,) = item["waitsFor"]
    assert need == {
        "reason": "WaitingForQuota",
        "podSet": "main",
        "flavor": "std",
        "resource": "cpu",
        "needed": "2",
        "free": "0",
        "heldBy": [
            {"namespace": "ns", "name": "big", "clusterQueue": "west", "amount": "5"},
            {"namespace": "ns", "name": "small", "clusterQueue": "east", "amount": "3"},
        ],
    }


def test_many_holders_are_counted(world: Visible) -> None:
    world.change("clusterQueue", "main", groups=[_group(7)])
    for at in range(7):
        world.submit(f"h{at}", "main", createdAt=at - 100)
    world.submit("late", "main", createdAt=-1)
    (need,) = world.item("late")["waitsFor"]
    assert [holder["name"] for holder in need["heldBy"]] == ["h0", "h1", "h2", "h3", "h4"]
    assert need["heldByOthers"] == {"workloads": 2, "amount": "2"}


def test_a_local_queue_does_not_name_workloads_of_other_namespaces(world: Visible) -> None:
    world.engine.set_namespace("secret", {})
    world.stage.apply(named("localQueue", {"name": "theirs", "clusterQueue": "main"}, "secret"))
    fields = {"name": "unannounced", "queue": "theirs", "requests": {"cpu": 3}, "createdAt": -100}
    world.stage.apply(named("workload", fields, "secret"))
    world.settle()
    world.submit("own", "main", createdAt=-90)
    world.submit("late", "main", cpu=2, createdAt=-80)
    (need,) = world.item("late")["waitsFor"]
    assert [holder["name"] for holder in need["heldBy"]] == ["unannounced", "own"]
    (need,) = world.item("late", f"{BASE}/namespaces/ns/localqueues/lq-main/pendingworkloads")["waitsFor"]
    assert [holder["name"] for holder in need["heldBy"]] == ["own"]
    assert need["heldByOthers"] == {"workloads": 1, "amount": "3"}


def test_with_block_admission_those_are_named_whose_pods_are_not_ready() -> None:
    world = Visible(waitForPodsReady={"blockAdmission": True})
    world.submit("starting", "main", createdAt=-100)
    world.submit("late", "main", createdAt=-90)
    (need,) = world.item("late")["waitsFor"]
    assert (need["reason"], [holder["name"] for holder in need["heldBy"]]) == ("WaitingForPodsReady", ["starting"])


def test_who_owns_a_workload_is_reported(world: Visible) -> None:
    world.fill()
    world.wait("a")
    owners = (OwnerReference("batch/v1", "Job", "train", "7", controller=True, block_owner_deletion=True),)
    known = world.workload("a")
    world.engine.upsert(replace(known, metadata=replace(known.metadata, owner_references=owners)))
    (item,) = world.get()["items"]
    (owner,) = item["metadata"]["ownerReferences"]
    assert owner == {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "7"}


# --- discovery --------------------------------------------------------------------------------------------------------


def test_discovery_names_both_versions_the_newer_first(world: Visible) -> None:
    group = world.get(f"/apis/{GROUP}")
    assert (group["kind"], group["preferredVersion"]["version"]) == ("APIGroup", "v1beta2")
    assert [version["version"] for version in group["versions"]] == ["v1beta2", "v1beta1"]
    assert world.get(f"/apis/{GROUP}/v1beta1")["groupVersion"] == f"{GROUP}/v1beta1"
    assert world.refused(f"/apis/{GROUP}/v1")[0] == 404


def test_the_older_version_answers_the_same(world: Visible) -> None:
    world.fill()
    world.wait("a")
    old = world.get(OF_MAIN.replace("v1beta2", "v1beta1"))
    assert old["apiVersion"] == f"{GROUP}/v1beta1" and old["items"] == world.get()["items"]


def test_only_the_subresource_has_a_verb() -> None:
    """kubectl api-resources leaves out what has none."""
    verbs = {one["name"]: one["verbs"] for one in resource_list("v1beta2")["resources"]}
    assert {name for name, found in verbs.items() if found} == {
        "clusterqueues/pendingworkloads",
        "localqueues/pendingworkloads",
    }
    aggregated = aggregated_document()["versions"][0]["resources"]
    told = {one["resource"]: one["verbs"] for one in aggregated}
    told |= {
        f"{one['resource']}/{sub['subresource']}": sub["verbs"] for one in aggregated for sub in one["subresources"]
    }
    assert told == verbs


def named(kind: str, fields: dict[str, Any], namespace: str = "ns") -> Named:
    return Named(kind, fields["name"], namespace, {"namespace": namespace, **fields})


def _group(cpu: int) -> dict[str, Any]:
    return {"resources": ["cpu"], "flavors": [{"name": "std", "quotas": {"cpu": cpu}}]}
