"""A cluster is followed with real reflectors, in virtual time; what could not be seen is a gap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pilotage.kube.client import KubeClient
from pilotage.kube.transport import Response, Transport, TransportError
from pilotage.lab.trace.content import Redaction, recorded_kinds
from pilotage.lab.trace.finishing import finish
from pilotage.lab.trace.following import Outage, TraceTime, cluster_uid, follow
from pilotage.lab.trace.format import Writer, read
from pilotage.lab.trace.recording import Recording, TraceState
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.testing import VirtualClock

from .making import header, pod, read_all

KINDS_THERE = [kind for kind in recorded_kinds(Redaction()) if kind.plural in ("storageclasses", "nodes", "pods")]


def test_time_stands_still_until_the_first_lists_are_there() -> None:
    clock = VirtualClock()
    time = TraceTime(clock, 7.0)
    assert time.now() == 7.0
    time.go_on()
    assert time.now() == 7.0


class Flaky:
    """A transport that can be out of order."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.is_down = False

    async def request(self, *arguments: Any, **options: Any) -> Response:
        if self.is_down:
            raise TransportError("cut", sent=False)
        return await self._transport.request(*arguments, **options)

    @asynccontextmanager
    async def stream(self, *arguments: Any) -> AsyncIterator[AsyncIterator[bytes]]:
        if self.is_down:
            raise TransportError("cut", sent=False)
        async with self._transport.stream(*arguments) as chunks:
            yield self._until_cut(chunks)

    async def _until_cut(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            if self.is_down:
                raise TransportError("cut", sent=True)
            yield chunk

    async def close(self) -> None:
        await self._transport.close()


async def recorded(path: Path, steps: Mapping[int, Callable[[EmbeddedCluster, Flaky], object]], until: int) -> None:
    """A finished recording of a cluster to which something happens at ticks, which are a second apart."""
    clock = VirtualClock()
    async with EmbeddedCluster.running(EmbeddedOptions(nodes=2, port=None), clock, seeded(1)) as cluster:
        out = Writer(path, header(recording=True))
        time = TraceTime(clock, 0.0)
        recording = Recording(out, time.now, TraceState())
        transport = Flaky(cluster.transport())
        ticks = 0

        def tick() -> bool:
            nonlocal ticks
            ticks += 1
            if ticks in steps:
                steps[ticks](cluster, transport)
            return ticks == until

        async with asyncio.TaskGroup() as tasks:
            client = KubeClient(transport)
            tasks.create_task(follow(client, KINDS_THERE, recording, time, clock, seeded(1), tick))
            await clock.advance(until + 5)
        out.close()
    assert recording.failure is None
    finish(path)


async def test_a_cluster_becomes_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    steps: dict[int, Callable[[EmbeddedCluster, Flaky], object]] = {
        2: lambda cluster, _: cluster.api.create("pods", "default", pod("p")),
        3: lambda cluster, _: cluster.api.bind("default", "p", "node-00001"),
        6: lambda cluster, _: cluster.api.delete("pods", "default", "p", {"gracePeriodSeconds": 0}),
    }
    await recorded(path, steps, 9)
    pods = [one for one in read_all(path) if one.name is not None and one.name.kind == "Pod"]
    assert len(pods) == 1 and pods[0].runs is not None
    assert 1 <= pods[0].at < 3 and 2 <= pods[0].runs <= 5


def go_down(cluster: EmbeddedCluster, transport: Flaky) -> None:
    transport.is_down = True
    # Whatever the watches bring next is cut off.
    change = b'{"metadata": {"labels": {"beat": "1"}}}'
    cluster.api.patch("nodes", "", "node-00001", change, "application/merge-patch+json")
    cluster.api.create("pods", "default", pod("beat"))


def come_back(cluster: EmbeddedCluster, transport: Flaky) -> None:
    transport.is_down = False


async def test_what_happens_out_of_reach_is_heard_of_late_and_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    await recorded(path, {3: go_down, 20: come_back}, 80)
    records = read_all(path)
    gaps = [one for one in records if one.gap is not None]
    assert [one.gap.reason.partition(";")[0] for one in gaps if one.gap] == ["out of reach"]
    assert gaps[0].gap is not None and gaps[0].gap.seconds >= 15 and gaps[0].at >= 18
    (late,) = (one.at for one in records if one.name is not None and one.name.name == "beat" and one.name.kind == "Pod")
    assert late >= 17


async def test_an_outage_that_goes_on_is_a_gap_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    await recorded(path, {3: go_down}, 30)
    *_, last = read_all(path)
    assert last.gap is not None and last.gap.seconds >= 20
    assert last.gap.reason == "out of reach until the end: nodes, pods"


async def test_clusters_are_told_apart() -> None:
    clock, uids = VirtualClock(), []
    for seed in (1, 2):
        async with EmbeddedCluster.running(EmbeddedOptions(nodes=0, port=None), clock, seeded(seed)) as cluster:
            uids += [await cluster_uid(KubeClient(cluster.transport())) for _ in range(2)]
    assert uids[0] == uids[1] != uids[2] == uids[3] and None not in uids


class _Listed:
    lists_completed = 1


def test_one_gap_for_all_kinds_that_were_out_of_reach(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    out = Writer(path, header())
    clock = VirtualClock()
    recording = Recording(out, lambda: 0.0, TraceState())
    outage, pods, nodes = Outage(recording, clock), _Listed(), _Listed()
    outage.contact(lambda: pods, "pods", False)  # type: ignore[arg-type,return-value]
    outage.contact(lambda: nodes, "nodes", False)  # type: ignore[arg-type,return-value]
    pods.lists_completed = 2
    outage.contact(lambda: nodes, "nodes", True)  # type: ignore[arg-type,return-value]
    outage.contact(lambda: pods, "pods", True)  # type: ignore[arg-type,return-value]
    outage.contact(lambda: nodes, "nodes", False)  # type: ignore[arg-type,return-value]
    outage.contact(lambda: nodes, "nodes", True)  # type: ignore[arg-type,return-value]
    out.close()
    (only,) = read(path)[1]
    assert only.gap is not None and "listed anew: pods;" in only.gap.reason
