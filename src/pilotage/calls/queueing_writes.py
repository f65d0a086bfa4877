"""What workload queueing creates, changes and deletes: Workloads, Jobs, pods, and the objects that it reads.

Changes are JSON merge patches of a part of one object. All of these calls may be sent twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import msgspec

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance, is_conflict, is_not_found
from pilotage.model import KINDS, Pod
from pilotage.model.custom_jobs import CustomJob, kind_of_job
from pilotage.model.kinds import KindInfo
from pilotage.model.kueue import Workload
from pilotage.model.workloads import Job

_MERGE_PATCH = "application/merge-patch+json"


class WorkloadCreation(ApiCall):
    """POST workloads; that it is there already is no error: its name is that of its job."""

    __slots__ = ("_manifest",)

    kind: ClassVar[str] = "workload_creation"
    lane: ClassVar[Lane] = Lane.EVICT
    relevance: ClassVar[int] = Relevance.BINDING
    is_repeatable: ClassVar[bool] = True

    def __init__(self, manifest: dict[str, Any]) -> None:
        self._manifest = manifest

    @property
    def object_key(self) -> str:
        metadata = self._manifest["metadata"]
        return f"{metadata['namespace']}/{metadata['name']}/{self.kind}"

    async def perform(self, writer: ApiWriter) -> None:
        namespace = self._manifest["metadata"]["namespace"]
        try:
            await writer.create(KINDS["workloads"], namespace, msgspec.json.encode(self._manifest))
        except Exception as error:
            if not is_conflict(error):
                raise


class MergePatch(ApiCall):
    """PATCH an object; `patch` names the uid, and the version if it is meant for that version only."""

    __slots__ = ("_name", "_namespace", "_patch", "_resource", "_subresource", "_uid")

    lane: ClassVar[Lane] = Lane.EVICT
    relevance: ClassVar[int] = Relevance.BINDING
    is_repeatable: ClassVar[bool] = True

    def __init__(
        self, resource: KindInfo, namespace: str, name: str, uid: str, patch: dict[str, Any], subresource: str = ""
    ) -> None:
        self._resource = resource
        self._namespace = namespace
        self._name = name
        self._uid = uid
        self._patch = patch
        self._subresource = subresource

    @property
    def object_key(self) -> str:
        return f"{self._uid}/{self.kind}"

    async def perform(self, writer: ApiWriter) -> None:
        await writer.patch(
            self._resource,
            self._namespace,
            self._name,
            msgspec.json.encode(self._patch),
            content_type=_MERGE_PATCH,
            subresource=self._subresource,
        )


class WorkloadChange(MergePatch):
    """PATCH workloads."""

    __slots__ = ()

    kind: ClassVar[str] = "workload_change"

    def __init__(self, namespace: str, name: str, uid: str, patch: dict[str, Any]) -> None:
        super().__init__(KINDS["workloads"], namespace, name, uid, patch)


class JobChange(MergePatch):
    """PATCH jobs of any kind, or their status."""

    __slots__ = ()

    kind: ClassVar[str] = "job_change"

    def __init__(self, job: Job | CustomJob, patch: dict[str, Any], subresource: str = "") -> None:
        super().__init__(_resource_of(job), job.namespace, job.name, job.uid, patch, subresource)


class PodRelease(MergePatch):
    """PATCH pods: without the gate, with the node selector and tolerations of its flavors."""

    __slots__ = ()

    kind: ClassVar[str] = "pod_release"

    def __init__(self, pod: Pod, patch: dict[str, Any]) -> None:
        super().__init__(KINDS["pods"], pod.namespace, pod.name, pod.uid, patch)


class QueueingObjectChange(MergePatch):
    """PATCH one of the objects that workload queueing reads."""

    __slots__ = ()

    kind: ClassVar[str] = "queueing_object_change"

    def __init__(self, resource: KindInfo, name: str, uid: str, patch: dict[str, Any]) -> None:
        super().__init__(resource, "", name, uid, patch)


class _Deletion(ApiCall):
    """DELETE just this object; one that is gone already is no error."""

    __slots__ = ("_object",)

    options: ClassVar[Mapping[str, str]] = MappingProxyType({})
    lane: ClassVar[Lane] = Lane.EVICT
    relevance: ClassVar[int] = Relevance.DELETION
    is_repeatable: ClassVar[bool] = True

    def __init__(self, obj: Workload | Job | CustomJob) -> None:
        self._object = obj

    @property
    def object_key(self) -> str:
        return f"{self._object.uid}/{self.kind}"

    async def perform(self, writer: ApiWriter) -> None:
        obj = self._object
        options = msgspec.json.encode({"preconditions": {"uid": obj.uid}, **self.options})
        try:
            await writer.delete(_resource_of(obj), obj.namespace, obj.name, options)
        except Exception as error:
            if not is_not_found(error):
                raise


class WorkloadDeletion(_Deletion):
    kind: ClassVar[str] = "workload_deletion"


class JobDeletion(_Deletion):
    kind: ClassVar[str] = "job_deletion"
    options: ClassVar[Mapping[str, str]] = MappingProxyType({"propagationPolicy": "Background"})


def _resource_of(obj: Workload | Job | CustomJob) -> KindInfo:
    if isinstance(obj, CustomJob):
        return kind_of_job(obj)
    return KINDS["jobs" if isinstance(obj, Job) else "workloads"]
