"""Workloads that were read because the watch had not brought them: they count like those of the watch, unless late."""

from __future__ import annotations

from pilotage.cycle.inbox import Inbox
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.controller.intake import QueueingIntake
from pilotage.jobs.controller.objects import Objects
from pilotage.jobs.controller.reconciler import Reconciler
from pilotage.model import WatchEvent
from pilotage.model.kueue import Workload
from pilotage.model.meta import ObjectMeta


def version(number: int) -> Workload:
    return Workload(metadata=ObjectMeta(name="w", namespace="ns", uid="u", resource_version=str(number)))


class Scene:
    def __init__(self) -> None:
        self.objects, self.inbox = Objects(), Inbox()
        reconciler = Reconciler(self.objects, QueueingConfiguration(), lambda key: None)
        self.intake = QueueingIntake(self.objects, self.inbox, reconciler)
        self.watch("ADDED", 1)
        self.inbox.drain()

    def watch(self, type_: str, number: int) -> None:
        self.intake.apply("Workload", [WatchEvent(type_, version(number))])

    def known(self) -> list[str]:
        self.inbox.drain()
        return [workload.resource_version for workload in self.objects.workloads.values()]


def test_what_was_read_is_taken_in() -> None:
    scene = Scene()
    scene.intake.read(version(7))
    assert scene.known() == ["7"]


def test_what_the_watch_brings_meanwhile_counts() -> None:
    scene = Scene()
    scene.watch("MODIFIED", 8)
    scene.intake.read(version(7))
    assert scene.known() == ["8"]


def test_a_workload_that_is_gone_does_not_come_back() -> None:
    scene = Scene()
    scene.watch("DELETED", 8)
    scene.intake.read(version(7))
    assert scene.known() == []
