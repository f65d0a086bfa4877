"""What is known of the pods of a cluster: when each came, was bound and ended; and so the cluster at any moment.

It comes from a trace, observed or simulated, or from the pods that the API server still has. The moment may be now, or
one in the past about which is known what became of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from pilotage.clock import rfc3339_micro
from pilotage.cluster.state import Cluster
from pilotage.lab.lives import PodStory
from pilotage.lab.results import DECISIONS
from pilotage.lab.starts.lifetimes import Lifetimes
from pilotage.lab.trace.content import Redaction, sighting
from pilotage.lab.trace.dump import PodTimes, time_of
from pilotage.lab.trace.finishing import pod_seen
from pilotage.lab.trace.format import ObjectName, TraceRecord
from pilotage.lab.trace.of_cluster import object_documents
from pilotage.lab.trace.pod_facts import owner_of, shape_of
from pilotage.model import KINDS, Pod
from pilotage.model.errors import DecodeError
from pilotage.model.pod import decode_pod

_RUN_NUMBER: Final = re.compile(r"-\d+$")
MOST_PODS: Final = 200_000


class HistoryTooLong(Exception):
    """More than are kept in memory."""


class KnownPod(msgspec.Struct, eq=False):
    """One pod. Times are seconds since the start of the history."""

    key: str
    """ "namespace/name"."""
    put: msgspec.Raw
    """As a trace has it, without a node."""
    alike: tuple[str, ...]
    """Who is like it: keys for what is known of lifetimes."""
    arrived: float
    priority: int = 0
    bound: float | None = None
    node: str = ""
    ended: float | None = None
    is_over: bool = False
    """It ended by itself, or was deleted; False: something else ended it."""
    deadline: float | None = None
    """Seconds for which it may run."""
    is_observed: bool = False
    """It was seen when it was bound: a scheduler chose its node while somebody watched."""
    is_tried: bool = True
    """False: something else than the scheduler holds it back, or decides about it."""

    def was_there(self, at: float) -> bool:
        return self.arrived <= at and (self.ended is None or self.ended > at)

    def ran(self, at: float) -> bool:
        return self.bound is not None and self.bound <= at


class PodHistory(msgspec.Struct, eq=False):
    """All of them."""

    start: float
    """Seconds since the epoch."""
    end: float
    """Until then it is known what happened."""
    pods: list[KnownPod]
    """In the order in which they came."""
    others: list[TraceRecord]
    """What happened to everything else."""

    @property
    def is_observed(self) -> bool:
        """Was it seen when pods were bound? A trace that was not recorded says only what came."""
        return any(pod.is_observed for pod in self.pods)

    def others_at(self, at: float) -> Iterator[msgspec.Raw]:
        """Everything but pods, as it was at a moment."""
        there: dict[ObjectName, msgspec.Raw] = {}
        for record in self.others:
            if record.at > at:
                break
            name = record.name
            assert name is not None, "gaps are not among them"
            if record.puts:
                there[name] = record.put
            else:
                there.pop(name, None)
        yield from there.values()

    def pods_at(self, at: float) -> list[KnownPod]:
        """Those that were there: who waited, and who ran."""
        return [pod for pod in self.pods if pod.was_there(at)]

    def lifetimes(self, at: float) -> Lifetimes:
        """What was known of lifetimes at a moment."""
        known = Lifetimes()
        for pod in self.pods:
            if pod.arrived > at:
                break
            if pod.bound is not None and pod.bound <= at:
                has_ended = pod.ended is not None and pod.ended <= at
                seconds = (pod.ended if has_ended and pod.ended is not None else at) - pod.bound
                known.learn(pod.alike, seconds, is_over=has_ended and pod.is_over)
        return known

    def time(self, at: float) -> str:
        """A moment, as RFC 3339."""
        return rfc3339_micro(self.start + at)


def alike(pod: Pod) -> tuple[str, ...]:
    """Its owner, the owners of its kind with pods of its size, those of its namespace, and all of its kind."""
    owner = _RUN_NUMBER.sub("", owner_of(pod))
    kind = owner.partition(" ")[0]
    near = f"{kind} {pod.namespace}"
    own = () if pod.controller is None else (owner,)
    return (*own, f"{near} {shape_of(pod)}", near, kind)


# --- from a trace -----------------------------------------------------------------------------------------------------


def history_of_trace(start: float, records: Iterable[TraceRecord]) -> PodHistory:
    """What was observed of the pods; HistoryTooLong if they do not fit into memory, DecodeError if one is none."""
    reading = _Reading(start)
    for record in records:
        reading.take(record)
    return reading.history()


class _Reading:
    def __init__(self, start: float) -> None:
        self._history = PodHistory(start, 0.0, [], [])
        self._live: dict[str, KnownPod] = {}
        self._deadlines: dict[str, float] = {}

    def take(self, record: TraceRecord) -> None:
        name = record.name
        self._history.end = record.at
        if name is None:
            return
        if name.kind != "Pod":
            self._history.others.append(record)
            if name.kind == "Job" and record.puts:
                self._note_deadline(name, record)
            return
        key = f"{name.namespace or 'default'}/{name.name}"
        known = self._live.get(key)
        if not record.puts:
            self._delete(key, record.at)
        elif known is None or not known.was_there(record.at):
            self._live[key] = self._pod(record)

    def history(self) -> PodHistory:
        return self._history

    def _pod(self, record: TraceRecord) -> KnownPod:
        if len(self._history.pods) >= MOST_PODS:
            raise HistoryTooLong(f"there are more than {MOST_PODS:,} pods: take a part, as pilotage trace cut does")
        pod, seen = decode_pod(bytes(record.put)), pod_seen(record)
        put = _without_place(record.put) if pod.node_name or seen.observed_node else record.put
        known = KnownPod(pod.key, put, alike(pod), record.at, pod.priority, is_tried=not pod.spec.scheduling_gates)
        known.node = pod.node_name or seen.observed_node
        if known.node:
            known.bound = record.at if seen.observed_bound_at is None else seen.observed_bound_at
            known.is_observed = seen.observed_bound_at is not None
        if record.runs is not None and known.bound is not None:
            known.ended, known.is_over = known.bound + record.runs, True
        owner = pod.controller
        if owner is not None and owner.kind == "Job":
            known.deadline = self._deadlines.get(f"{pod.namespace}/{owner.name}")
        self._history.pods.append(known)
        return known

    def _delete(self, key: str, at: float) -> None:
        known = self._live.pop(key, None)
        if known is not None and known.ended is None:
            known.ended, known.is_over = at, True

    def _note_deadline(self, name: ObjectName, record: TraceRecord) -> None:
        seconds = (record.put_object().get("spec") or {}).get("activeDeadlineSeconds")
        if isinstance(seconds, int | float):
            self._deadlines[f"{name.namespace}/{name.name}"] = float(seconds)


def with_decisions(history: PodHistory, result: Path, end: float) -> PodHistory:
    """The same pods with what a simulation has decided about them: that is what really happened, then."""
    by_name: dict[str, list[KnownPod]] = {}
    for pod in history.pods:
        by_name.setdefault(pod.key, []).append(pod)
    found: list[KnownPod] = []
    decode = msgspec.json.Decoder(PodStory).decode
    with (result / DECISIONS).open("rb") as lines:
        for line in lines:
            story = decode(line)
            origin = _origin(by_name, story)
            if origin is not None:
                found.append(_decided(origin, story))
                by_name.setdefault(story.pod, []).append(origin)
    found.sort(key=lambda pod: pod.arrived)
    return PodHistory(history.start, end, found, history.others)


def _origin(by_name: Mapping[str, list[KnownPod]], story: PodStory) -> KnownPod | None:
    """The pod of the trace that a story is about, or about whose replacement it is."""
    own = by_name.get(story.pod) or by_name.get(story.replaces or "") or by_name.get(_first_name(story.pod)) or []
    return min(own, key=lambda pod: abs(pod.arrived - story.arrived), default=None)


def _first_name(pod: str) -> str:
    return re.sub(r"-again-\d+$", "", pod)


def _decided(origin: KnownPod, story: PodStory) -> KnownPod:
    is_over = story.end in ("ended", "deleted")
    return msgspec.structs.replace(
        origin,
        key=story.pod,
        arrived=story.arrived,
        bound=story.bound,
        node=story.node or "",
        ended=story.ended,
        is_over=is_over,
    )


# --- from what the API server has -------------------------------------------------------------------------------------


def history_of_cluster(cluster: Cluster, pods: Iterable[bytes], now: float) -> PodHistory:
    """The same of a cluster in memory, and of its pods as the API server shows them."""
    jobs = cluster.objects("Job")
    limits = {key: job.spec.active_deadline_seconds for key, job in jobs.items()}
    deadlines = {key: float(seconds) for key, seconds in limits.items() if seconds is not None}
    return history_of_objects(pods, object_documents(cluster), deadlines, now)


def joined(earlier: PodHistory, present: PodHistory) -> PodHistory:
    """What a trace says of pods that have ended, and the cluster as it is now."""
    start = min(earlier.start, present.start)
    ended = [pod for pod in earlier.pods if pod.ended is not None]
    pods = [*_moved(ended, earlier.start - start), *_moved(present.pods, present.start - start)]
    pods.sort(key=lambda pod: pod.arrived)
    others = [msgspec.structs.replace(record, at=0.0) for record in present.others]
    return PodHistory(start, present.end + present.start - start, pods, others)


def _moved(pods: Iterable[KnownPod], seconds: float) -> Iterator[KnownPod]:
    for pod in pods:
        bound = None if pod.bound is None else pod.bound + seconds
        ended = None if pod.ended is None else pod.ended + seconds
        yield msgspec.structs.replace(pod, arrived=pod.arrived + seconds, bound=bound, ended=ended)


def history_of_objects(
    pods: Iterable[bytes], others: Iterable[Mapping[str, Any]], deadlines: Mapping[str, float], now: float
) -> PodHistory:
    """What the pods that are there say of themselves, up to now; those who cannot be read are left out.

    `others` is everything else as it is now, and `deadlines` how long the pods of a Job ("namespace/name") may run.
    """
    seen = [found for data in pods if (found := _seen(data, deadlines)) is not None]
    start = min((born for born, _, _ in seen), default=now)
    known = [_since(start, born, times, pod) for born, times, pod in seen]
    known.sort(key=lambda pod: pod.arrived)
    records = [TraceRecord(0.0, put=msgspec.Raw(msgspec.json.encode(obj))) for obj in others]
    return PodHistory(start, max(0.0, now - start), known, records)


def _seen(data: bytes, deadlines: Mapping[str, float]) -> tuple[float, PodTimes, KnownPod] | None:
    try:
        pod, times = decode_pod(data), msgspec.json.decode(data, type=PodTimes)
        content = sighting(KINDS["pods"], data, Redaction()).content
    except (DecodeError, msgspec.DecodeError):
        return None
    born = time_of(pod.creation_timestamp) or times.bound_at
    if born is None or (pod.is_finished and times.ended_at is None):
        return None
    put = msgspec.Raw(msgspec.json.encode(content))
    owner, placed = pod.controller, pod.node_name
    deadline = deadlines.get(f"{pod.namespace}/{owner.name}") if owner is not None and owner.kind == "Job" else None
    known = KnownPod(pod.key, _without_place(put), alike(pod), 0.0, pod.priority, node=placed, deadline=deadline)
    known.is_tried = not pod.spec.scheduling_gates and not pod.is_terminating
    known.is_over = pod.is_finished
    return born, times, known


def _since(start: float, born: float, times: PodTimes, known: KnownPod) -> KnownPod:
    known.arrived = born - start
    if known.node:
        known.bound = max(known.arrived, known.arrived if times.bound_at is None else times.bound_at - start)
        known.ended = None if times.ended_at is None else max(known.bound, times.ended_at - start)
    return known


def _without_place(put: msgspec.Raw) -> msgspec.Raw:
    obj = msgspec.json.decode(put)
    (obj.get("spec") or {}).pop("nodeName", None)
    claims = ("resourceClaimStatuses", "extendedResourceClaimStatus")
    obj["status"] = {name: value for name, value in (obj.get("status") or {}).items() if name in claims}
    for name in [name for name in obj["metadata"].get("annotations") or {} if name.startswith("trace.pilotage.dev/")]:
        del obj["metadata"]["annotations"][name]
    return msgspec.Raw(msgspec.json.encode(obj))
