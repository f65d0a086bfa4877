"""A plugin with an API call type of its own, as docs/contributing/add-an-api-call.md tells, in a real sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import msgspec
import pytest

from pilotage.api import (
    ApiCall,
    ApiWriter,
    CycleState,
    Ending,
    Handle,
    Lane,
    Outcome,
    Plugin,
    PodCondition,
    PostBind,
    Rejection,
    Relevance,
    Reserve,
    Why,
)
from pilotage.assembly import SchedulerProcess, options_from_configuration
from pilotage.clock import rfc3339
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.kube.client import KubeClient
from pilotage.model import KINDS, Pod
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.sandbox.faults import parse_fault
from pilotage.testing import VirtualClock, node, pod


class QuotaNote(ApiCall):
    """Write into a pod's annotations which quota it was counted against."""

    kind, lane, relevance = "quota_note", Lane.STATUS, Relevance.STATUS + 1
    is_repeatable = True

    def __init__(self, pod: Pod, quota: str) -> None:
        self._pod, self._quota = pod, quota

    @property
    def object_key(self) -> str:
        return f"{self._pod.uid}/quota-note"

    async def perform(self, writer: ApiWriter) -> None:
        patch = {"metadata": {"uid": self._pod.uid, "annotations": {"example.com/quota": self._quota}}}
        await writer.patch(KINDS["pods"], self._pod.namespace, self._pod.name, msgspec.json.encode(patch))


class Accountant(Plugin, Reserve, PostBind):
    """Notes the quota twice, so that the first note is never sent, and tells in the status that it did."""

    outcomes: ClassVar[list[Outcome]] = []

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        self._handle.submit(QuotaNote(pod, "a guess"), self.outcomes.append)
        self._handle.submit(QuotaNote(pod, "team-a"), self.outcomes.append)
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        pass

    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        now = rfc3339(self._handle.clock.time())
        self._handle.patch_status(pod, PodCondition("example.com/Counted", "True", "Quota", "team-a", 0, now))


@asynccontextmanager
async def office(*faults: str) -> AsyncIterator[tuple[EmbeddedCluster, SchedulerProcess, VirtualClock]]:
    Accountant.outcomes.clear()
    clock, rules = VirtualClock(), [parse_fault(text) for text in faults]
    async with EmbeddedCluster.running(
        EmbeddedOptions(nodes=0, port=None, is_alive=False, faults=rules), clock, seeded(1)
    ) as cluster:
        cluster.api.create("nodes", "", node("a").cpu("4").json())
        cluster.api.create("pods", "default", pod("p").requests(cpu="1").json())
        options = options_from_configuration(SchedulerConfiguration(), [Accountant])
        process = SchedulerProcess(KubeClient(cluster.transport()), clock, seeded(1), options)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(process.run())
            await clock.advance(5)
            yield cluster, process, clock
            running.cancel()


def written(cluster: EmbeddedCluster) -> tuple[str, list[str]]:
    found: dict[str, Any] = cluster.api.get("pods", "default", "p")
    types = [condition["type"] for condition in found["status"]["conditions"]]
    return found["metadata"].get("annotations", {}).get("example.com/quota", ""), types


@pytest.mark.parametrize("fault", ["latency=1ms", "500,every=2", "reset-after,p=0.5", "429=1s,times=2"])
async def test_a_call_of_a_plugin_is_merged_sent_and_tried_again_like_any_other(fault: str) -> None:
    async with office(fault) as (cluster, process, clock):
        await clock.advance(60)
        quota, types = written(cluster)
        assert quota == "team-a" and "example.com/Counted" in types
        assert cluster.api.get("pods", "default", "p")["spec"]["nodeName"] == "a"
        overwritten, done = Accountant.outcomes[:2]
        assert (overwritten.ending, overwritten.why, done.ending) == (Ending.OVERWRITTEN, Why.NEWER_CAME, Ending.DONE)
        assert process.scheduler.dispatcher.queue.types.relevances()["quota_note"] == 11
        assert process.scheduler.metrics.async_api_call_execution_total.value("quota_note", "success") == 1
        assert process.scheduler.metrics.pending_async_api_calls.value("quota_note") == 0


async def test_what_a_plugin_writes_into_a_status_is_seen_at_once_and_taken_back_if_it_fails() -> None:
    async with office("500,resource=pods/status") as (cluster, process, clock):
        seen: Pod = process.scheduler.cluster.objects("Pod")["default/p"]
        assert (
            seen.status.condition("example.com/Counted") is not None
            and "example.com/Counted" not in written(cluster)[1]
        )
        await clock.advance(700)
        seen = process.scheduler.cluster.objects("Pod")["default/p"]
        assert seen.status.condition("example.com/Counted") is None, "ten minutes are enough"
