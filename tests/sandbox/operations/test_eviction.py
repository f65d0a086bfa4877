from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.api_world import MERGE, PODS, World, labelled, pod

PDBS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."


@pytest.fixture
def world() -> World:
    return World()


def running(world: World, name: str = "p", *, ready: bool = True) -> None:
    world.ok("POST", PODS, labelled(pod(name), app="web"))
    world.api.bind("default", name, "node-1")
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    status = {"phase": "Running", "conditions": conditions}
    world.ok("PATCH", f"{PODS}/{name}/status", {"status": status}, content_type=MERGE)


def budget(world: World, name: str = "b", *, spec: dict[str, Any] | None = None, **status: int) -> None:
    selector = {"matchLabels": {"app": "web"}}
    body = {"metadata": {"name": name}, "spec": {"selector": selector, "minAvailable": 1, **(spec or {})}}
    world.ok("POST", PDBS, body)
    counted = {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, **status}
    world.ok("PATCH", f"{PDBS}/{name}/status", {"status": counted}, content_type=MERGE)


def eviction(name: str = "p", **options: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return {**body, "deleteOptions": options} if options else body


def is_terminating(world: World, name: str = "p") -> bool:
    return "deletionTimestamp" in world.ok("GET", f"{PODS}/{name}")["metadata"]


def test_a_pod_without_a_budget_is_evicted(world: World) -> None:
    running(world)
    assert world.send("POST", f"{PODS}/p/eviction", eviction()).status == 201
    evicted = world.ok("GET", f"{PODS}/p")
    assert "deletionTimestamp" in evicted["metadata"]
    [target] = [c for c in evicted["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    assert (target["status"], target["reason"]) == ("True", "EvictionByEvictionAPI")


def test_an_eviction_takes_one_of_the_allowed_disruptions(world: World) -> None:
    running(world, "p")
    running(world, "q")
    budget(world, disruptionsAllowed=1)
    world.ok("POST", f"{PODS}/p/eviction", eviction())
    status = world.ok("GET", f"{PDBS}/b")["status"]
    assert status["disruptionsAllowed"] == 0 and list(status["disruptedPods"]) == ["p"]
    refused = world.refused("POST", f"{PODS}/q/eviction", eviction("q"))
    assert (refused["code"], refused["reason"], refused["message"]) == (429, "TooManyRequests", REFUSED)
    assert not is_terminating(world, "q")


def test_the_rejection_says_which_budget_needs_what(world: World) -> None:
    running(world)
    budget(world, currentHealthy=1, desiredHealthy=1)
    [cause] = world.refused("POST", f"{PODS}/p/eviction", eviction())["details"]["causes"]
    assert cause == {
        "reason": "DisruptionBudget",
        "message": "The disruption budget b needs 1 healthy pods and has 1 currently",
    }


def test_a_budget_that_was_not_counted_yet_allows_nothing_for_now(world: World) -> None:
    running(world)
    budget(world, observedGeneration=0, disruptionsAllowed=5)
    answer = world.send("POST", f"{PODS}/p/eviction", eviction())
    assert answer.status == 429 and dict(answer.headers)["retry-after"] == "10"


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_a_pod_that_does_no_work_needs_no_budget(world: World, phase: str) -> None:
    running(world)
    budget(world)
    world.ok("PATCH", f"{PODS}/p/status", {"status": {"phase": phase}}, content_type=MERGE)
    world.ok("POST", f"{PODS}/p/eviction", eviction())


@pytest.mark.parametrize(
    ("policy", "healthy", "goes"),
    [("AlwaysAllow", 0, True), ("IfHealthyBudget", 1, True), ("IfHealthyBudget", 0, False)],
)
def test_an_unready_pod_goes_by_policy(world: World, policy: str, healthy: int, goes: bool) -> None:
    running(world, ready=False)
    budget(world, spec={"unhealthyPodEvictionPolicy": policy}, currentHealthy=healthy, desiredHealthy=1)
    answer = world.send("POST", f"{PODS}/p/eviction", eviction())
    assert answer.status == (201 if goes else 429)
    assert world.ok("GET", f"{PDBS}/b")["status"]["disruptionsAllowed"] == 0


def test_two_budgets_for_one_pod_are_too_many(world: World) -> None:
    running(world)
    budget(world, "a", disruptionsAllowed=1)
    budget(world, "b", disruptionsAllowed=1)
    status = world.refused("POST", f"{PODS}/p/eviction", eviction())
    assert status["code"] == 500 and "more than one PodDisruptionBudget" in status["message"]


def test_delete_options_are_honoured(world: World) -> None:
    running(world)
    status = world.refused("POST", f"{PODS}/p/eviction", eviction(preconditions={"uid": "other"}))
    assert status["code"] == 409
    world.ok("POST", f"{PODS}/p/eviction", eviction(gracePeriodSeconds=7))
    assert world.ok("GET", f"{PODS}/p")["metadata"]["deletionGracePeriodSeconds"] == 7


def test_a_dry_run_takes_nothing(world: World) -> None:
    running(world)
    budget(world, disruptionsAllowed=1)
    revision = world.store.revision
    world.ok("POST", f"{PODS}/p/eviction", eviction(), query={"dryRun": "All"})
    assert world.store.revision == revision


@pytest.mark.parametrize(
    ("body", "code"), [(eviction("other"), 400), ({"deleteOptions": []}, 400), ({"metadata": "p"}, 400), ({}, 201)]
)
def test_odd_bodies(world: World, body: Any, code: int) -> None:
    running(world)
    assert world.send("POST", f"{PODS}/p/eviction", body).status == code


def test_a_missing_pod_is_404(world: World) -> None:
    assert world.refused("POST", f"{PODS}/p/eviction", eviction())["code"] == 404
