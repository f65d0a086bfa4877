"""Scenario files: read, checked and expanded before anything runs.

    version: 1
    kind: scheduling
    scenarios:
    - id: uncordon
      title: Uncordoning a node wakes the pod
      steps:
      - apply: [{node: {name: n, unschedulable: true}}, {pod: {name: p}}]
      - update: [{node: n, set: {unschedulable: false}}]
      - expect: {requeued: [p], pods: {p: {node: n}}}

After loading, objects are whole, updates are merge patches, and every name of a step or an expectation is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import yaml

from pilotage.api.plugin import Plugin
from pilotage.framework.plugin_files import LoadedPlugin, PluginFileError, load_plugin_files, named_files
from pilotage.simulate.memory_api import Key
from pilotage.simulate.scripted_plugins import ScriptError, scripted_plugin
from pilotage.simulate.shorthands import NAMESPACE, SHORTHANDS, ShorthandError, full_object, merge_patch

Json = dict[str, Any]

NESTED: Final = frozenset({"apply", "update", "delete", "terminate", "bind", "activate"})
STEPS: Final = NESTED | {"advance", "pause", "resume", "cycle", "permit", "inject", "fault", "expect"}
EXPECTED: Final = frozenset(
    {"at", "pods", "requeued", "popped", "events", "noEvents", "metrics", "gone", "groups", "anyOf"}
    | {"bound", "unbound", "boundCount", "within", "oneDomain", "apart", "victims", "victimCount"}
)
EXPECTED_OF_GROUP: Final = frozenset({"queue", "members", "gatedBy", "attempts", "condition"})
EXPECTED_OF_POD: Final = frozenset(
    {"queue", "node", "nominated", "rejectedBy", "pending", "attempts", "condition", "requeuedBy", "errorBackoff"}
    | {"deleting"}
)
_KEYS: Final = frozenset(
    {"id", "title", "tier", "features", "basis", "kepOnly", "config", "gates", "maxPool", "plugins", "pluginFiles"}
    | {"steps"}
)


class ScenarioError(ValueError):
    """What is wrong with a file; names the file and the scenario."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do; `value` is what the file says, with short forms expanded."""

    name: str
    value: Any
    number: int
    """Its place in the scenario, from 1."""


@dataclass(frozen=True, slots=True)
class Scenario:
    id: str
    title: str
    tier: str
    steps: tuple[Step, ...]
    features: tuple[str, ...] = ()
    config: Json = field(default_factory=dict)
    gates: dict[str, bool] = field(default_factory=dict)
    max_pool_seconds: float | None = None
    plugins: tuple[type[Plugin], ...] = ()
    loaded: tuple[LoadedPlugin, ...] = ()
    """Plugins of files."""


@dataclass(frozen=True, slots=True)
class Update:
    """A merge patch for one object."""

    key: Key
    patch: Json


def load_scenarios(path: Path) -> list[Scenario]:
    """All scenarios of a file; ScenarioError if it cannot be used."""
    return scheduling_scenarios(path, read_document(path))


