"""`pilotage run --workload-queueing` at both servers: what the real one allows to be done to a Job is what counts.

Nobody runs Jobs here; the test plays the Job controller.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from .client import MERGE, Client, Json, Refused
from .queueing_kinds import GROUP, queueing_kinds
from .servers import Server, eventually
from .world import World

JOBS = "/apis/batch/v1/namespaces/default/jobs"
HEAD = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
STARTED = "2026-01-01T00:00:00Z"


@pytest.fixture
def api(server: Server, world: World) -> Iterator[Client]:
    with queueing_kinds(server) as client:
        world.start_scheduler("--workload-queueing", "--leader-elect=false", kubeconfig=server.admin)
        create_queue(client)
        yield client
        world.end_schedulers()
        for one in client.request("GET", JOBS)["items"]:
            client.request("DELETE", f"{JOBS}/{one['metadata']['name']}", {"propagationPolicy": "Background"})


def create_queue(client: Client) -> None:
    toleration = {"key": "spot", "operator": "Exists"}
    flavor = {"nodeLabels": {"pool": "spot"}, "tolerations": [toleration]}
    quota = {"name": "cpu", "nominalQuota": 2}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "spot", "resources": [quota]}]}
    queue = {"namespaceSelector": {}, "resourceGroups": [group]}
    for plural, kind, name, spec in (
        ("resourceflavors", "ResourceFlavor", "spot", flavor),
        ("clusterqueues", "ClusterQueue", "cq", queue),
        ("namespaces/default/localqueues", "LocalQueue", "lq", {"clusterQueue": "cq"}),
    ):
        client.request("POST", f"{GROUP}/{plural}", {**HEAD, "kind": kind, "metadata": {"name": name}, "spec": spec})


def job(name: str, **spec: Any) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [container], "restartPolicy": "Never", "nodeSelector": {"arch": "amd64"}},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "lq"}},
        "spec": {"parallelism": 2, "completions": 2, "template": template, **spec},
    }


def found(api: Client, name: str) -> Json:
    return api.request("GET", f"{JOBS}/{name}")


def is_suspended(api: Client, name: str) -> bool:
    return found(api, name)["spec"].get("suspend") is True


def say(api: Client, name: str, **status: Any) -> None:
    """What the Job controller would say."""
    api.request("PATCH", f"{JOBS}/{name}/status", {"status": status}, MERGE)


def conditions(api: Client) -> dict[str, str]:
    """Of the only workload."""
    items = api.request("GET", f"{GROUP}/workloads")["items"]
    told = items[0].get("status", {}).get("conditions", []) if len(items) == 1 else []
    return {one["type"]: f"{one['status']}/{one['reason']}" for one in told}


def test_a_job_is_started_on_its_flavor_and_restored_when_it_is_evicted(api: Client) -> None:
    original = api.request("POST", JOBS, job("train"))["spec"]["template"]
    eventually("it is started", lambda: "pool" in found(api, "train")["spec"]["template"]["spec"]["nodeSelector"])
    steered = found(api, "train")["spec"]
    assert steered["suspend"] is False
    assert steered["template"]["spec"]["nodeSelector"] == {"arch": "amd64", "pool": "spot"}
    assert [one["key"] for one in steered["template"]["spec"]["tolerations"]] == ["spot"]
    say(api, "train", active=2, ready=2, startTime=STARTED)
    eventually("it is ready", lambda: conditions(api).get("PodsReady") == "True/Started")
    queue = f"{GROUP}/clusterqueues/cq"
    api.request("PATCH", queue, {"spec": {"stopPolicy": "HoldAndDrain"}}, MERGE)
    eventually("it is suspended", lambda: is_suspended(api, "train"))
    assert conditions(api)["Evicted"] == "True/ClusterQueueStopped"
    assert conditions(api)["QuotaReserved"].startswith("True/"), "its pods are still there"
    say(api, "train", active=0, ready=0)
    eventually("its quota is free", lambda: conditions(api)["QuotaReserved"].startswith("False/"))
    eventually("it is as it was", lambda: found(api, "train")["spec"]["template"] == original)
    assert "startTime" not in found(api, "train")["status"]
    api.request("PATCH", queue, {"spec": {"stopPolicy": "None"}}, MERGE)
    eventually("it is started again", lambda: not is_suspended(api, "train"))


def test_a_job_that_does_not_fit_is_suspended_and_told_why(api: Client) -> None:
    api.request("POST", JOBS, job("wide", parallelism=3, completions=3))
    eventually("it is suspended", lambda: is_suspended(api, "wide"))
    eventually("it is told", lambda: conditions(api).get("QuotaReserved") == "False/ExceedsMaxQuota")


def test_a_finished_job_frees_its_quota_for_the_next(api: Client) -> None:
    api.request("POST", JOBS, job("first", suspend=True))
    eventually("the first runs", lambda: not is_suspended(api, "first"))
    api.request("POST", JOBS, job("second", suspend=True))
    say(api, "first", active=0, ready=0, succeeded=2, startTime=STARTED, completionTime=STARTED, conditions=[
        {"type": "SuccessCriteriaMet", "status": "True", "reason": "CompletionsReached", "message": "done",
         "lastProbeTime": STARTED, "lastTransitionTime": STARTED},
        {"type": "Complete", "status": "True", "reason": "CompletionsReached", "message": "done",
         "lastProbeTime": STARTED, "lastTransitionTime": STARTED},
    ])  # fmt: skip
    eventually("the second runs", lambda: not is_suspended(api, "second"))


def test_a_limit_range_stops_a_job_until_it_is_gone(api: Client) -> None:
    ranges = "/api/v1/namespaces/default/limitranges"
    limits = [{"type": "Container", "max": {"cpu": "500m"}}]
    body = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "bounds"}, "spec": {"limits": limits}}
    api.request("POST", ranges, body)
    try:
        api.request("POST", JOBS, job("wide", suspend=True))
        eventually("it is told", lambda: conditions(api).get("QuotaReserved") == "False/Misconfigured")
        assert is_suspended(api, "wide")
    finally:
        api.request("DELETE", f"{ranges}/bounds")
    eventually("it is started", lambda: not is_suspended(api, "wide"))


def test_a_job_waits_for_its_runtime_class(api: Client) -> None:
    classes = "/apis/node.k8s.io/v1/runtimeclasses"
    boxed = job("boxed", suspend=True)
    boxed["spec"]["template"]["spec"]["runtimeClassName"] = "kata"
    api.request("POST", JOBS, boxed)
    eventually("it is told", lambda: conditions(api).get("QuotaReserved") == "False/Misconfigured")
    head = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}, "handler": "box"}
    api.request("POST", classes, {**head, "overhead": {"podFixed": {"cpu": "500m"}}})
    try:
        eventually("it counts", lambda: conditions(api).get("QuotaReserved") == "False/ExceedsMaxQuota")
    finally:
        api.request("DELETE", f"{classes}/kata")


def test_a_deleted_queue_and_its_flavor_stay_until_they_are_not_needed(api: Client) -> None:
    queue, flavor = f"{GROUP}/clusterqueues/cq", f"{GROUP}/resourceflavors/spot"
    api.request("POST", JOBS, job("train", suspend=True))
    eventually("it is started", lambda: not is_suspended(api, "train"))
    for path in (queue, flavor):
        eventually("it is held", lambda path=path: bool(api.request("GET", path)["metadata"].get("finalizers")))
        api.request("DELETE", path, {})

    def is_terminating() -> bool:
        told = api.request("GET", queue).get("status", {}).get("conditions") or [{}]
        return told[0].get("reason") == "Terminating"

    eventually("the queue says that it is going", is_terminating)
    assert not is_suspended(api, "train") and api.request("GET", flavor)["metadata"]["deletionTimestamp"]
    api.request("DELETE", f"{JOBS}/train", {"propagationPolicy": "Background"})
    for workload in api.request("GET", f"{GROUP}/namespaces/default/workloads")["items"]:
        # Nobody collects garbage at a bare API server; in the sandbox somebody does, perhaps before us.
        path = f"{GROUP}/namespaces/default/workloads/{workload['metadata']['name']}"
        if not _is_gone(api, path):
            with suppress(Refused):
                api.request("DELETE", path, {})
    eventually("the queue is gone", lambda: _is_gone(api, queue))
    eventually("the flavor is gone", lambda: _is_gone(api, flavor))


def _is_gone(api: Client, path: str) -> bool:
    try:
        api.request("GET", path)
    except Refused as refused:
        return refused.code == 404
    return False
