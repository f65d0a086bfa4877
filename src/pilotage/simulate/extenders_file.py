"""Scenario files of extenders: read, checked and expanded before anything runs.

    version: 1
    kind: extenders
    cases:
    - id: too-slow
      extenders: [{name: e1, filterVerb: filter}]
      cluster: [{node: {name: a, cpu: 4}}, {node: {name: b, cpu: 4}}]
      answers: {e1: {filter: [{keep: [b], failed: {a: too slow}}]}}
      pods: [{name: p, cpu: 1}]
      expect: {requests: [{to: e1, verb: filter, nodes: [a, b]}], pods: {p: {node: b}}}

`name` stands for the address of the extender; the n-th call of a verb gets the n-th answer, further ones the last.
`then` has more rounds: `answers` that replace those before, `pods`, objects to `apply` or seconds to `wait`, `expect`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pilotage.simulate.scenario_file import (
    EXPECTED_OF_POD,
    Scenario,
    ScenarioError,
    reject_repeated,
)
from pilotage.simulate.shorthands import ShorthandError, full_object

Json = dict[str, Any]
Script = dict[str, dict[str, list[Json]]]
"""Answers by extender and verb."""

SERVER: Final = "http://extenders.test"
_KEYS: Final = frozenset(
    {"id", "title", "tier", "features", "basis", "extenders", "config", "gates", "cluster", "answers", "pods", "expect"}
    | {"then"}
)
_ROUND: Final = frozenset({"answers", "pods", "apply", "wait", "expect"})
_ANSWER: Final = frozenset(
    {"keep", "failed", "unresolvable", "error", "scores", "victims", "binds", "body", "status", "delay"}
)
_EXPECTED: Final = frozenset({"requests", "pods", "victims", "events", "schedulerBindings"})
_EXPECTED_OF_REQUEST: Final = frozenset(
    {"to", "verb", "pod", "method", "contentType", "keys", "nulls", "nodes", "victims", "values"}
)


@dataclass(frozen=True, slots=True)
class ExtenderRound:
    """Something happens, and something is expected of it."""

    answers: Script | None
    pods: tuple[Json, ...]
    applied: tuple[Json, ...]
    seconds: float
    expected: Json


@dataclass(frozen=True, slots=True)
class ExtendersScenario:
    """A scheduler with extenders that answer by a script."""

    id: str
    title: str
    tier: str
    setting: Scenario
    """Configuration and gates."""
    cluster: tuple[Json, ...]
    rounds: tuple[ExtenderRound, ...]
    features: tuple[str, ...] = ()


def extenders_scenarios(path: Path, document: Json) -> list[ExtendersScenario]:
    """All cases of a document; ScenarioError if it cannot be used."""
    return reject_repeated(path, [_read(path, raw) for raw in document.get("cases") or ()])


def _read(path: Path, raw: Json) -> ExtendersScenario:
    name = raw.get("id") if isinstance(raw, dict) else None
    if not isinstance(name, str):
        raise ScenarioError(f"{path}: a case without an id")
    try:
        return _scenario(name, raw)
    except (ShorthandError, TypeError, AttributeError, KeyError, ValueError) as error:
        raise ScenarioError(f"{path}: {name}: does not follow the format ({error})") from error


def _scenario(name: str, raw: Json) -> ExtendersScenario:
    _only(raw, _KEYS, "key")
    names = [extender["name"] for extender in raw["extenders"]]
    extenders = [
        {
            "urlPrefix": f"{SERVER}/{extender['name']}",
            **{key: value for key, value in extender.items() if key != "name"},
        }
        for extender in raw["extenders"]
    ]
    first = {key: raw[key] for key in ("answers", "pods", "expect") if key in raw}
    rounds = tuple(_round(one, names) for one in (first, *raw.get("then", ())))
    if not any(one.expected for one in rounds):
        raise ValueError("expects nothing")
    config = {**raw.get("config", {}), "extenders": extenders}
    title, tier = raw.get("title", ""), raw.get("tier", "")
    return ExtendersScenario(
        id=name,
        title=title,
        tier=tier,
        setting=Scenario(name, title, tier, (), config=config, gates=raw.get("gates", {})),
        cluster=tuple(full_object(item) for item in raw.get("cluster", ())),
        rounds=rounds,
        features=tuple(raw.get("features", ())),
    )


def _round(raw: Json, names: list[str]) -> ExtenderRound:
    _only(raw, _ROUND, "key")
    answers = raw.get("answers")
    for name, verbs in (answers or {}).items():
        if name not in names:
            raise ValueError(f'answers of "{name}", which is no extender')
        for given in verbs.values():
            for answer in given:
                _only(answer, _ANSWER, "key of an answer")
    expected = _with_server(raw.get("expect", {}))
    _only(expected, _EXPECTED, "expectation")
    for request in expected.get("requests", ()):
        _only(request, _EXPECTED_OF_REQUEST, "expectation of a request")
    for pod in expected.get("pods", {}).values():
        _only(pod, EXPECTED_OF_POD, "expectation of a pod")
    return ExtenderRound(
        answers=answers,
        pods=tuple(full_object({"pod": pod}) for pod in raw.get("pods", ())),
        applied=tuple(full_object(item) for item in raw.get("apply", ())),
        seconds=float(raw.get("wait", 0)),
        expected=expected,
    )


def _with_server(value: Any) -> Any:
    """With the address of the extenders in place of {server}."""
    if isinstance(value, dict):
        return {key: _with_server(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_server(item) for item in value]
    return value.replace("{server}", SERVER) if isinstance(value, str) else value


def _only(given: Json, known: frozenset[str], what: str) -> None:
    unknown = sorted(given.keys() - known)
    if unknown:
        raise ValueError(f"unknown {what}: {', '.join(unknown)}")
