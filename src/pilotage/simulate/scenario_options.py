"""The scheduler that a scenario asks for: its configuration, feature gates and scripted plugins."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

from pilotage.assembly import SchedulerOptions, options_from_configuration, watched_kinds
from pilotage.config.feature_gates import FeatureGateError, FeatureGates
from pilotage.config.load import configuration_of
from pilotage.config.problems import ConfigError
from pilotage.framework.errors import ProfileError
from pilotage.simulate.scenario_file import Scenario, ScenarioError

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
    options = replace(options, backoff=replace(options.backoff, **backoff), reports_gated_pods=False)
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
