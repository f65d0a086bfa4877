"""One extender: when it is asked, what is sent, and what its answer means.

Keys of requests and answers begin with a capital, as kube-scheduler writes them; what is inside (pods, nodes) is
ordinary Kubernetes JSON without kind and apiVersion.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from pilotage.api.preemption import Candidate
from pilotage.clock import Clock
from pilotage.config.kinds import ExtenderConfiguration
from pilotage.escaping import visible
from pilotage.model import Node, Pod
from pilotage.observe.metrics import Metrics

log = logging.getLogger(__name__)

_PLUGIN_POINTS: Final = 10
"""An extender scores from 0 to 10, a plugin from 0 to 100."""
_MOST_SCORE: Final = 10
_MOST_POINTS: Final = 2**53
"""What is added to a node by one extender at most, whatever it says."""
_KEPT_NODES: Final = 16_384
_LONGEST_TEXT: Final = 4096
"""No name is longer, and nobody reads a longer reason."""

JsonOf = Callable[[Any], bytes]
"""The JSON of a pod or a node, as the API server sent it."""


class ExtenderError(Exception):
    """An extender did not answer, or its answer cannot be used."""

    outcome: str = "error"


class ExtenderTimeout(ExtenderError):
    outcome = "timeout"


class CallRejected(ExtenderError):
    """It answered, and said no."""

    outcome = "rejected"


class ExtenderTransport(Protocol):
    """How one extender is reached."""

    async def post(self, verb: str, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer; ExtenderError if there is none in time."""

    async def close(self) -> None: ...


class _UnusableAnswer(ExtenderError):
    """What came back is no answer to the question; `_call` says whose it is."""


class NodeRejection(Struct, frozen=True):
    """An extender does not want the pod on a node."""

    extender: str
    message: str
    """"" if it did not say why."""
    unresolvable: bool


class Filtered(Struct, frozen=True):
    """What is left of the nodes that were sent, and why the others are not."""

    kept: tuple[str, ...]
    rejected: Mapping[str, NodeRejection] = msgspec.field(default_factory=dict)


class _Call(Struct, eq=False):
    outcome: str = "ok"


Victims = Mapping[str, tuple[tuple[str, ...], int]]
"""By node: UIDs, and how many disruption budgets they violate."""


