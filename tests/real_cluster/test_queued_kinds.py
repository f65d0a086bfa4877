"""`pilotage run --workload-queueing` and the kinds of jobs besides Job, at both servers.

At the real one the policies of deploy/workload-queueing hold them back. The test plays their operators.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pilotage.jobs.adapters.kinds.pods_in_spec import at
from pilotage.model.custom_jobs import plural_of
from tests.jobs.kind_samples import SAMPLES, Sample
from tests.jobs.kinds import definitions

from .client import MERGE, Client, Json, Refused
from .queueing_kinds import GROUP, queueing_kinds
from .servers import Server, eventually
from .test_queue_admission import POLICIES
from .test_shipped_role import kubectl
from .test_workload_queueing import HEAD, conditions
from .world import World

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS = ("JobSet", "RayJob", "RayCluster", "PyTorchJob", "MPIJob", "SparkApplication", "AppWrapper")


class Playing:
    """The jobs of one kind, and their operator."""

    def __init__(self, api: Client, sample: Sample) -> None:
        self.api = api
        self.sample = sample
        self.jobs = f"/apis/{sample.api_version}/namespaces/default/{plural_of(sample.kind)}"

    def install(self) -> None:
        self.api.request("POST", DEFINITIONS, definitions()[self.sample.kind])
        eventually("the kind is served", self._is_served)

    def uninstall(self) -> None:
        name = definitions()[self.sample.kind]["metadata"]["name"]
        self.api.request("DELETE", f"{DEFINITIONS}/{name}")

    def submitted(self) -> Json | None:
        try:
            return self.api.request("POST", self.jobs, self.sample.job())
        except Refused as refused:
            if refused.code == 503:
                return None
            raise

    def job(self) -> Json:
        return self.api.request("GET", f"{self.jobs}/sample")

    def is_suspended(self) -> bool:
        return at(self.job()["spec"], self.sample.switch) is True

    def report(self, status: Json) -> None:
        self.api.request("PATCH", f"{self.jobs}/sample/status", {"status": status}, MERGE)

    def _is_served(self) -> bool:
        try:
            self.api.request("GET", self.jobs)
        except Refused:
            return False
        return True


@pytest.fixture(params=KINDS)
def play(request: pytest.FixtureRequest, server: Server, world: World) -> Iterator[Playing]:
    with queueing_kinds(server) as api:
        playing = Playing(api, SAMPLES[request.param])
        playing.install()
        if server.name == "real":
            kubectl(server, "apply", "-f", str(POLICIES))  # type: ignore[arg-type]
        world.start_scheduler("--workload-queueing", "--leader-elect=false", kubeconfig=server.admin)
        create_queue(api)
        yield playing
        world.end_schedulers()
        if server.name == "real":
            kubectl(server, "delete", "-f", str(POLICIES))  # type: ignore[arg-type]
        playing.uninstall()


def create_queue(api: Client) -> None:
    quotas: list[Json] = [{"name": "cpu", "nominalQuota": 20}, {"name": "memory", "nominalQuota": "1Ti"}]
    group = {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "spot", "resources": quotas}]}
    flavor = {"nodeLabels": {"pool": "spot"}, "tolerations": [{"key": "spot", "operator": "Exists"}]}
    for plural, kind, name, spec in (
        ("resourceflavors", "ResourceFlavor", "spot", flavor),
        ("clusterqueues", "ClusterQueue", "cq", {"namespaceSelector": {}, "resourceGroups": [group]}),
        ("namespaces/default/localqueues", "LocalQueue", "lq", {"clusterQueue": "cq"}),
    ):
        api.request("POST", f"{GROUP}/{plural}", {**HEAD, "kind": kind, "metadata": {"name": name}, "spec": spec})


def pool_at(spec: Any, path: tuple[str | int, ...]) -> str:
    return str((at(spec, path) or {}).get("pool", ""))


def test_it_is_held_back_started_on_its_flavor_evicted_and_ended(play: Playing) -> None:
    api, sample = play.api, play.sample
    original = eventually("the policies know the kind", play.submitted)["spec"]
    eventually("it is started", lambda: at(play.job()["spec"], sample.switch) is False)
    assert {pool_at(play.job()["spec"], path) for path in sample.selectors} == {"spot"}
    play.report(sample.running)
    eventually("it is ready", lambda: conditions(api).get("PodsReady") == "True/Started")
    queue = f"{GROUP}/clusterqueues/cq"
    api.request("PATCH", queue, {"spec": {"stopPolicy": "HoldAndDrain"}}, MERGE)
    eventually("it is suspended", play.is_suspended)
    assert conditions(api)["QuotaReserved"].startswith("True/"), "its pods are still there"
    play.report(sample.stopped)
    eventually("its quota is free", lambda: conditions(api)["QuotaReserved"].startswith("False/"))
    if sample.kind != "AppWrapper":  # there it is written beside
        eventually(
            "it is as it was",
            lambda: (
                [at(play.job()["spec"], path) for path in sample.selectors]
                == [at(original, path) for path in sample.selectors]
            ),
        )
    api.request("PATCH", queue, {"spec": {"stopPolicy": "None"}}, MERGE)
    eventually("it is started again", lambda: not play.is_suspended())
    if sample.finished:
        play.report(sample.finished)
        eventually("it has ended", lambda: conditions(api).get("Finished") == "True/Succeeded")
    api.request("DELETE", f"{play.jobs}/sample")
    eventually("its workload went with it", lambda: not api.request("GET", f"{GROUP}/workloads")["items"])
