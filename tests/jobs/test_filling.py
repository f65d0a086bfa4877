"""A new engine gets everything but what it raises for, and never one that is half filled."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

from pilotage.jobs.configuration.load import queueing_of
from pilotage.jobs.engine import JobQueueing, QueueingObject
from pilotage.jobs.filling import EngineSpoiled, LeftOut, fill, filled
from pilotage.model.kueue import ClusterQueue, ClusterQueueSpec, LocalQueue, LocalQueueSpec
from pilotage.model.meta import ObjectMeta
from pilotage.testing import VirtualClock


def cluster_queue(name: str) -> ClusterQueue:
    return ClusterQueue(metadata=ObjectMeta(name=name), spec=ClusterQueueSpec())


def local_queue(name: str) -> LocalQueue:
    spec = LocalQueueSpec(cluster_queue="good")
    return LocalQueue(metadata=ObjectMeta(name=name, namespace="ns"), spec=spec)


OBJECTS: dict[str, list[Any]] = {
    "ClusterQueue": [cluster_queue("good"), cluster_queue("odd")],
    "LocalQueue": [local_queue("first"), local_queue("second")],
}


def objects_of(kind: str) -> Iterable[Any]:
    return OBJECTS.get(kind, ())


class Engine(JobQueueing):
    """Raises for some names when they come, for some when they go, and for some in the end."""

    def __init__(self, *, on_put: str = "", on_delete: str = "", in_the_end: bool = False) -> None:
        super().__init__(VirtualClock(), random.Random(1), queueing_of({}))
        self._on_put = on_put
        self._on_delete = on_delete
        self._in_the_end = in_the_end

    def upsert(self, obj: QueueingObject) -> None:
        super().upsert(obj)
        if obj.name == self._on_put:
            raise RuntimeError(f"cannot take {obj.name}")

    def delete(self, obj: QueueingObject) -> None:
        if obj.name == self._on_delete:
            raise RuntimeError(f"cannot lose {obj.name}")
        super().delete(obj)

    def settle(self) -> None:
        super().settle()
        if self._in_the_end:
            raise RuntimeError("a bug of ours")

    def queues(self) -> set[str]:
        return {report.name for report in self.cluster_queues()}


def test_what_can_be_taken_out_again_is_left_out_and_the_rest_is_there() -> None:
    engine, left_out = Engine(on_put="odd"), LeftOut()
    fill(engine, objects_of, left_out)
    assert ("ClusterQueue", "odd") in left_out and len(left_out) == 1
    assert engine.queues() == {"good"}
    engine.check()


def test_what_cannot_be_taken_out_spoils_the_engine() -> None:
    left_out = LeftOut()
    with pytest.raises(EngineSpoiled):
        fill(Engine(on_put="odd", on_delete="odd"), objects_of, left_out)
    assert ("ClusterQueue", "odd") in left_out


def test_the_next_engine_does_without_it() -> None:
    made: list[Engine] = []

    def make() -> Engine:
        made.append(Engine(on_put="odd", on_delete="odd"))
        return made[-1]

    left_out = LeftOut()
    found = filled(make, objects_of, left_out)
    assert found is made[1] and made[1].queues() == {"good"}
    left_out.discard("ClusterQueue", "odd")
    assert not len(left_out), "it has changed, and is tried again"


def test_an_engine_that_fails_without_a_cause_is_not_made_for_ever() -> None:
    with pytest.raises(EngineSpoiled) as spoiled:
        filled(lambda: Engine(in_the_end=True), objects_of, LeftOut())
    assert "a bug of ours" in str(spoiled.value.__cause__)
