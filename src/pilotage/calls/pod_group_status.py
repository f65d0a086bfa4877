"""Write into a PodGroup's status whether it has started, and if not, why."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance, is_not_found
from pilotage.calls.pod_status import STRATEGIC_MERGE_PATCH, version_of
from pilotage.model import KINDS
from pilotage.model.meta import TimedCondition
from pilotage.model.pod_group import PodGroup


class PodGroupStatusPatch(ApiCall):
    """PATCH podgroups/status with one condition, unless the group has it."""

    __slots__ = ("_base", "_condition")

    kind: ClassVar[str] = "pod_group_status_patch"
    lane: ClassVar[Lane] = Lane.STATUS
    relevance: ClassVar[int] = Relevance.STATUS
    is_repeatable: ClassVar[bool] = True
    retries_conflicts: ClassVar[bool] = True

    def __init__(self, group: PodGroup, condition: TimedCondition) -> None:
        """The condition's time counts only if the group has another status than before."""
        self._base = group
        self._condition = condition

    @property
    def object_key(self) -> str:
        return self._base.uid

    def merged_with(self, newer: ApiCall) -> ApiCall:
        assert isinstance(newer, PodGroupStatusPatch)
        return PodGroupStatusPatch(self._base, newer._condition)

    def rebase(self, obj: Any) -> None:
        self._base = obj

    def follow(self, done: ApiCall) -> None:
        self._base = done.applied_to(self._base)

    def is_pointless(self) -> bool:
        return self._written() == self._known()

    def applied_to(self, obj: Any) -> Any:
        group: PodGroup = obj
        kept = (known for known in group.status.conditions if known.type != self._condition.type)
        return replace(group, status=replace(group.status, conditions=(*kept, self._written())))

    async def perform(self, writer: ApiWriter) -> str | None:
        # Conditions are merged: what was said before would stay if nothing were said now.
        base, condition = self._base, {"message": "", **msgspec.to_builtins(self._written())}
        patch = {"metadata": {"uid": base.uid}, "status": {"conditions": [condition]}}
        body = msgspec.json.encode(patch)
        kind, how = KINDS["podgroups"], STRATEGIC_MERGE_PATCH
        try:
            answer = await writer.patch(kind, base.namespace, base.name, body, content_type=how, subresource="status")
        except Exception as error:
            if not is_not_found(error):
                raise
            # The group may be gone, or of Kubernetes 1.36.
            kind = kind.in_other_version()
            answer = await writer.patch(kind, base.namespace, base.name, body, content_type=how, subresource="status")
        return version_of(answer)

    def _known(self) -> TimedCondition | None:
        conditions = self._base.status.conditions
        return next((known for known in conditions if known.type == self._condition.type), None)

    def _written(self) -> TimedCondition:
        known, condition = self._known(), self._condition
        is_same = known is not None and known.status == condition.status
        return replace(condition, last_transition_time=known.last_transition_time) if known and is_same else condition
