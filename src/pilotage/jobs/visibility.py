"""Kueue's visibility API (visibility.kueue.x-k8s.io): the pending workloads of a queue in order, served from memory.

    /apis/visibility.kueue.x-k8s.io/v1beta2/clusterqueues/<name>/pendingworkloads
    /apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/<namespace>/localqueues/<name>/pendingworkloads
    /apis/visibility.kueue.x-k8s.io/v1beta2/configurations/running

Method, path and query in, code and document out: the sandbox's API server, the HTTPS endpoints of `pilotage run` and
the scenarios all answer with this. Items are Kueue's `PendingWorkload` and more: whether it may be tried, its back-off,
the reason why it waits, and who holds what it waits for. Clients that do not know these fields skip them. The
configuration is ours alone: with it `pilotage explain` judges as the running controller does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pilotage.clock import rfc3339
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.configuration.load import queueing_document
from pilotage.jobs.engine import JobQueueing
from pilotage.jobs.queue_lines import Window
from pilotage.jobs.rejections import shown
from pilotage.jobs.reports import Holder, Need, QueueLine
from pilotage.jobs.visibility_discovery import GROUP, VERSIONS, group_document, resource_list
from pilotage.model.meta import ObjectMeta

Document = dict[str, Any]
DEFAULT_LIMIT: Final = 1000
MOST: Final = 100_000
_RETRY_SECONDS: Final = 1
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_PENDING: Final = "pendingworkloads"
RUNNING_CONFIGURATION: Final = f"/apis/{GROUP}/{VERSIONS[0]}/configurations/running"


_DEFAULTS: Final = QueueingConfiguration()


class VisibilityAnswer(NamedTuple):
    code: int
    document: Document


class VisibilityError(Exception):
    """The request is not answered with a summary; `answer` says how."""

    def __init__(self, code: int, reason: str, message: str, **details: Any) -> None:
        super().__init__(message)
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
        self.answer = VisibilityAnswer(code, {**status, "reason": reason, "details": details, "code": code})


class VisibilityApi:
    """Answers from whatever engine there is at that moment; None says that there is none yet."""

    def __init__(
        self, engine: Callable[[], JobQueueing | None], configuration: QueueingConfiguration = _DEFAULTS
    ) -> None:
        self._engine = engine
        self._configuration = configuration

    def answer(self, method: str, path: str, query: Mapping[str, str]) -> VisibilityAnswer:
        """`path` begins with /apis/<group>."""
        try:
            return VisibilityAnswer(200, self._document(method, path.strip("/").split("/")[2:], query))
        except VisibilityError as rejection:
            return rejection.answer

    def _document(self, method: str, parts: Sequence[str], query: Mapping[str, str]) -> Document:
        if method not in ("GET", "HEAD"):
            raise VisibilityError(405, "MethodNotAllowed", f"{method.lower()} is not supported on pending workloads")
        match parts:
            case []:
                return {"kind": "APIGroup", "apiVersion": "v1", **group_document()}
            case [version] if version in VERSIONS:
                return resource_list(version)
            case [version, "configurations", "running"] if version in VERSIONS:
                return queueing_document(self._configuration)
            case [version, "clusterqueues", name, tail] if version in VERSIONS and tail == _PENDING:
                found = self._ready().lines_of_cluster_queue(name, _window(query))
                return _summary(version, found, "clusterqueue", name)
            case [version, "namespaces", namespace, "localqueues", name, tail] if (
                version in VERSIONS and tail == _PENDING
            ):
                found = self._ready().lines_of_local_queue(f"{namespace}/{name}", _window(query))
                return _summary(version, found, "localqueue", name)
            case _:
                raise VisibilityError(404, "NotFound", "the server could not find the requested resource")

    def _ready(self) -> JobQueueing:
        engine = self._engine()
        if engine is None:
            message = "workload queueing has not read the cluster yet; try again in a moment"
            raise VisibilityError(503, "ServiceUnavailable", message, retryAfterSeconds=_RETRY_SECONDS)
        return engine


def _window(query: Mapping[str, str]) -> Window:
    """As Kueue reads it: a limit of 0 is none given, what is negative counts as 0."""
    offset, limit = _number(query, "offset"), _number(query, "limit") or DEFAULT_LIMIT
    return Window(max(0, offset), min(max(0, limit), MOST))


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name)
    if text is None:
        return 0
    if not _INTEGER.fullmatch(text):
        raise VisibilityError(400, "BadRequest", f"{name}={text!r}: must be a whole number, e.g. {name}=100")
    return int(text)


# --- documents --------------------------------------------------------------------------------------------------------


def _summary(version: str, lines: Sequence[QueueLine] | None, kind: str, name: str) -> Document:
    if lines is None:
        raise VisibilityError(404, "NotFound", f'{kind}.{GROUP} "{name}" not found', name=name, group=GROUP, kind=kind)
    head = {"kind": "PendingWorkloadsSummary", "apiVersion": f"{GROUP}/{version}", "metadata": {}}
    return {**head, "items": [_item(line) for line in lines]}


def _item(line: QueueLine) -> Document:
    place = line.place
    item: Document = {
        "metadata": _metadata(line.metadata),
        "priority": place.priority,
        "localQueueName": place.local_queue,
        "positionInClusterQueue": place.position_in_cluster_queue,
        "positionInLocalQueue": place.position_in_local_queue,
        "eligible": line.is_eligible,
        "reason": place.reason,
        "message": place.message,
    }
    if place.requeue_count is not None:
        item["requeueCount"] = place.requeue_count
    if place.requeue_at is not None:
        item["requeueAt"] = rfc3339(place.requeue_at)
    if line.needs:
        item["waitsFor"] = [_need(need) for need in line.needs]
    return item


def _metadata(metadata: ObjectMeta) -> Document:
    document: Document = {
        "name": metadata.name,
        "namespace": metadata.namespace,
        "creationTimestamp": metadata.creation_timestamp,
    }
    if metadata.owner_references:
        document["ownerReferences"] = [
            {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
            for owner in metadata.owner_references
        ]
    return document


def _need(need: Need) -> Document:
    document: Document = {"reason": need.reason}
    if need.resource:
        document |= {"podSet": need.pod_set, "flavor": need.flavor, "resource": need.resource}
        document |= {"needed": shown(need.resource, need.need or 0), "free": shown(need.resource, need.free or 0)}
    document["heldBy"] = [_holder(holder, need.resource) for holder in need.holders]
    if need.others:
        others: Document = {"workloads": need.others}
        if need.others_amount is not None:
            others["amount"] = shown(need.resource, need.others_amount)
        document["heldByOthers"] = others
    return document


def _holder(holder: Holder, resource: str) -> Document:
    namespace, _, name = holder.key.partition("/")
    document = {"namespace": namespace, "name": name, "clusterQueue": holder.cluster_queue}
    return document if holder.amount is None else {**document, "amount": shown(resource, holder.amount)}
