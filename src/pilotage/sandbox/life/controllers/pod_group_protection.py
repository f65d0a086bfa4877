"""PodGroups stay as long as they have pods: the finalizer that admission gave them goes when no live pod names them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pilotage.sandbox.life.controllers.controller import ControllerContext, Due, Interest, drop_finalizer
from pilotage.sandbox.life.facts import PodFacts
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.rules.admission import POD_GROUP_PROTECTION, POD_GROUPS
from pilotage.sandbox.storage.store import Key


class PodGroupProtection:
    name = "pod-group-protection"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context

    def interests(self) -> Mapping[str, Interest]:
        return {POD_GROUPS: self._group_seen, "pods": self._pod_seen}

    def reconcile(self, key: Key) -> float | None:
        members = self._context.index.members(key.namespace, key.name)
        group = self._context.outline(key) if all(pod.is_finished for pod in members) else None
        if group is None or "deletionTimestamp" not in group["metadata"]:
            return None
        if drop_finalizer(group, POD_GROUP_PROTECTION):
            self._context.write_metadata(key, group)
        return None

    def _group_seen(self, seen: ObservedChange) -> Iterable[Due]:
        is_waiting = seen.new is not None and seen.new.is_deleting and POD_GROUP_PROTECTION in seen.new.finalizers
        return (Due(seen.key),) if is_waiting else ()

    def _pod_seen(self, seen: ObservedChange) -> Iterable[Due]:
        """A member has ended or is gone."""
        pod = seen.facts
        if not isinstance(pod, PodFacts) or not pod.group or not (seen.new is None or pod.is_finished):
            return ()
        key = Key(POD_GROUPS, pod.key.namespace, pod.group)
        group = self._context.index.get(key)
        return (Due(key),) if group is not None and group.is_deleting else ()
