"""From watch events to objects, engine, and the subjects that have to be looked at.

Implements the sink of the reflectors. Everything is put into the inbox first and takes effect between two turns of the
loop. While there is no engine (a standby) only the objects are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pilotage.cycle.inbox import Inbox
from pilotage.jobs.adapters.batch_job import queue_of
from pilotage.jobs.adapters.marks import DEFAULT_QUEUE
from pilotage.jobs.controller.in_use import KEPT, is_deleted
from pilotage.jobs.controller.objects import Objects, ReconcileKey, subject_of_pod
from pilotage.jobs.controller.reconciler import Reconciler
from pilotage.jobs.engine import JobQueueing
from pilotage.jobs.filling import FOR_THE_ENGINE, NAMESPACE, LeftOut
from pilotage.model import DecodeError, WatchEvent
from pilotage.model.kueue import Workload
from pilotage.model.pod import Pod

_CLASSES: Final = ("PriorityClass", "WorkloadPriorityClass")


class QueueingIntake:
    def __init__(self, objects: Objects, inbox: Inbox, reconciler: Reconciler, left_out: LeftOut | None = None) -> None:
        self._objects = objects
        self.left_out = left_out if left_out is not None else LeftOut()
        self.is_spoiled = False
        """The engine raised for something: it needs to be made anew."""
        self._inbox = inbox
        self._reconciler = reconciler
        self.engine: JobQueueing | None = None
        self.dirty: dict[ReconcileKey, None] = {}
        self._deleted: dict[ReconcileKey, None] = {}
        """What waits until it is not needed any more: to be looked at when a workload or a queue changes."""
        self.on_workload: Callable[[Any, bool], None] = lambda workload, is_gone: None
        """Called with every workload, after the engine."""
        self.on_left_alone: Callable[[Pod], None] = lambda pod: None
        """Called with pods that name a queue and do not take part."""
        self.on_gone: Callable[[str, Any], None] = lambda kind, obj: None
        """Called with every object that is gone."""

    # --- sink of the reflectors --------------------------------------------------------------------------------

    def replace(self, kind: str, objects: list[Any]) -> None:
        """A fresh list: what is not in it any more was deleted while there was no watch."""
        self._inbox.put(lambda: self._replace(kind, objects))

    def apply(self, kind: str, events: Sequence[WatchEvent]) -> None:
        self._inbox.put(lambda: self._apply(kind, events))

    def read(self, workload: Workload) -> None:
        """A workload was read, because the watch had not brought its newest version."""
        known = self._objects.workloads.get(workload.key)
        self._inbox.put(lambda: self._take_read(workload, known))

    def _take_read(self, workload: Workload, known: Workload | None) -> None:
        # What the watch has brought meanwhile is newer, or the workload is gone.
        if known is not None and self._objects.workloads.get(workload.key) is known and known.uid == workload.uid:
            self._take("Workload", workload, self._put)

    def _replace(self, kind: str, objects: list[Any]) -> None:
        known = self._objects.of(kind)
        for key in sorted(known.keys() - {obj.key for obj in objects}):
            self._take(kind, known[key], self._remove)
        for obj in objects:
            old = known.get(obj.key)
            if old is None or old.resource_version != obj.resource_version:
                self._take(kind, obj, self._put)

    def _apply(self, kind: str, events: Sequence[WatchEvent]) -> None:
        for event in events:
            if isinstance(event.object, DecodeError):
                continue
            self._take(kind, event.object, self._remove if event.type == "DELETED" else self._put)

    def _take(self, kind: str, obj: Any, effect: Callable[[str, Any], None]) -> None:
        """What one object brings about stays with that object."""
        self.left_out.discard(kind, obj.key)
        try:
            effect(kind, obj)
        except Exception as error:
            if self.engine is None:
                self.left_out.add((kind, obj.key), error)
            elif not self.left_out.after(self.engine, kind, obj, error):
                self.is_spoiled = True

    def _put(self, kind: str, obj: Any) -> None:
        if not self._is_ours(kind, obj):
            if self.engine is not None and self._reconciler.serves_pods:
                self.on_left_alone(obj)
            if obj.key in self._objects.of(kind):
                self._remove(kind, obj)
            return
        old = self._objects.of(kind).get(obj.key)
        if old is not None and old.uid != obj.uid:
            self._remove(kind, old)
        self._objects.put(kind, obj)
        self._apply_to_engine(kind, obj, is_gone=False)
        self._mark(kind, obj)

    def _remove(self, kind: str, obj: Any) -> None:
        known = self._objects.remove(kind, obj.key)
        if known is not None:
            self.on_gone(kind, known)
            self._apply_to_engine(kind, known, is_gone=True)
            self._mark(kind, known)

    def _is_ours(self, kind: str, obj: Any) -> bool:
        """Of Jobs all are kept: whose they are may be known only later, when a queue or their owner appears."""
        return kind != "Pod" or self._reconciler.takes_part(obj)

    # --- engine ------------------------------------------------------------------------------------------------

    def begin(self, engine: JobQueueing) -> None:
        """Go on with an engine that knows everything that is known here, and look at every subject."""
        self.engine = engine
        self.is_spoiled = False
        for workload in self._objects.workloads.values():
            self.on_workload(workload, False)
        self.dirty.update(dict.fromkeys(self._objects.subjects()))
        self.dirty.update((ReconcileKey(kind, key), None) for kind in KEPT for key in self._objects.of(kind))

    def _apply_to_engine(self, kind: str, obj: Any, *, is_gone: bool) -> None:
        if self.engine is None or self.is_spoiled:
            return
        if kind == NAMESPACE:
            if is_gone:
                self.engine.delete_namespace(obj.name)
            else:
                self.engine.set_namespace(obj.name, obj.labels)
        elif kind in FOR_THE_ENGINE:
            if is_gone:
                self.engine.delete(obj)
            else:
                self.engine.upsert(obj)
            if kind == "Workload":
                self.on_workload(obj, is_gone)

    def _mark(self, kind: str, obj: Any) -> None:
        if kind in self._objects.kinds:
            self.dirty[ReconcileKey(kind, obj.key)] = None
        elif kind == "Pod":
            self.dirty[subject_of_pod(obj)] = None
        elif kind == "Workload":
            subject = self._objects.subject_of(obj)
            if subject is not None:
                self.dirty[subject] = None
            self.dirty.update(dict.fromkeys(self._objects.waiting_for(obj)))
            self.dirty.update(self._deleted)
        elif kind == "Namespace" or (kind == "LocalQueue" and obj.name == DEFAULT_QUEUE):
            # It may decide about jobs that name no queue.
            name = obj.name if kind == "Namespace" else obj.namespace
            jobs = ((subject, job) for subject, job in self._objects.jobs() if job.namespace == name)
            self.dirty.update((subject, None) for subject, job in jobs if not queue_of(job))
        elif kind in KEPT:
            self._mark_kept(ReconcileKey(kind, obj.key))
        elif kind in _CLASSES:
            # A job may have waited for its class; there are few classes, and they change seldom.
            self.dirty.update(dict.fromkeys(self._objects.subjects()))

    def _mark_kept(self, subject: ReconcileKey) -> None:
        obj = self._objects.of(subject.kind).get(subject.key)
        if obj is not None and is_deleted(obj):
            self._deleted[subject] = None
        else:
            self._deleted.pop(subject, None)
        self.dirty[subject] = None
        # A queue may have been the last that needed a flavor or a check.
        self.dirty.update(self._deleted)
