"""Statuses of queues on their way out: few writes, and the newest content arrives."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec

from pilotage.api.calls import ApiWriter
from pilotage.calls.dispatcher import Dispatcher
from pilotage.jobs.controller.queue_statuses import QueueStatuses
from pilotage.jobs.engine import JobQueueing
from pilotage.model.kueue import QueueStatus
from pilotage.testing import VirtualClock


class Unavailable(Exception):
    code = 503


class QueueServer:
    """Takes the status of a queue; the first `failures` tries end in an error of the server."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.counts: list[int] = []

    async def patch(self, kind: Any, namespace: str, name: str, body: bytes, **options: Any) -> bytes:
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise Unavailable
        self.counts.append(msgspec.json.decode(body)["status"]["pendingWorkloads"])
        return msgspec.json.encode({"metadata": {"resourceVersion": "2"}})


class CountingEngine:
    def __init__(self) -> None:
        self.pending = 1

    def cluster_queue_status(self, name: str) -> QueueStatus:
        return QueueStatus(pending_workloads=self.pending)


async def queue_statuses(server: QueueServer, changes: list[int]) -> list[int]:
    """What is written if the number of pending workloads changes so, with a pause where it is negative."""
    engine, clock = CountingEngine(), VirtualClock()
    dispatcher = Dispatcher(cast(ApiWriter, server), clock)
    statuses = QueueStatuses(lambda: cast(JobQueueing, engine), dispatcher, clock)
    running = asyncio.create_task(dispatcher.run())
    for count in changes:
        if count < 0:
            await clock.advance(20.0)
        else:
            engine.pending = count
            statuses.write("clusterqueues", "main")
    await clock.advance(20.0)
    running.cancel()
    return server.counts


async def test_changes_of_a_queue_before_its_status_is_sent_are_one_write() -> None:
    assert await queue_statuses(QueueServer(), [1, 2, 3]) == [3]


async def test_the_status_of_a_queue_that_is_as_it_was_written_is_not_written_again() -> None:
    assert await queue_statuses(QueueServer(), [1, -1, 2, 1, -1, 2]) == [1, 2]


async def test_the_status_of_a_queue_is_written_though_the_first_try_failed() -> None:
    """What was tried but did not arrive was taken for written."""
    assert await queue_statuses(QueueServer(failures=2), [4]) == [4]
