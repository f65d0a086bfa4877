"""Pods that are gone leave nothing in the scheduler: nothing that it holds grows with the number of pods that it saw.

What is bounded (memos, change logs, the pods that ended) is made small, so that a few hundred pods fill it. After that
every container that can be reached from the scheduler is compared before and after some hundred pods more, each
unlike all others in whatever a pod can have of its own.
"""

from __future__ import annotations

import asyncio
import gc
import math
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import _lru_cache_wrapper
from types import CoroutineType
from typing import Any

import pytest

from pilotage.api import CycleState, Filter, NodeView, Plugin, Rejection
from pilotage.assembly import SchedulerProcess, options_from_configuration
from pilotage.change_log import ChangeLog
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.kube.client import KubeClient
from pilotage.model import Pod
from pilotage.model.interning import Shared
from pilotage.queue import scheduling_queue
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.sandbox.errors import ApiError
from pilotage.testing import VirtualClock

from .reachable import container_sizes

Json = dict[str, Any]
SERVER = "pilotage.sandbox"
SMALL = 4
ROUNDS = 10
"""In each measured part; a round is a pod of each kind."""
SERIES_END_SECONDS = 15 * 60.0
"""After this no Event is remembered to be repeated."""
HOST = "kubernetes.io/hostname"


# --- pods, each unlike all others -------------------------------------------------------------------------------------


def pod(name: str, kind: str, number: int) -> Json:
    requests = {"cpu": f"{1 + number % 89}m", "memory": str(1000 + number)}
    container = {"name": "c", "image": f"image-{number}", "resources": {"requests": requests}}
    metadata = {"name": name, "labels": {"id": name, f"own-{number}": "x"}, "annotations": {"about": name}}
    spec = {"schedulerName": "default-scheduler", "containers": [container], **KINDS_OF_PODS[kind](name, number)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _asking(requests: Json) -> Json:
    return {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}}]}


def _term(name: str) -> Json:
    return {"labelSelector": {"matchLabels": {"id": name}}, "topologyKey": HOST}


def _preferred_zone(number: int) -> Json:
    match = {"matchExpressions": [{"key": f"zone-{number}", "operator": "In", "values": [f"z{number}"]}]}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": match}]}


def _spread(name: str) -> Json:
    chosen = {"labelSelector": {"matchLabels": {"id": name}}}
    return {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule", **chosen}


KINDS_OF_PODS: dict[str, Callable[[str, int], Json]] = {
    "plain": lambda name, number: {},
    "selector": lambda name, number: {"nodeSelector": {f"key-{number}": "x"}},
    "preferred": lambda name, number: {"affinity": {"nodeAffinity": _preferred_zone(number)}},
    "apart": lambda name, number: {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(name)]}}
    },
    "together": lambda name, number: {
        "affinity": {
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 2, "podAffinityTerm": _term(name)}]
            }
        }
    },
    "spread": lambda name, number: {"topologySpreadConstraints": [_spread(name)]},
    "gated": lambda name, number: {"schedulingGates": [{"name": f"example.com/g{number}"}]},
    "toobig": lambda name, number: _asking({"cpu": str(1000 + number)}),
    "unknown": lambda name, number: _asking({f"example.com/r{number}": "1"}),
    "tolerant": lambda name, number: {"tolerations": [{"key": f"taint-{number}", "operator": "Exists"}]},
    "port": lambda name, number: {
        "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 10_000 + number}]}]
    },
    "volume": lambda name, number: {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]},
    "device": lambda name, number: {"resourceClaims": [{"name": "d", "resourceClaimName": name}]},
    "victim": lambda name, number: {**_asking({"cpu": "900m"}), "nodeSelector": {"tiny": "yes"}},
    "preemptor": lambda name, number: {
        **_asking({"cpu": "900m"}),
        "nodeSelector": {"tiny": "yes"},
        "priorityClassName": "high",
    },
}
UNBOUND = {"selector", "gated", "toobig", "unknown"}


def node(name: str, cpu: str, **labels: str) -> Json:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    metadata = {"name": name, "labels": {HOST: name, **labels}}
    return {"metadata": metadata, "status": {"capacity": amounts, "allocatable": amounts}}


