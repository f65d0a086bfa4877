"""What is deleted is looked at again whenever somebody may have been the last to need it."""

from __future__ import annotations

from pilotage.cycle.inbox import Inbox
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.controller.intake import QueueingIntake
from pilotage.jobs.controller.objects import Objects, ReconcileKey
from pilotage.jobs.controller.reconciler import Reconciler
from pilotage.model.kueue import ClusterQueue, Workload
from pilotage.model.meta import ObjectMeta


def test_a_change_of_a_workload_is_news_for_queues_that_wait_for_their_end() -> None:
    objects, inbox = Objects(), Inbox()
    intake = QueueingIntake(objects, inbox, Reconciler(objects, QueueingConfiguration(), lambda key: None))

    def changed(kind: str, *objs: ClusterQueue | Workload) -> list[ReconcileKey]:
        intake.dirty.clear()
        intake.replace(kind, list(objs))
        inbox.drain()
        return list(intake.dirty)

    stays = ClusterQueue(metadata=ObjectMeta(name="stays", uid="1", resource_version="1"))
    goes = ObjectMeta(name="goes", uid="2", resource_version="1", deletion_timestamp="2026-01-01T00:00:00Z")
    changed("ClusterQueue", stays, ClusterQueue(metadata=goes))
    workload = Workload(metadata=ObjectMeta(name="w", namespace="ns", uid="3", resource_version="1"))
    seen = changed("Workload", workload)
    assert ReconcileKey("ClusterQueue", "goes") in seen and ReconcileKey("ClusterQueue", "stays") not in seen
    changed("ClusterQueue", stays)
    assert ReconcileKey("ClusterQueue", "goes") not in changed("Workload"), "it is gone"
