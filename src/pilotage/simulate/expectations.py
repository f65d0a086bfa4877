"""What a scenario expects, compared with what is: the first difference as a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pilotage.observe.instruments import Histogram
from pilotage.observe.metrics import Metrics
from pilotage.queue.sub_queues import QueuedPodInfo, SubQueue
from pilotage.simulate.memory_api import Json
from pilotage.simulate.shorthands import NAMESPACE
from pilotage.simulate.stage import Stage

_QUEUES: Final = {
    SubQueue.ACTIVE: "active",
    SubQueue.BACKOFF: "backoff",
    SubQueue.ERROR_BACKOFF: "backoff",
    SubQueue.UNSCHEDULABLE: "unschedulable",
    SubQueue.GATED: "gated",
}


def first_difference(stage: Stage, expected: Json) -> str | None:
    """None if everything that is named is as expected."""
    return next(_differences(stage, expected), None)


def _differences(stage: Stage, expected: Json) -> Iterator[str]:
    if "at" in expected and stage.clock.monotonic() != expected["at"]:
        yield f"at: expected {expected['at']}, is {stage.clock.monotonic():g}"
    if "requeued" in expected and stage.requeued != set(expected["requeued"]):
        yield f"requeued: expected {sorted(expected['requeued'])}, were {sorted(stage.requeued)}"
    if "popped" in expected and stage.popped != expected["popped"]:
        yield f"popped: expected {expected['popped']}, were {stage.popped}"
    for name in expected.get("gone", ()):
        if stage.api.find(("Pod", NAMESPACE, name)) is not None:
            yield f"gone: {name} is still there"
    yield from _event_differences(stage, expected)
    for name, value in expected.get("metrics", {}).items():
        is_now = metric(stage.scheduler.metrics, name)
        if is_now != value:
            yield f"metric {name}: expected {value}, is {is_now}"
    for name, pod in expected.get("pods", {}).items():
        yield from _pod_differences(stage, name, pod)


def _event_differences(stage: Stage, expected: Json) -> Iterator[str]:
    seen = {f"{pod}:{reason}" for pod, reason in stage.api.events}
    for event in expected.get("events", ()):
        if event not in seen:
            yield f"events: no {event}"
    for event in expected.get("noEvents", ()):
        if event in seen:
            yield f"noEvents: there was {event}"


# --- pods -------------------------------------------------------------------------------------------------------------


class _PodFacts:
    """Everything that can be expected of the pod that is now, or was last, known under a name."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self._pod = stage.api.last_known(("Pod", NAMESPACE, name))
        self._uid: str = self._pod.get("metadata", {}).get("uid", "")
        self._entry = stage.queue.entry(self._uid)
        self._ticket = next((t for t in stage.queue.tickets() if t.uid == self._uid), None)

    @property
    def _queued(self) -> QueuedPodInfo | None:
        return self._entry or (self._ticket.entry if self._ticket is not None else None)

    def queue(self) -> str:
        if self._entry is not None:
            return _QUEUES[self._entry.home]
        if self._ticket is None or self._stage.queue.is_binding(self._ticket):
            return "none"
        return "in-flight"

    def error_backoff(self) -> bool:
        return self._entry is not None and self._entry.home is SubQueue.ERROR_BACKOFF

    def node(self) -> str | None:
        return self._pod.get("spec", {}).get("nodeName") or None

    def nominated(self) -> str | None:
        return self._pod.get("status", {}).get("nominatedNodeName") or None

    def deleting(self) -> bool:
        return "deletionTimestamp" in self._pod.get("metadata", {})

    def rejected_by(self) -> set[str]:
        return set() if self._queued is None else set(self._queued.rejectors)

    def pending(self) -> set[str]:
        return set() if self._queued is None else set(self._queued.pending)

    def attempts(self) -> int:
        return self._stage.attempts[self._uid]

    def condition(self) -> Json | None:
        conditions = self._pod.get("status", {}).get("conditions", ())
        return next((c for c in conditions if c["type"] == "PodScheduled"), None)

    def requeued_by(self) -> str | None:
        return self._stage.requeued_by.get(self._uid)


_FACTS: Final[Mapping[str, Callable[[_PodFacts], Any]]] = {
    "queue": _PodFacts.queue,
    "errorBackoff": _PodFacts.error_backoff,
    "node": _PodFacts.node,
    "nominated": _PodFacts.nominated,
    "deleting": _PodFacts.deleting,
    "rejectedBy": _PodFacts.rejected_by,
    "pending": _PodFacts.pending,
    "attempts": _PodFacts.attempts,
    "condition": _PodFacts.condition,
    "requeuedBy": _PodFacts.requeued_by,
}


def _pod_differences(stage: Stage, name: str, expected: Json) -> Iterator[str]:
    facts = _PodFacts(stage, name)
    for field, wanted in expected.items():
        found = _FACTS[field](facts)
        if isinstance(found, set):
            wanted = set(wanted)
        if field == "condition" and wanted is not None:
            found = _condition_like(wanted, found or {})
        if wanted == "*" and found is not None:
            continue
        if found != wanted:
            yield f"pod {name}: {field}: expected {_text(wanted)}, is {_text(found)}"


def _condition_like(wanted: Json, found: Json) -> Json:
    """What is wanted of a condition as it is; `contains` has the parts of its message that are there."""
    parts = [part for part in wanted.get("contains", ()) if part in found.get("message", "")]
    told = {key: found.get(key) for key in wanted}
    if "contains" in wanted:
        told["contains"] = parts if parts == wanted["contains"] else [found.get("message", "")]
    return told


def _text(value: Any) -> str:
    if isinstance(value, set):
        return str(sorted(value))
    return "null" if value is None else str(value)


# --- metrics ----------------------------------------------------------------------------------------------------------


def metric(metrics: Metrics, text: str) -> int | str:
    """The value of `name{label=value,...}`, without the prefix `scheduler_`, summed over labels that are not given."""
    name, _, rest = text.partition("{")
    wanted = dict(pair.split("=", 1) for pair in rest.rstrip("}").split(",") if pair)
    instrument = metrics.named(f"{metrics.prefix}{name}")
    if instrument is None or isinstance(instrument, Histogram) or not wanted.keys() <= set(instrument.label_names):
        return "not known"
    return int(
        sum(
            value
            for labels, value in instrument.values().items()
            if wanted.items() <= dict(zip(instrument.label_names, labels, strict=True)).items()
        )
    )