def read_document(path: Path) -> Json:
    """What stands in a scenario file of any kind; ScenarioError if it cannot be one."""
    try:
        # Not read as kubectl reads manifests (`kube_yaml`): there `n` is false, and here the name of a node.
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except yaml.YAMLError as error:
        raise ScenarioError(f"{path}: is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict) or document.get("version") != 1:
        raise ScenarioError(f'{path}: is no scenario file; it should begin with "version: 1"')
    return document


def scheduling_scenarios(path: Path, document: Json) -> list[Scenario]:
    """All scenarios of a document; ScenarioError if it cannot be used."""
    if document.get("kind") != "scheduling":
        raise ScenarioError(f'{path}: is no scenario file of scheduling; it should say "kind: scheduling"')
    reader = _Reader(document.get("fixtures") or {}, path.parent)
    return reject_repeated(path, [_read(path, reader, raw) for raw in document.get("scenarios") or ()])


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


S = TypeVar("S", bound=_Identified)


def reject_repeated(path: Path, found: list[S]) -> list[S]:
    """The scenarios, if no two have the same id."""
    twice = sorted(name for name, count in Counter(one.id for one in found).items() if count > 1)
    if twice:
        raise ScenarioError(f"{path}: used twice: {', '.join(twice)}")
    return found


def _read(path: Path, reader: _Reader, raw: Json) -> Scenario:
    name = raw.get("id") if isinstance(raw, dict) else None
    if not isinstance(name, str):
        raise ScenarioError(f"{path}: a scenario without an id")
    try:
        return reader.scenario(raw)
    except PluginFileError as error:
        raise ScenarioError(f"{path}: {name}: {'; '.join(error.lines)}") from error
    except (ShorthandError, ScriptError, _Wrong) as error:
        raise ScenarioError(f"{path}: {name}: {error}") from error
    except (TypeError, AttributeError, KeyError, ValueError) as error:
        raise ScenarioError(f"{path}: {name}: does not follow the format ({error})") from error


class _Wrong(ValueError):
    pass


class _Reader:
    def __init__(self, fixtures: dict[str, list[Json]], folder: Path) -> None:
        self._fixtures = fixtures
        self._folder = folder

    def scenario(self, raw: Json) -> Scenario:
        _only(raw, _KEYS, "key")
        steps = tuple(self._step(step, number, STEPS) for number, step in enumerate(raw["steps"], start=1))
        if not any(step.name == "expect" for step in steps):
            raise _Wrong("expects nothing")
        return Scenario(
            id=raw["id"],
            title=raw.get("title", ""),
            tier=raw.get("tier", ""),
            steps=steps,
            features=tuple(raw.get("features", ())),
            config=raw.get("config", {}),
            gates=raw.get("gates", {}),
            max_pool_seconds=raw.get("maxPool"),
            plugins=tuple(scripted_plugin(plugin) for plugin in raw.get("plugins", ())),
            loaded=tuple(load_plugin_files(named_files(raw.get("pluginFiles", ()), self._folder))),
        )

    def _step(self, raw: Json, number: int, allowed: Iterable[str]) -> Step:
        if not isinstance(raw, dict) or len(raw) != 1:
            raise _Wrong(f"step {number}: a step has one key")
        ((name, value),) = raw.items()
        if name not in allowed:
            raise _Wrong(f'step {number}: unknown step "{name}"')
        return Step(name, self._expanded(name, value, number), number)

    def _expanded(self, name: str, value: Any, number: int) -> Any:
        match name:
            case "apply":
                return [full_object(obj) for item in value for obj in self._items(item)]
            case "update":
                return [_update(item) for item in value]
            case "delete":
                return [_key(item)[0] for item in value]
            case "inject":
                nested = [self._step(step, number, NESTED) for step in value["steps"]]
                return {"pod": value["pod"], "steps": nested}
            case "expect":
                _check_expectation(value)
                return value
            case _:
                return value

    def _items(self, item: Json) -> list[Json]:
        return self._fixtures[item["fixture"]] if "fixture" in item else [item]


def _update(item: Json) -> Update:
    key, short = _key(item)
    if "merge" in item:
        return Update(key, item["merge"])
    if "set" not in item or "kind" in item:
        raise _Wrong(f"update of {short} {key[2]}: needs {'merge' if 'kind' in item else 'set or merge'}")
    return Update(key, merge_patch(short, key[2], item["set"]))


def _key(item: Json) -> tuple[Key, str]:
    """Of an object by its short form ({pod: p}), or by kind, name and namespace."""
    if "kind" in item:
        return (item["kind"], item.get("namespace", ""), item["name"]), item["kind"]
    shorts = [name for name in item if name in SHORTHANDS]
    if len(shorts) != 1:
        raise _Wrong(f"cannot find out which object is meant by {item}")
    entry = SHORTHANDS[shorts[0]]
    return (entry.kind, NAMESPACE if entry.is_namespaced else "", item[shorts[0]]), shorts[0]


def _check_expectation(value: Json) -> None:
    _only(value, EXPECTED, "expectation")
    for name, pod in value.get("pods", {}).items():
        _only(pod, EXPECTED_OF_POD, f"expectation of pod {name}")
    for name, group in value.get("groups", {}).items():
        _only(group, EXPECTED_OF_GROUP, f"expectation of group {name}")
    for choice in value.get("anyOf", ()):
        _check_expectation(choice)


def _only(given: Json, known: frozenset[str], what: str) -> None:
    unknown = sorted(given.keys() - known)
    if unknown:
        raise _Wrong(f"unknown {what}: {', '.join(unknown)}")