class World:
    """A scheduler in virtual time in front of a cluster with kubelets."""

    def __init__(self, cluster: EmbeddedCluster, process: SchedulerProcess, clock: VirtualClock) -> None:
        self._api = cluster.api
        self._process = process
        self._clock = clock
        self._round = 0
        self.bound: Counter[str] = Counter()

    @classmethod
    @asynccontextmanager
    async def running(cls, *plugins: type[Plugin]) -> AsyncIterator[World]:
        clock = VirtualClock()
        options = replace(options_from_configuration(SchedulerConfiguration(), plugins), cycle_budget_seconds=math.inf)
        async with EmbeddedCluster.running(EmbeddedOptions(nodes=0, port=None), clock, seeded(1)) as cluster:
            process = SchedulerProcess(KubeClient(cluster.transport()), clock, seeded(2), options)
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(process.run())
                world = cls(cluster, process, clock)
                world._furnish()
                await clock.advance(1)
                yield world
                assert not running.done(), "nothing ends by itself"
                running.cancel()

    def _furnish(self) -> None:
        for number in range(4):
            self._api.create("nodes", "", node(f"n{number}", "4"))
        self._api.create("nodes", "", node("tiny", "1", tiny="yes"))
        self._api.create("priorityclasses.scheduling.k8s.io", "", {"metadata": {"name": "high"}, "value": 1000})
        selector = {"selectors": [{"cel": {"expression": "device.driver == 'example.com'"}}]}
        self._api.create("deviceclasses.resource.k8s.io", "", {"metadata": {"name": "any"}, "spec": selector})
        pool = {"name": "n0", "generation": 1, "resourceSliceCount": 1}
        slice_ = {"driver": "example.com", "nodeName": "n0", "pool": pool, "devices": [{"name": "d0"}, {"name": "d1"}]}
        self._api.create("resourceslices.resource.k8s.io", "", {"metadata": {"name": "n0"}, "spec": slice_})

    async def come_and_go(self, rounds: int) -> None:
        for _ in range(rounds):
            self._round += 1
            names = {f"{kind}-{self._round}": kind for kind in KINDS_OF_PODS}
            for name, kind in names.items():
                self._create(name, kind)
                await self._clock.settle()
            await self._clock.advance(5)
            for name, kind in names.items():
                self.bound[kind] += bool(self._delete("pods", name).get("spec", {}).get("nodeName"))
            await self._clock.advance(35)
            self._delete("persistentvolumeclaims", f"volume-{self._round}")
            self._delete("resourceclaims.resource.k8s.io", f"device-{self._round}")
            self._api.delete("volumeattachments.storage.k8s.io", "", f"a{self._round}")
        await self._clock.advance(SERIES_END_SECONDS)
        assert self._api.list("pods") == [], "all pods are gone"

    def _create(self, name: str, kind: str) -> None:
        if kind == "volume":
            wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            self._api.create("persistentvolumeclaims", "default", {"metadata": {"name": name}, "spec": wanted})
            attached = {"attacher": "x.io", "nodeName": "n0", "source": {"persistentVolumeName": f"pv-{self._round}"}}
            attachment = {"metadata": {"name": f"a{self._round}"}, "spec": attached}
            self._api.create("volumeattachments.storage.k8s.io", "", attachment)
        if kind == "device":
            request = {"name": "r", "exactly": {"deviceClassName": "any"}}
            claim = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
            self._api.create("resourceclaims.resource.k8s.io", "default", claim)
        self._api.create("pods", "default", pod(name, kind, self._round))

    def _delete(self, resource: str, name: str) -> Json:
        try:
            return self._api.delete(resource, "default", name)
        except ApiError:
            return {}  # a victim is gone already

    def sizes(self) -> Counter[str]:
        """By owner, the containers that the scheduler and the modules keep; not what is remembered by content."""
        for memo in _memos():
            if memo.cache_info().maxsize is not None:
                memo.cache_clear()
        for shared in _interned():
            shared._young.clear()
            shared._old.clear()
        gc.collect()
        return container_sizes({"SchedulerProcess": self._process, **dict(_globals())}, is_outside)


def _modules() -> Iterator[Any]:
    for name, module in sorted(sys.modules.items()):
        if name.startswith("pilotage.") and not name.startswith(SERVER):
            yield module


def _globals() -> Iterator[tuple[str, Any]]:
    for module in _modules():
        yield from ((f"{module.__name__}.{name}", value) for name, value in vars(module).items() if name[:2] != "__")


def _memos() -> list[_lru_cache_wrapper[Any]]:
    return [value for _, value in _globals() if isinstance(value, _lru_cache_wrapper)]


def _interned() -> list[Shared[Any]]:
    return [found for found in gc.get_objects() if isinstance(found, Shared)]


def is_outside(found: Any) -> bool:
    """Is it the server's, or the test's own?"""
    if isinstance(found, CoroutineType):
        return "/tests/" in found.cr_code.co_filename or "/sandbox/" in found.cr_code.co_filename
    return isinstance(found, World) or type(found).__module__.startswith((SERVER, "_pytest"))


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What has a bound reaches it soon; and the collector shows what was frozen when the tests were collected."""
    gc.unfreeze()
    for module in _modules():
        for name, value in list(vars(module).items()):
            if name.startswith("_KEPT") and type(value) is int:
                monkeypatch.setattr(module, name, min(value, SMALL))
    monkeypatch.setattr(scheduling_queue, "_MOST_ENDED", SMALL)
    monkeypatch.setattr(ChangeLog.__init__, "__defaults__", (SMALL,))
    yield
    gc.collect()
    gc.freeze()


async def grown(world: World) -> dict[str, int]:
    """What has grown by an element for every pod of a kind, or by more."""
    await world.come_and_go(2 * SMALL)
    before = world.sizes()
    await world.come_and_go(ROUNDS)
    after = world.sizes()
    return {name: size - before[name] for name, size in after.items() if size - before[name] >= ROUNDS}


async def test_no_container_of_the_scheduler_grows_with_the_pods_that_come_and_go() -> None:
    async with World.running() as world:
        found = await grown(world)
        # What functions remember is bounded where they are defined, and filled by other tests of this process too.
        assert {where: more for where, more in found.items() if not where.startswith("_lru_cache_wrapper")} == {}
        rounds = 2 * SMALL + ROUNDS
        bound = {kind for kind, count in world.bound.items() if count == rounds}
        assert bound == KINDS_OF_PODS.keys() - UNBOUND - {"victim"}, "and the pods were scheduled as they should be"


class Hoarder(Plugin, Filter):
    """Remembers every pod that it was asked about, by what is the pod's own."""

    def __init__(self, *_: object) -> None:
        self.seen: dict[str, dict[str, str]] = {}

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        if "spread" in pod.labels["id"]:
            self.seen[pod.uid] = {"node": node.name}
        return None


async def test_a_plugin_that_remembers_every_pod_is_found() -> None:
    async with World.running(Hoarder) as world:
        assert await grown(world) == {"Hoarder.seen": ROUNDS, "Hoarder.seen{}": ROUNDS}
