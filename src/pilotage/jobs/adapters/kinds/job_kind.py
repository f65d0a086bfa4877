"""What queueing asks of a kind of jobs and does to it. A kind is a record of pure functions (`custom.py`, `batch_job`).

Everything that is written is a merge patch for the version that was seen, so that each step is decided anew when
the job was changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pilotage.jobs.adapters.facts import RunFacts
from pilotage.jobs.adapters.pod_set_info import PodSetInfo
from pilotage.model.custom_jobs import CustomJob
from pilotage.model.kinds import KindInfo
from pilotage.model.kueue import PodSet, Workload
from pilotage.model.workloads import Job

AnyJob = Job | CustomJob
Patch = dict[str, Any]


class CannotQueue(Exception):
    """Why no workload can be made of a job, for its user."""


class JobKind(Protocol):
    @property
    def framework(self) -> str:
        """Its name in `integrations.frameworks`."""

    @property
    def resource(self) -> KindInfo: ...

    def pod_sets(self, job: Any) -> tuple[PodSet, ...]:
        """As large as the job is at the moment; CannotQueue if it cannot be queued as it is."""

    def run_facts(self, job: Any) -> RunFacts: ...

    def priority_class(self, job: Any) -> str:
        """The PriorityClass of its pods."""

    def is_elsewhere(self, job: Any) -> bool:
        """Another controller than that of this cluster is to run it."""

    def is_steered(self, job: Any) -> bool:
        """Its pods are sent to the nodes of flavors."""

    def count_of_pod_sets(self, job: Any) -> int: ...

    def has_size_of(self, job: Any, workload: Workload, infos: Sequence[PodSetInfo]) -> bool:
        """It still has the number of pods that was admitted."""

    def spare_pods(self, job: Any, workload: Workload) -> dict[str, int] | None:
        """Of an elastic job that did not grow: by pod set, how many of the admitted pods it does without."""

    def suspend_patch(self, job: Any) -> Patch: ...

    def start_patch(self, job: Any, infos: Sequence[PodSetInfo]) -> Patch:
        """Steer the pods and let the job go, in one write."""

    def clear_start_patch(self, job: Any) -> Patch | None:
        """For the status of a suspended job, if it must be changed before the job can be restored."""

    def restore_patch(self, job: Any, original: tuple[PodSet, ...]) -> Patch | None:
        """Undo what the start added; None if nothing is left to undo."""

    def hold_patch(self, job: Any) -> Patch:
        """Suspend it for the sake of the job that it belongs to."""

    def unhold_patch(self, job: Any) -> Patch: ...