class Extender:
    """An extender as it was configured."""

    def __init__(
        self,
        configuration: ExtenderConfiguration,
        transport: ExtenderTransport,
        json_of: JsonOf,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self.configuration = configuration
        self.name = shown_name(configuration.url_prefix)
        """Its address, which is also its name in texts."""
        self._transport = transport
        self._json_of = json_of
        self._metrics = metrics
        self._clock = clock
        self._managed = frozenset(resource.name for resource in configuration.managed_resources)
        self._is_failing = False
        self._has_odd_scores = False

    def is_interested(self, pod: Pod) -> bool:
        """Whether the pod asks for one of its resources. Without any it is interested in every pod."""
        if not self._managed:
            return True
        return any(
            not self._managed.isdisjoint(amounts)
            for container in (*pod.spec.containers, *pod.spec.init_containers)
            for amounts in (container.resources.requests, container.resources.limits)
        )

    # --- the verbs ---------------------------------------------------------------------------------------------

    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        verb = self.configuration.filter_verb
        with self._call(verb) as call:
            answer = _object(await self._ask(verb, self._about_nodes(pod, nodes)))
            error = _text(_field(answer, "Error"), "Error")
            if error:
                raise _UnusableAnswer(visible(error))
            filtered = self._filtered(answer, {node.name for node in nodes})
            call.outcome = "ok" if filtered.kept else "rejected"
        return filtered

    def _filtered(self, answer: Mapping[str, Any], sent: set[str]) -> Filtered:
        kept = tuple(dict.fromkeys(self._kept(answer)))
        for name in kept:
            if name not in sent:
                claim = f'claims a filtered node "{visible(name)}" which is not found in the input node list'
                raise ExtenderError(f'extender "{self.name}" {claim}')
        rejected: dict[str, NodeRejection] = {}
        for key, unresolvable in (("FailedNodes", False), ("FailedAndUnresolvableNodes", True)):
            for name, message in _mapping(_field(answer, key), key).items():
                rejected[name] = NodeRejection(self.name, visible(_text(message, key)), unresolvable)
        silent = NodeRejection(self.name, "", unresolvable=True)
        return Filtered(kept, {name: rejected.get(name, silent) for name in sent.difference(kept)})

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> dict[str, int]:
        """Points by node, to be added to those of the plugins."""
        verb = self.configuration.prioritize_verb
        scores: dict[str, int] = {}
        with self._call(verb):
            answer = await self._ask(verb, self._about_nodes(pod, nodes))
            for item in _sequence(answer, "the answer"):
                entry = _object(item)
                host, score = _text(_field(entry, "Host"), "Host"), _number(_field(entry, "Score"), "Score")
                self._note_score(score)
                scores[host] = scores.get(host, 0) + score
        factor = self.configuration.weight * _PLUGIN_POINTS
        return {host: max(-_MOST_POINTS, min(_MOST_POINTS, score * factor)) for host, score in scores.items()}

    async def preempt(self, pod: Pod, candidates: Iterable[Candidate]) -> Victims:
        body: dict[str, Any] = {"Pod": self._wire(pod), "NodeNameToVictims": None, "NodeNameToMetaVictims": None}
        in_uids = self.configuration.node_cache_capable
        body["NodeNameToMetaVictims" if in_uids else "NodeNameToVictims"] = {
            candidate.node_name: {
                "Pods": [{"UID": one.uid} if in_uids else self._wire(one) for one in candidate.victims],
                "NumPDBViolations": candidate.violations,
            }
            for candidate in candidates
        }
        verb, key = self.configuration.preempt_verb, "NodeNameToMetaVictims"
        with self._call(verb) as call:
            answer = _object(await self._ask(verb, msgspec.json.encode(body)))
            victims = {name: _victims(value) for name, value in _mapping(_field(answer, key), key).items()}
            call.outcome = "ok" if victims else "rejected"
        return victims

    async def bind(self, pod: Pod, node_name: str) -> None:
        verb = self.configuration.bind_verb
        body = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node_name}
        with self._call(verb):
            answer = _object(await self._ask(verb, msgspec.json.encode(body)))
            error = _text(_field(answer, "Error"), "Error")
            if error:
                raise CallRejected(f"extender {self.name}: {visible(error)}")

    async def close(self) -> None:
        await self._transport.close()

    # --- one call ----------------------------------------------------------------------------------------------

    async def _ask(self, verb: str, body: bytes) -> Any:
        """The JSON of the answer, of whatever type."""
        status, content = await self._transport.post(verb, body)
        if status != 200:
            raise ExtenderError(f"failed {verb} with extender at URL {self.name.rstrip('/')}/{verb}, code {status}")
        return _first_json(content)

    @contextmanager
    def _call(self, verb: str) -> Iterator[_Call]:
        """Measures a call, and tells once that the extender fails, and that it is well again."""
        call, started = _Call(), self._clock.monotonic()
        try:
            yield call
        except ExtenderError as error:
            call.outcome = error.outcome
            if not self._is_failing and not isinstance(error, CallRejected):
                self._is_failing = True
                means = "it is passed over" if self.configuration.ignorable else "its pods back off"
                log.warning("extender fails, %s: extender=%s verb=%s error=%s", means, self.name, verb, error)
            if isinstance(error, _UnusableAnswer):
                raise ExtenderError(f"extender {self.name}: {error}") from error
            raise
        else:
            if self._is_failing:
                self._is_failing = False
                log.info("extender answers again: extender=%s", self.name)
        finally:
            seconds = self._clock.monotonic() - started
            self._metrics.extender_call_duration_seconds.observe(seconds, self.name, verb, call.outcome)

    def _note_score(self, score: int) -> None:
        if not self._has_odd_scores and not 0 <= score <= _MOST_SCORE:
            self._has_odd_scores = True
            log.warning("extender gives scores outside of 0 to 10: extender=%s score=%d", self.name, score)

    # --- what is sent, what comes back -------------------------------------------------------------------------

    def _about_nodes(self, pod: Pod, nodes: Sequence[Node]) -> bytes:
        body: dict[str, Any] = {"Pod": self._wire(pod), "Nodes": None, "NodeNames": None}
        if self.configuration.node_cache_capable:
            body["NodeNames"] = [node.name for node in nodes]
        else:
            body["Nodes"] = {"metadata": {}, "items": [self._wire(node) for node in nodes]}
        return msgspec.json.encode(body)

    def _wire(self, obj: Pod | Node) -> msgspec.Raw:
        return msgspec.Raw(_stripped(self._json_of(obj)))

    def _kept(self, answer: Mapping[str, Any]) -> list[str]:
        names, nodes = _field(answer, "NodeNames"), _field(answer, "Nodes")
        if self.configuration.node_cache_capable and names is not None:
            return [_text(name, "NodeNames") for name in _sequence(names, "NodeNames")]
        if nodes is None:
            return []
        items = _sequence(_field(_object(nodes), "items"), "Nodes.items")
        return [_text(_field(_object(_field(_object(item), "metadata")), "name"), "name") for item in items]


