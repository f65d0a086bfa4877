"""The visibility API of a living cluster: through the API server, from the leader and from a standby."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pilotage.cli.sandbox_pages import visibility_group
from pilotage.jobs.visibility import VisibilityApi
from pilotage.sandbox.http.exchange import Request, ServerResponse

from .world import QueueingWorld, job, living, priority_class, queue

OF_CQ = "/apis/visibility.kueue.x-k8s.io/v1beta2/clusterqueues/cq/pendingworkloads"


def visibility(cluster: QueueingWorld) -> VisibilityApi:
    assert cluster.process.queueing is not None
    return cluster.process.queueing.visibility


def owners(document: dict[str, Any]) -> list[str]:
    return [item["metadata"]["ownerReferences"][0]["name"] for item in document["items"]]


async def test_the_api_server_answers_from_the_memory_of_the_engine() -> None:
    async with living() as cluster:
        cluster.cluster.server.add_group(visibility_group(visibility(cluster)))
        cluster.create(*queue(cpu=2), priority_class("high", 10), job("first", cpu=2))
        await cluster.run(2)
        cluster.create(job("second"), job("third", priority="high"))
        await cluster.run(2)
        answer = cluster.cluster.server.dispatch(Request("GET", OF_CQ, {"limit": "1"}))
        assert isinstance(answer, ServerResponse) and answer.status == 200
        document = json.loads(answer.body)
        assert owners(document) == ["third"]
        (need,) = document["items"][0]["waitsFor"]
        assert need["heldBy"][0]["name"].startswith("job-first-")
        answer = cluster.cluster.server.dispatch(Request("GET", OF_CQ.replace("/cq/", "/nope/")))
        assert isinstance(answer, ServerResponse) and answer.status == 404


async def test_a_standby_answers_as_the_leader_does() -> None:
    configuration = {"waitForPodsReady": {"timeout": "10s"}}
    async with living(configuration=configuration) as cluster:
        cluster.create(*queue(cpu=2), job("stuck", cpu=1, is_ready=False))
        await cluster.run(20)
        cluster.create(job("holder", cpu=2))
        await cluster.run(2)
        cluster.create(job("next"))
        await cluster.run(2)
        cluster.create(job("large", cpu=99))
        await cluster.run(5)
        told = visibility(cluster).answer("GET", OF_CQ, {})
        assert owners(told.document) == ["stuck", "next", "large"]
        standby = cluster.another_process().queueing
        assert standby is not None
        async with asyncio.TaskGroup() as tasks:
            watches = standby.watch(tasks)
            assert standby.visibility.answer("GET", OF_CQ, {}).code == 503, "it has not read the cluster"
            await standby.wait_synced()
            assert standby.visibility.answer("GET", OF_CQ, {}) == told, "it need not have followed for a while"
            following = tasks.create_task(standby.follow(), name="standby")
            cluster.delete("Job", "next")
            await cluster.run(10)
            after = standby.visibility.answer("GET", OF_CQ, {})
            assert owners(after.document) == ["stuck", "large"] and after == visibility(cluster).answer(
                "GET", OF_CQ, {}
            )
            for task in (*watches, following):
                task.cancel()
        assert standby.controller.engine is None, "nothing was begun"


async def test_what_a_standby_thinks_is_never_written() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), job("holder", cpu=2))
        await cluster.run(2)
        cluster.create(job("next"))
        await cluster.run(2)
        before = cluster.cluster.api.store.revision
        standby = cluster.another_process().queueing
        assert standby is not None
        async with asyncio.TaskGroup() as tasks:
            watches = standby.watch(tasks)
            await standby.wait_synced()
            assert owners(standby.visibility.answer("GET", OF_CQ, {}).document) == ["next"]
            for task in watches:
                task.cancel()
        await cluster.run(5)
        assert cluster.cluster.api.store.revision == before
