"""Run a scenario: step by step, until the first expectation that is not met."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from pilotage.assembly import SchedulerOptions, options_from_configuration, watched_kinds
from pilotage.clock import Clock
from pilotage.config.feature_gates import FeatureGateError, FeatureGates
from pilotage.config.load import configuration_of
from pilotage.config.problems import ConfigError
from pilotage.framework.errors import ProfileError
from pilotage.framework.plugin_files import LoadedPlugin
from pilotage.simulate.expectations import first_difference
from pilotage.simulate.extenders_file import ExtendersScenario, extenders_scenarios
from pilotage.simulate.extenders_run import extenders_difference
from pilotage.simulate.memory_api import Fault, Key, MemoryApi
from pilotage.simulate.queueing_file import ConfigScenario, QueueingScenario, queueing_scenarios
from pilotage.simulate.queueing_run import queueing_difference
from pilotage.simulate.scenario_file import (
    Scenario,
    ScenarioError,
    Step,
    read_document,
    reject_repeated,
    scheduling_scenarios,
)
from pilotage.simulate.shorthands import NAMESPACE
from pilotage.simulate.stage import Stage

_BACKOFF: Final = {"podInitialBackoffSeconds": "initial_seconds", "podMaxBackoffSeconds": "max_seconds"}


def scenario_options(scenario: Scenario) -> SchedulerOptions:
    """ScenarioError if there can be no such scheduler."""
    try:
        return _options(scenario)
    except ConfigError as error:
        raise ScenarioError(f"{scenario.id}: config: {'; '.join(error.lines)}") from error
    except ProfileError as error:
        raise ScenarioError(f"{scenario.id}: {error}") from error
    except FeatureGateError as error:
        raise ScenarioError(f"{scenario.id}: gates: {'; '.join(error.problems)}") from error


def _options(scenario: Scenario) -> SchedulerOptions:
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    fields = _with_bind_plugins(scenario)
    # No configuration file can switch backoff off, but a scenario can.
    backoff = {name: fields.pop(key) for key, name in _BACKOFF.items() if key in fields}
    configuration = configuration_of({**document, **fields}, scenario.id)
    options = options_from_configuration(
        configuration, [*scenario.plugins, *scenario.loaded], FeatureGates(scenario.gates)
    )
    # Scenarios say what kube-scheduler does: it leaves the status of gated pods alone.
    options = replace(options, backoff=structs.replace(options.backoff, **backoff), reports_gated_pods=False)
    # In virtual time nothing may depend on how fast the machine is.
    options = replace(options, cycle_budget_seconds=math.inf)
    watched_kinds(options)  # what plugins want kept must be watched
    if scenario.max_pool_seconds is None:
        return options
    return replace(options, max_wait_seconds=scenario.max_pool_seconds)


def _with_bind_plugins(scenario: Scenario) -> dict[str, Any]:
    """Bind plugins of a scenario come before DefaultBinder, who would leave them nothing to do."""
    binders = [plugin.plugin_name() for plugin in scenario.plugins if "bind" in getattr(plugin, "script", {})]
    if not binders or "profiles" in scenario.config:
        return dict(scenario.config)
    enabled = [{"name": name} for name in (*binders, "DefaultBinder")]
    bind = {"enabled": enabled, "disabled": [{"name": "*"}]}
    return {**scenario.config, "profiles": [{"schedulerName": "default-scheduler", "plugins": {"bind": bind}}]}


AnyScenario = Scenario | ExtendersScenario | QueueingScenario | ConfigScenario


@dataclass(frozen=True, slots=True)
class ScenarioOutcome:
    """How a scenario ended."""

    scenario: AnyScenario
    difference: str = ""
    """The first thing that is not as expected, and at which step; "" if all is."""

    @property
    def passed(self) -> bool:
        return not self.difference


def load_any(path: Path) -> list[AnyScenario]:
    """All scenarios of a file of either kind; ScenarioError if it cannot be used."""
    document = read_document(path)
    match document.get("kind", "queueing"):
        case "queueing":
            return reject_repeated(path, [*queueing_scenarios(path, document)])
        case "scheduling":
            return [*scheduling_scenarios(path, document)]
        case "extenders":
            return [*extenders_scenarios(path, document)]
        case other:
            raise ScenarioError(f'{path}: is of an unknown kind "{other}"; there are: scheduling, extenders, queueing')


def with_plugins(scenario: AnyScenario, loaded: Sequence[LoadedPlugin]) -> AnyScenario:
    """The scenario with more plugins; one that names the same file keeps it once."""
    if not isinstance(scenario, Scenario):
        return scenario
    known = {plugin.origin for plugin in scenario.loaded}
    return replace(scenario, loaded=(*scenario.loaded, *(one for one in loaded if one.origin not in known)))


def reject_unplayable(scenario: AnyScenario) -> None:
    """ScenarioError if there is no such scheduler. (Configurations of queueing are looked at when a file is read.)"""
    if isinstance(scenario, Scenario):
        scenario_options(scenario)
    elif isinstance(scenario, ExtendersScenario):
        scenario_options(scenario.setting)


def run_scenario(scenario: AnyScenario) -> ScenarioOutcome:
    """Play a scenario to its end or its first difference; ScenarioError if there is no such scheduler."""
    if isinstance(scenario, Scenario):
        return asyncio.run(play(scenario))
    if isinstance(scenario, ExtendersScenario):
        return ScenarioOutcome(scenario, extenders_difference(scenario, scenario_options(scenario.setting)))
    return ScenarioOutcome(scenario, queueing_difference(scenario))


async def play(scenario: Scenario, make_api: Callable[[Clock], MemoryApi] = MemoryApi) -> ScenarioOutcome:
    """`make_api` gives the API server that the scheduler runs on; by default one in memory."""
    options = scenario_options(scenario)
    try:
        async with asyncio.TaskGroup() as tasks:
            stage = Stage(options, tasks, make_api)
            await stage.clock.settle()
            difference = await _play(stage, scenario)
            raise _Curtain(difference)
    except BaseExceptionGroup as group:
        rest = [error for error in group.exceptions if not isinstance(error, _Curtain)]
        if rest:
            return ScenarioOutcome(scenario, f"the scheduler failed: {type(rest[0]).__name__}: {rest[0]}")
        (curtain,) = group.exceptions
        return ScenarioOutcome(scenario, str(curtain))


class _Curtain(Exception):
    """The play is over: ends the tasks of the stage."""


async def _play(stage: Stage, scenario: Scenario) -> str:
    for step in scenario.steps:
        if step.name == "expect":
            difference = first_difference(stage, step.value)
            if difference is not None:
                return f"step {step.number} (at {stage.clock.monotonic():g} s): {difference}"
            continue
        stage.begin_step()
        try:
            await _perform(stage, step)
        except Exception as error:  # a step that cannot be done is a difference, not the end of the run
            return f"step {step.number} ({step.name}): {type(error).__name__}: {error}"
        await stage.clock.settle()
    return ""


async def _perform(stage: Stage, step: Step) -> None:
    value = step.value
    match step.name:
        case "advance":
            await stage.clock.advance(value)
        case "pause":
            stage.pause()
        case "resume":
            stage.resume()
        case "cycle":
            await stage.cycles(value)
        case "permit":
            _permit(stage, value)
        case "fault":
            stage.api.faults.append(Fault(**value))
        case "inject":
            steps: list[Step] = value["steps"]
            stage.inject(value["pod"], partial(_change_all, stage, steps))
        case _:
            _change(stage, step)


def _change_all(stage: Stage, steps: list[Step]) -> None:
    for step in steps:
        _change(stage, step)


def _change(stage: Stage, step: Step) -> None:
    """What happens to objects; each item is a write of its own."""
    api = stage.api
    match step.name:
        case "apply":
            for obj in step.value:
                api.add(obj)
        case "update":
            for update in step.value:
                api.merge(update.key, update.patch)
        case "delete":
            for key in step.value:
                api.remove(key)
        case "terminate":
            for name in step.value:
                api.terminate(_pod(name))
        case "bind":
            for name, node_name in step.value.items():
                api.assign(_pod(name), node_name)
        case "activate":
            stage.scheduler.effects.activate([_uid(stage, name) for name in step.value])


def _permit(stage: Stage, value: dict[str, Any]) -> None:
    held = stage.scheduler.waiting_pods.get(_uid(stage, value["pod"]))
    if held is None:
        raise LookupError(f"pod {value['pod']} does not wait for permission")
    if "allow" in value:
        held.allow(value["allow"])
    else:
        held.reject(value["reject"], "the scenario says so")


def _pod(name: str) -> Key:
    return "Pod", NAMESPACE, name


def _uid(stage: Stage, name: str) -> str:
    pod = stage.api.find(_pod(name))
    if pod is None:
        raise LookupError(f"there is no pod {name}")
    uid: str = pod["metadata"]["uid"]
    return uid