def shown_name(url_prefix: str) -> str:
    """The address of an extender without a name and a password in it."""
    scheme, _, rest = url_prefix.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


@lru_cache(maxsize=_KEPT_NODES)
def _stripped(source: bytes) -> bytes:
    """An object as it is sent inside of another: without its type, and without who manages which field."""
    obj: dict[str, Any] = msgspec.json.decode(source)
    for key in ("kind", "apiVersion"):
        obj.pop(key, None)
    obj.get("metadata", {}).pop("managedFields", None)
    return msgspec.json.encode(obj)


# --- reading an answer: unknown keys are ignored, the case of keys too, and null is what is not there -----------------


def _first_json(content: bytes) -> Any:
    try:
        text = content.decode().lstrip()
        if not text:
            raise _UnusableAnswer("the answer is empty (EOF)")
        return json.JSONDecoder().raw_decode(text)[0]
    except RecursionError as error:
        raise _UnusableAnswer("the answer is nested too deeply") from error
    except ValueError as error:
        raise _UnusableAnswer(f"the answer is no JSON: {' '.join(str(error).split())}") from error


def _field(answer: Mapping[str, Any], key: str) -> Any:
    if key in answer:
        return answer[key]
    return next((value for name, value in answer.items() if name.lower() == key.lower()), None)


def _object(value: Any) -> Mapping[str, Any]:
    return _mapping(value, "the answer")


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    return {} if value is None else _typed(value, dict, what, "an object")


def _sequence(value: Any, what: str) -> Sequence[Any]:
    return [] if value is None else _typed(value, list, what, "a list")


def _text(value: Any, what: str) -> str:
    return "" if value is None else str(_typed(value, str, what, "a string"))[:_LONGEST_TEXT]


def _number(value: Any, what: str) -> int:
    return 0 if value is None else _typed(value, int, what, "an integer")


def _typed(value: Any, wanted: type, what: str, in_words: str) -> Any:
    if isinstance(value, wanted) and not (isinstance(value, bool) and wanted is int):
        return value
    raise _UnusableAnswer(f"the answer cannot be used: expected {in_words} as {what}, got {value!r:.100}")


def _victims(value: Any) -> tuple[tuple[str, ...], int]:
    entry = _object(value)
    pods = _sequence(_field(entry, "Pods"), "Pods")
    uids = tuple(_text(_field(_object(pod), "UID"), "UID") for pod in pods)
    return uids, _number(_field(entry, "NumPDBViolations"), "NumPDBViolations")
