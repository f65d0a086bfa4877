"""All kinds of jobs that can be queued, by their names in the configuration and in the API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pilotage.jobs.adapters.batch_job import BatchJobs
from pilotage.jobs.adapters.kinds.app_wrapper import APP_WRAPPER
from pilotage.jobs.adapters.kinds.generic import generic_kind, is_kind_name
from pilotage.jobs.adapters.kinds.job_kind import JobKind
from pilotage.jobs.adapters.kinds.job_set import JOB_SET
from pilotage.jobs.adapters.kinds.ray_cluster import RAY_CLUSTER
from pilotage.jobs.adapters.kinds.ray_job import RAY_JOB
from pilotage.jobs.adapters.kinds.spark_application import SPARK_APPLICATION
from pilotage.jobs.adapters.kinds.training_jobs import TRAINING_JOBS
from pilotage.model.meta import OwnerReference

JOB: Final = BatchJobs()
_BUILT_IN: Final[tuple[JobKind, ...]] = (
    JOB,
    JOB_SET,
    RAY_JOB,
    RAY_CLUSTER,
    *TRAINING_JOBS,
    SPARK_APPLICATION,
    APP_WRAPPER,
)


class JobKinds:
    """The kinds that a configuration wants served, by the names of their kinds."""

    def __init__(self, frameworks: Iterable[str] | None = None, external: Iterable[str] = ()) -> None:
        """None: all that are built in."""
        wanted = None if frameworks is None else frozenset(frameworks)
        built_in = (one for one in _BUILT_IN if wanted is None or one.framework in wanted)
        others = (generic_kind(name) for name in external if is_kind_name(name))
        # What is built in goes first: it knows more.
        self._by_name: Mapping[str, JobKind] = {one.resource.kind: one for one in (*others, *built_in)}

    def __iter__(self) -> Iterator[JobKind]:
        return iter(self._by_name.values())

    def __contains__(self, kind: str) -> bool:
        return kind in self._by_name

    def get(self, kind: str) -> JobKind | None:
        return self._by_name.get(kind)

    def owner(self, owner: OwnerReference | None) -> JobKind | None:
        """The kind of an owner; None if it is none of these."""
        if owner is None or (kind := self._by_name.get(owner.kind)) is None:
            return None
        return kind if owner.api_version.startswith(f"{kind.resource.group}/") else None
