"""deploy/workload-queueing/queue-admission.yaml: the API server holds back what names a queue, as the sandbox does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest

from pilotage.model import queue_admission
from tests.jobs.kinds import definitions
from tests.jobs.live.test_creation import TRAIN_JOBS

from .client import Client, Json, Refused
from .servers import Server, eventually
from .test_shipped_role import ROOT, kubectl

pytestmark = pytest.mark.real_server

POLICIES = ROOT / "deploy" / "workload-queueing" / "queue-admission.yaml"
QUEUED = {"kueue.x-k8s.io/queue-name": "lq"}
POD = {"containers": [{"name": "c", "image": "i"}]}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": POD}
NOTE = {"a": "b"}
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "above", "uid": "1-2-3", "controller": True}


@pytest.fixture(scope="module")
def admin(real_server: Server) -> Iterator[Client]:
    client = Client(real_server.admin)
    kubectl(real_server, "create", "namespace", "queued")  # type: ignore[arg-type]
    kubectl(real_server, "apply", "-f", str(POLICIES))  # type: ignore[arg-type]
    try:
        eventually("the policies are in force", lambda: _gates(_admitted(client, _of("v1", "Pod", **POD))))
        yield client
    finally:
        kubectl(real_server, "delete", "-f", str(POLICIES))  # type: ignore[arg-type]
        # Nobody empties a namespace that is deleted here: what stays would be queued by later tests.
        kubectl(real_server, "delete", "pods", "--all", "-n", "queued", "--force")  # type: ignore[arg-type]
        kubectl(real_server, "delete", "crd", "leaderworkersets.leaderworkerset.x-k8s.io", "--ignore-not-found")  # type: ignore[arg-type]
        kubectl(real_server, "delete", "namespace", "queued", "--wait=false")  # type: ignore[arg-type]


def _of(api_version: str, kind: str, labels: Json | None = None, **spec: Any) -> Json:
    metadata = {"name": "probe", "namespace": "queued", "labels": QUEUED if labels is None else labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _path(obj: Json) -> str:
    root = "/api" if obj["apiVersion"] == "v1" else "/apis"
    return f"{root}/{obj['apiVersion']}/namespaces/queued/{obj['kind'].lower()}s"


def _admitted(client: Client, obj: Json) -> Json:
    return client.request("POST", f"{_path(obj)}?dryRun=All", deepcopy(obj))


def _gates(obj: Json) -> list[str]:
    return [one["name"] for one in obj["spec"].get("schedulingGates") or ()]


@pytest.mark.parametrize("gates", [None, [{"name": "example.com/wait"}], [{"name": "kueue.x-k8s.io/admission"}]])
def test_a_pod_is_gated_once(admin: Client, gates: list[Json] | None) -> None:
    pod = _of("v1", "Pod", **POD, **({"schedulingGates": gates} if gates else {}))
    ours = deepcopy(pod)
    queue_admission.admit(ours)
    assert sorted(_gates(_admitted(admin, pod))) == sorted(_gates(ours))
    assert _gates(_admitted(admin, {**pod, "metadata": {**pod["metadata"], "labels": {}}})) == [
        one["name"] for one in gates or ()
    ]


@pytest.mark.parametrize("spec", [{}, {"suspend": False}, {"suspend": True}])
@pytest.mark.parametrize(
    "metadata", [{}, {"ownerReferences": [OWNER]}, {"ownerReferences": [OWNER], "annotations": {"a": "b"}}]
)
def test_a_job_is_suspended_and_marked_if_another_one_lets_it_go(admin: Client, spec: Json, metadata: Json) -> None:
    template = {"spec": {**POD, "restartPolicy": "Never"}}
    job = _of("batch/v1", "Job", **spec, template=template)
    job["metadata"] |= metadata
    ours = deepcopy(job)
    queue_admission.admit(ours)
    answer = _admitted(admin, job)
    assert answer["spec"]["suspend"] is True is ours["spec"]["suspend"]
    assert answer["metadata"].get("annotations") == ours["metadata"].get("annotations")
    free = _admitted(admin, {**job, "metadata": {**job["metadata"], "labels": {"a": "b"}}})
    assert free["spec"]["suspend"] is spec.get("suspend", False)


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
@pytest.mark.parametrize("labels", [QUEUED, {**QUEUED, "kueue.x-k8s.io/priority-class": "high"}, {"a": "b"}])
def test_what_makes_pods_hands_them_its_queue(admin: Client, kind: str, labels: Json) -> None:
    name = {"serviceName": "web"} if kind == "StatefulSet" else {}
    obj = _of("apps/v1", kind, labels, selector={"matchLabels": {"app": "web"}}, template=TEMPLATE, **name)
    ours = deepcopy(obj)
    queue_admission.admit(ours)
    answer = _admitted(admin, obj)
    assert answer["spec"]["template"]["metadata"]["labels"] == ours["spec"]["template"]["metadata"]["labels"]


@pytest.mark.parametrize("metadata", [{}, {"metadata": {"labels": {"a": "b"}}}])
def test_the_jobs_of_a_cron_job_get_its_queue(admin: Client, metadata: Json) -> None:
    template = {**metadata, "spec": {"template": {"spec": {**POD, "restartPolicy": "Never"}}}}
    obj = _of(
        "batch/v1",
        "CronJob",
        {**QUEUED, "kueue.x-k8s.io/priority-class": "high"},
        schedule="* * * * *",
        jobTemplate=template,
    )
    ours = deepcopy(obj)
    queue_admission.admit(ours)
    answer = _admitted(admin, obj)
    assert answer["spec"]["jobTemplate"]["metadata"]["labels"] == ours["spec"]["jobTemplate"]["metadata"]["labels"]


def test_a_train_job_with_a_queue_is_refused_in_our_words(admin: Client) -> None:
    definitions_path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    admin.request("POST", definitions_path, TRAIN_JOBS)
    job = _of("trainer.kubeflow.org/v1alpha1", "TrainJob")

    def refused() -> str:
        try:
            _admitted(admin, job)
        except Refused as refused:
            return str(refused) if refused.code == 403 else ""
        return ""

    try:
        assert queue_admission.refusal(job) in eventually("it is refused", refused)
        job["metadata"]["labels"] = {}
        assert _admitted(admin, job)["kind"] == "TrainJob"
    finally:
        admin.request("DELETE", f"{definitions_path}/{TRAIN_JOBS['metadata']['name']}")


@pytest.mark.parametrize("leader", [None, {"spec": POD}, TEMPLATE])
@pytest.mark.parametrize("worker", [{"spec": POD}, TEMPLATE])
def test_leaders_and_workers_get_the_queue_of_their_set(admin: Client, leader: Json | None, worker: Json) -> None:
    definition = definitions()["LeaderWorkerSet"]
    with suppress(Refused):
        admin.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    templates = {"size": 4, "workerTemplate": worker, **({} if leader is None else {"leaderTemplate": leader})}
    obj = _of("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", leaderWorkerTemplate=templates)
    ours = deepcopy(obj)
    queue_admission.admit(ours)

    def answer() -> Json | None:
        try:
            return _admitted(admin, obj)
        except Refused as refused:
            if refused.code in (404, 503):  # the kind was made a moment ago
                return None
            raise

    assert eventually("the kind is known", answer)["spec"] == ours["spec"]


def test_of_24_pods_that_are_not_gated_none_can_be_bound(admin: Client) -> None:
    for at in range(24):
        pod = _of("v1", "Pod", **POD)
        pod["metadata"]["name"] = name = f"p{at}"
        admin.request("POST", _path(pod), pod)
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"name": "n"}}
        with pytest.raises(Refused, match="schedulingGates"):
            admin.request("POST", f"{_path(pod)}/{name}/binding", binding)
