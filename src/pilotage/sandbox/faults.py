"""An API server that misbehaves on request: slow, overloaded, or gone in the middle of a request.

    latency=20ms      the request is taken in that much later
    slow=2s           the request is done at once, its answer comes that much later
    409, 500, 503     rejected, nothing is done
    429=3s            rejected, with a Retry-After of that long (1 s without a time)
    reset-before      the connection breaks before anything is done
    reset-after       it is done, and the connection breaks before the answer

A rule applies to writes, or to the verb and resource that it names, always or by chance or by schedule:

    429=1s,every=10   409,verb=patch,resource=pods/status,p=0.1   reset-after,resource=pods/binding,after=5,times=2
    500,from=10s,for=5s

Chance comes from a seeded source, so that a run can be repeated. Only what comes in through a transport or a socket is
hit; simulated kubelets and controllers, who are part of the server, are not.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, Final, TypeVar

from pilotage.clock import Clock
from pilotage.model.durations import parse_duration
from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.http.exchange import Request, ServerResponse, error_response

AnswerT = TypeVar("AnswerT")

_VERBS: Final[Mapping[str, str]] = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_READS: Final = ("get", "list", "watch")
_DEFAULT_RETRY_AFTER: Final = 1.0


class FaultError(ValueError):
    """A rule that is not understood."""


class ConnectionReset(Exception):
    """The server hangs up."""


class FaultKind(StrEnum):
    LATENCY = "latency"
    SLOW = "slow"
    CONFLICT = "409"
    THROTTLE = "429"
    ERROR = "500"
    UNAVAILABLE = "503"
    RESET_BEFORE = "reset-before"
    RESET_AFTER = "reset-after"


_TIMED: Final = frozenset({FaultKind.LATENCY, FaultKind.SLOW})
_REASONS: Final[Mapping[FaultKind, str]] = {
    FaultKind.CONFLICT: "Conflict",
    FaultKind.THROTTLE: "TooManyRequests",
    FaultKind.ERROR: "InternalError",
    FaultKind.UNAVAILABLE: "ServiceUnavailable",
}


@dataclass(frozen=True, slots=True)
class FaultRule:
    """What goes wrong, and when. Counts are of requests that the rule is about."""

    kind: FaultKind
    seconds: float = 0.0
    verb: str = ""
    """create, update, patch, delete, get, list or watch; "": every write."""
    resource: str = ""
    """`pods` with its subresources, or one of them (`pods/status`); "": any."""
    probability: float = 1.0
    every: int = 1
    after: int = 0
    times: int = 0
    """At most so often; 0 without end."""
    begin_seconds: float = 0.0
    """Since the server started."""
    last_seconds: float = 0.0
    """From then on for so long; 0 without end."""

    def is_about(self, verb: str, resource: str) -> bool:
        if self.verb != verb if self.verb else verb in _READS:
            return False
        return self.resource in ("", resource, resource.partition("/")[0])


_OPTIONS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "verb": ("verb", str),
    "resource": ("resource", str),
    "p": ("probability", float),
    "every": ("every", int),
    "after": ("after", int),
    "times": ("times", int),
    "from": ("begin_seconds", parse_duration),
    "for": ("last_seconds", parse_duration),
}


def parse_fault(text: str) -> FaultRule:
    """The rule of `429=3s,resource=pods/binding,p=0.1`; FaultError says what is wrong with it."""
    first, *rest = text.split(",")
    name, _, amount = first.partition("=")
    try:
        rule = FaultRule(FaultKind(name.strip()))
    except ValueError:
        raise FaultError(f'"{text}": no such fault "{name}"; there are: {", ".join(FaultKind)}') from None
    if rule.kind in _TIMED and not amount:
        raise FaultError(f'"{text}": say for how long, such as {rule.kind}=20ms')
    if amount:
        rule = replace(rule, seconds=_value(text, name, amount, parse_duration))
    for option in rest:
        key, equals, value = (part.strip() for part in option.partition("="))
        if key not in _OPTIONS or not equals:
            raise FaultError(f'"{text}": "{option}" is none of {", ".join(f"{known}=" for known in _OPTIONS)}')
        field, read = _OPTIONS[key]
        rule = replace(rule, **{field: _value(text, key, value, read)})
    return _checked(text, rule)


def _value(text: str, key: str, value: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(value)
    except ValueError as error:
        raise FaultError(f'"{text}": {key}={value}: {error}') from error


def _checked(text: str, rule: FaultRule) -> FaultRule:
    known = (*_VERBS.values(), *_READS)
    if rule.verb and rule.verb not in known:
        raise FaultError(f'"{text}": no such verb "{rule.verb}"; there are: {", ".join(known)}')
    if not 0 < rule.probability <= 1:
        raise FaultError(f'"{text}": p={rule.probability:g} is not between 0 and 1')
    numbers = [getattr(rule, field.name) for field in fields(rule) if field.type in ("int", "float")]
    if min(numbers) < 0 or rule.every < 1:
        raise FaultError(f'"{text}": numbers must be positive')
    return rule


class Faults:
    """The rules of one server, and how often each was met."""

    def __init__(self, rules: Sequence[FaultRule], clock: Clock, rng: random.Random) -> None:
        self._rules = rules
        self._clock = clock
        self._rng = rng
        self._started = clock.monotonic()
        self._met = [0] * len(rules)
        self.hits = [0] * len(rules)
        """How often each rule has struck."""

    async def around(
        self, request: Request, respond: Callable[[Request], Awaitable[AnswerT]]
    ) -> AnswerT | ServerResponse:
        """The answer to a request, if it gets one; ConnectionReset if not."""
        struck = self.strike(request)
        for rule in struck:
            if rule.kind is FaultKind.LATENCY:
                await self._clock.sleep(rule.seconds)
            elif rule.kind is FaultKind.RESET_BEFORE:
                raise ConnectionReset
            elif rule.kind in _REASONS:
                return error_response(_rejection(rule))
        answer = await respond(request)
        for rule in struck:
            if rule.kind is FaultKind.SLOW:
                await self._clock.sleep(rule.seconds)
            elif rule.kind is FaultKind.RESET_AFTER:
                raise ConnectionReset
        return answer

    def strike(self, request: Request) -> list[FaultRule]:
        """The rules that this request falls under, now."""
        verb, resource = _verb_and_resource(request)
        age = self._clock.monotonic() - self._started
        struck = []
        for number, rule in enumerate(self._rules):
            if rule.is_about(verb, resource) and _is_open(rule, age) and self._is_due(number, rule):
                self.hits[number] += 1
                struck.append(rule)
        return struck

    def _is_due(self, number: int, rule: FaultRule) -> bool:
        self._met[number] += 1
        counted = self._met[number] - rule.after
        if counted <= 0 or counted % rule.every or (rule.times and self.hits[number] >= rule.times):
            return False
        return rule.probability >= 1 or self._rng.random() < rule.probability


def _is_open(rule: FaultRule, age: float) -> bool:
    return age >= rule.begin_seconds and (not rule.last_seconds or age < rule.begin_seconds + rule.last_seconds)


def _rejection(rule: FaultRule) -> ApiError:
    retry_after = round(rule.seconds or _DEFAULT_RETRY_AFTER) if rule.kind is FaultKind.THROTTLE else None
    return ApiError(int(rule.kind), _REASONS[rule.kind], f"a fault was asked for: {rule.kind}", retry_after=retry_after)


def _verb_and_resource(request: Request) -> tuple[str, str]:
    parts = request.path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if len(parts) > 2 and parts[0] == "namespaces":
        parts = parts[2:]
    resource = f"{parts[0]}/{parts[2]}" if len(parts) > 2 else parts[0] if parts else ""
    verb = _VERBS.get(request.method)
    if verb is None:
        verb = "watch" if request.flag("watch") else "list" if len(parts) == 1 else "get"
    return verb, resource
