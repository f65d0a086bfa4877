"""All pages of a living service, asked without a socket."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pilotage.assembly import SchedulerOptions
from pilotage.clock import SystemClock
from pilotage.config.kinds import KubeSchedulerConfiguration, SchedulerConfiguration
from pilotage.framework.plugin_files import load_plugin_files
from pilotage.observe.skipped_objects import SkippedObjects
from pilotage.serve.component_pages import About, statusz
from pilotage.serve.page import PageAnswer, PageRequest
from pilotage.serve.pages import SiteFacts, build_site
from pilotage.serve.site import Site

from .replicas import Replica, World, world

KUBE_SCHEDULERS = {
    "/healthz",
    "/livez",
    "/readyz",
    "/metrics",
    "/metrics/resources",
    "/metrics/slis",
    "/configz",
    "/flagz",
    "/statusz",
    "/debug/flags/v",
}
LIGHTS = Path(__file__).parents[1] / "data" / "configs" / "blinking_lights.py"
FLAGS = {"secure-port": "10259", "config": ""}


class Served:
    def __init__(self, cluster: World, replica: Replica, configuration: SchedulerConfiguration) -> None:
        self.cluster = cluster
        self.replica = replica
        about = About("0.1.0", "1.37", "3.11", cluster.clock.time())
        metrics = replica.process.scheduler.metrics
        facts = SiteFacts(about, configuration, SchedulerOptions(), FLAGS, metrics)
        self.site: Site = build_site(replica.service, cluster.clock, facts)

    def get(self, path: str, accept: str = "", **query: str) -> PageAnswer:
        asked = {name: [value] for name, value in query.items()}
        return self.site.answer(PageRequest(path, query=asked, headers={"accept": accept}))

    def text(self, path: str, **query: str) -> str:
        return self.get(path, **query).body.decode()

    def json(self, path: str, **query: str) -> Any:
        return json.loads(self.get(path, "application/json", **query).body)


@asynccontextmanager
async def served(configuration: SchedulerConfiguration | None = None) -> AsyncIterator[Served]:
    async with world() as cluster:
        replica, _ = await cluster.start("one")
        yield Served(cluster, replica, configuration or SchedulerConfiguration())


async def test_every_page_that_is_listed_answers() -> None:
    async with served() as service:
        listed = service.json("/statusz")["paths"]
        assert listed == service.site.paths and set(listed) >= KUBE_SCHEDULERS
        codes = {path: service.get(path).status for path in listed}
        asks_for_more = {"/debug/explain": 400, "/debug/timeline": 400, "/debug/flags/v": 400}
        assert codes == {path: asks_for_more.get(path, 200) for path in listed}


async def test_readiness_follows_the_life_of_the_service() -> None:
    async with world() as cluster:
        replica = Replica(cluster.cluster, cluster.clock, "late")
        service = Served(cluster, replica, SchedulerConfiguration())
        unready = service.get("/readyz")
        assert unready.status == 500 and b"[-]sched-handler-sync failed" in unready.body
        assert b"pods" in service.get("/readyz/sched-handler-sync").body
        assert service.text("/livez") == "ok"
        running, _ = await cluster.start("one")
        service = Served(cluster, running, SchedulerConfiguration())
        assert service.text("/readyz") == "ok"
        running.service.stop()
        assert b"[-]shutdown failed" in service.get("/readyz").body and service.text("/livez") == "ok"


async def test_leader_that_is_stuck_long_after_its_lease_is_unhealthy() -> None:
    async with served() as service:
        service.replica.wire.is_cut = True
        renewed = service.replica.elector.election.renewed_at
        assert renewed is not None and service.text("/healthz") == "ok"
        # As if the process had not noticed: nothing else may run meanwhile.
        service.cluster.clock._now += 36.0
        assert b"[-]leaderElection failed" in service.get("/healthz").body
        service.cluster.clock._now -= 36.0
        service.replica.wire.is_cut = False


async def test_status_flags_and_configuration() -> None:
    async with served() as service:
        await service.cluster.clock.advance(3723.0)
        assert service.text("/statusz").startswith("kube-scheduler statusz\n")
        assert "Up: 1 hr 02 min 03 sec" in service.text("/statusz")
        assert service.json("/statusz")["uptimeSeconds"] == 3723
        assert service.text("/flagz").startswith("kube-scheduler flagz\n") and "secure-port=10259" in service.text(
            "/flagz"
        )
        assert service.json("/flagz")["flags"] == FLAGS
        component = service.json("/configz")["componentconfig"]
        assert (
            component["kind"] == "KubeSchedulerConfiguration" and component["leaderElection"]["leaseDuration"] == "15s"
        )
        assert service.json("/configz")["pilotage"]["cycleBudget"] == "500ms"


async def test_queue_cache_and_reasons() -> None:
    async with served() as service:
        await service.cluster.create_pods("fits")
        await service.cluster.create_pods("giant", cpu="999")
        await service.cluster.clock.advance(2.0)
        assert [pod["name"] for pod in service.json("/debug/queue")["unschedulable"]] == ["giant"]
        cache = service.json("/debug/cache")
        assert cache["counts"] == {"nodes": 3, "pods": 2, "assumed": 0}
        assert sum(node["pods"] for node in cache["nodes"]) == 1
        assert sum(node["requested"]["cpu"] for node in cache["nodes"]) == 10
        assert len(service.json("/debug/cache", limit="1")["nodes"]) == 1
        report = service.json("/debug/explain", pod="giant")
        assert not report["fits"] and report["queue"]["place"] == "unschedulable"
        assert service.json("/debug/explain", pod="fits")["assignedTo"]
        assert service.get("/debug/explain", pod="nobody").status == 404
        assert service.get("/debug/explain", pod="giant", node="nowhere").status == 404
        service.replica.process.scheduler.cluster.check()


async def test_reasons_of_a_pod_group() -> None:
    async with served() as service:
        policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        service.cluster.cluster.api.create(
            "podgroups.scheduling.k8s.io", "default", {"metadata": {"name": "g"}, "spec": policy}
        )
        await service.cluster.clock.advance(1.0)
        for name in ("podgroup/g", "pg/g"):
            report = service.json("/debug/explain", pod=name)
            assert report["state"] == "NoPods" and report["podGroup"] == "default/g"
        spec = {"containers": [{"name": "c", "image": "i"}], "schedulingGroup": {"podGroupName": "g"}}
        service.cluster.cluster.api.create("pods", "default", {"metadata": {"name": "one"}, "spec": spec})
        await service.cluster.clock.advance(1.0)
        report = service.json("/debug/explain", pod="podgroup/g")
        assert report["state"] == "Gated" and report["queue"]["place"] == "gated"
        assert service.json("/debug/explain", pod="one")["podGroup"]["podGroup"] == "default/g"
        assert service.get("/debug/explain", pod="podgroup/none").status == 404


async def test_resources_of_pods_are_reported_by_the_leader_only() -> None:
    async with served() as service:
        standby, _ = await service.cluster.start("two")
        await service.cluster.create_pods("p", cpu="1500m", limits={"cpu": "2"})
        await service.cluster.clock.advance(2.0)
        told = [line for line in service.text("/metrics/resources").splitlines() if not line.startswith("#")]
        requests, limits = told
        assert requests.startswith("kube_pod_resource_request{") and requests.endswith(" 1.5")
        assert limits.startswith("kube_pod_resource_limit{") and limits.endswith(" 2.0")
        assert all('pod="p"' in line and 'resource="cpu"' in line and 'unit="cores"' in line for line in told)
        other = Served(service.cluster, standby, SchedulerConfiguration())
        assert "kube_pod_resource_request" not in other.text("/metrics/resources")


async def test_metrics_tell_of_health_and_can_be_reset() -> None:
    async with served() as service:
        await service.cluster.create_pods("p")
        await service.cluster.clock.advance(2.0)
        counted = 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1.0'
        assert counted in service.text("/metrics")
        assert 'kubernetes_healthcheck{name="sched-handler-sync",type="readyz"} 1.0' in service.text("/metrics/slis")
        reset = service.site.answer(PageRequest("/metrics", "DELETE"))
        assert reset.status == 200 and counted not in service.text("/metrics")
        assert service.site.answer(PageRequest("/metrics", "POST")).status == 405


@pytest.fixture
def kept_level() -> Iterator[None]:
    before = logging.getLogger().level
    yield
    logging.getLogger().setLevel(before)


async def test_verbosity_can_be_changed_unless_profiling_is_off(kept_level: None) -> None:
    async with served() as service:
        put = PageRequest("/debug/flags/v", "PUT", body=b"4")
        assert service.site.answer(put).status == 200 and logging.getLogger().level == logging.DEBUG
        assert service.site.answer(PageRequest("/debug/flags/v", "PUT", body=b"much")).status == 400
    async with served(SchedulerConfiguration(KubeSchedulerConfiguration(enable_profiling=False))) as service:
        assert service.site.answer(put).status == 404


def test_the_status_names_origin_and_hash_of_every_plugin_from_outside() -> None:
    (plugin,) = load_plugin_files([LIGHTS])
    page = statusz(About("0.1.0", "1.37", "3.11", 0.0), SystemClock(), lambda: [], SkippedObjects(), [plugin])
    shown = page(PageRequest("/statusz")).body.decode()
    assert f"Plugin: BlinkingLights from {LIGHTS} (sha256 {plugin.sha256})\n" in shown and len(plugin.sha256) == 64
    told = json.loads(page(PageRequest("/statusz", headers={"accept": "application/json"})).body)
    assert told["plugins"] == [{"name": "BlinkingLights", "origin": str(LIGHTS), "sha256": plugin.sha256}]
