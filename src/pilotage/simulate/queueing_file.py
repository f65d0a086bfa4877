"""Scenario files of workload queueing: read, checked and expanded before anything runs.

version: 1
fixtures: {solo: [{flavor: {name: std}}, ...]}
scenarios:
- id: borrow
  config: {waitForPodsReady: {timeout: 10s}}
  steps:
  - apply: [{fixture: solo}, {workload: {name: a, queue: lq, requests: {cpu: 1}}}]
  - advance: 10s
  - expect: {holding: [], workloads: {a: {state: pending}}}
- id: bad-timestamp
  kind: config
  given: {waitForPodsReady: {requeuingStrategy: {timestamp: Front}}}
  expect: {valid: false, field: waitForPodsReady.requeuingStrategy.timestamp}
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pilotage.config.problems import ConfigError
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.configuration.load import queueing_of
from pilotage.model.durations import parse_duration
from pilotage.simulate.queueing_objects import NAMESPACE, SHORTS, QueueingShorthandError, checked, complete
from pilotage.simulate.scenario_file import ScenarioError, Step

Json = dict[str, Any]

_KEYS: Final = frozenset({"id", "kind", "title", "tier", "features", "basis", "config", "steps", "given", "expect"})
_CONFIG: Final = frozenset({"waitForPodsReady", "fairSharing", "admissionFairSharing", "featureGates"})
_NAMED: Final = ("pods_ready", "pods_not_ready", "finish", "finish_eviction")
_STEPS: Final = frozenset({"apply", "patch", "delete", "advance", "check", "reclaim", "job_status", "expect", *_NAMED})
EXPECTED: Final = frozenset(
    {"at", "holding", "admission_log", "pending_order", "usage", "clusterQueues", "visibility", "jobs", "events"}
    | {"no_events", "metrics", "workloads"}
)
EXPECTED_OF_WORKLOAD: Final = frozenset(
    {"state", "active", "priority", "flavors", "counts", "requeue", "conditions", "transitions", "queue", "checks"}
    | {"evictions"}
)
_EXPECTED_OF_CONFIG: Final = frozenset({"valid", "field", "effective"})


@dataclass(frozen=True, slots=True)
class QueueingScenario:
    """What happens to a cluster with queues, step by step."""

    id: str
    title: str
    tier: str
    configuration: QueueingConfiguration
    steps: tuple[Step, ...]
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigScenario:
    """A configuration that is accepted or rejected."""

    id: str
    title: str
    tier: str
    given: Json
    expected: Json
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Named:
    """An object and its fields."""

    kind: str
    name: str
    namespace: str
    fields: Json


class _Wrong(ValueError):
    pass


def queueing_scenarios(path: Path, document: Json) -> list[QueueingScenario | ConfigScenario]:
    """All scenarios of a file; ScenarioError if it cannot be used."""
    fixtures, found = document.get("fixtures") or {}, []
    for raw in document.get("scenarios") or ():
        name = raw.get("id") if isinstance(raw, dict) else None
        if not isinstance(name, str):
            raise ScenarioError(f"{path}: a scenario without an id")
        try:
            found.append(_scenario(raw, fixtures))
        except (QueueingShorthandError, _Wrong) as error:
            raise ScenarioError(f"{path}: {name}: {error}") from error
        except ConfigError as error:
            raise ScenarioError(f"{path}: {name}: config: {'; '.join(error.lines)}") from error
        except (TypeError, AttributeError, KeyError, ValueError) as error:
            raise ScenarioError(f"{path}: {name}: does not follow the format ({error})") from error
    return found


def _scenario(raw: Json, fixtures: Json) -> QueueingScenario | ConfigScenario:
    _only(raw, _KEYS, "key")
    known = (raw["id"], raw.get("title", ""), raw.get("tier", ""))
    features = tuple(raw.get("features", ()))
    if raw.get("kind") == "config":
        _only(raw["expect"], _EXPECTED_OF_CONFIG, "expectation")
        return ConfigScenario(*known, raw["given"], raw["expect"], features)
    if "kind" in raw:
        raise _Wrong(f'unknown kind "{raw["kind"]}"')
    steps = tuple(_step(step, number, fixtures) for number, step in enumerate(raw["steps"], start=1))
    if not any(step.name == "expect" for step in steps):
        raise _Wrong("expects nothing")
    return QueueingScenario(*known, _configuration(raw.get("config") or {}), steps, features)


def _configuration(config: Json) -> QueueingConfiguration:
    """Without the block waitForPodsReady the feature is off, unlike in a file."""
    _only(config, _CONFIG, "configuration")
    found = queueing_of(config)
    return found if "waitForPodsReady" in config else replace(found, wait_for_pods_ready=None)


def _step(raw: Json, number: int, fixtures: Json) -> Step:
    if not isinstance(raw, dict) or len(raw) != 1:
        raise _Wrong(f"step {number}: a step has one key")
    ((name, value),) = raw.items()
    if name not in _STEPS:
        raise _Wrong(f'step {number}: unknown step "{name}"')
    return Step(name, _expanded(name, value, fixtures), number)


def _expanded(name: str, value: Any, fixtures: Json) -> Any:
    match name:
        case "apply":
            return [one for item in value for one in _applied(item, fixtures)]
        case "patch":
            return [_patch(item) for item in value]
        case "delete":
            return [_named(item) for item in value]
        case "advance":
            return parse_duration(value) if isinstance(value, str) else float(value)
        case "expect":
            _only(value, EXPECTED, "expectation")
            for workload, expected in value.get("workloads", {}).items():
                _only(expected, EXPECTED_OF_WORKLOAD, f"expectation of workload {workload}")
        case _ if name in _NAMED and not isinstance(value, list):
            raise _Wrong(f"{name}: expected a list of workloads")
    return value


def _applied(item: Json, fixtures: Json) -> list[Named]:
    if "fixture" in item:
        return [one for inner in fixtures[item["fixture"]] for one in _applied(inner, fixtures)]
    if len(item) != 1:
        raise _Wrong(f"an object has one key, its kind; this has {', '.join(item) or 'none'}")
    ((kind, fields),) = item.items()
    complete(kind, fields)
    return [Named(kind, fields["name"], fields.get("namespace", NAMESPACE), fields)]


def _patch(item: Json) -> Named:
    named = _named(item)
    return replace(named, fields=checked(named.kind, item["set"]))


def _named(item: Json) -> Named:
    kinds = [kind for kind in item if kind in SHORTS]
    if len(kinds) != 1:
        raise _Wrong(f"cannot find out which object is meant by {item}")
    return Named(kinds[0], item[kinds[0]], item.get("namespace", NAMESPACE), {})


def _only(given: Json, known: frozenset[str], what: str) -> None:
    unknown = sorted(given.keys() - known)
    if unknown:
        raise _Wrong(f"unknown {what}: {', '.join(unknown)}")
