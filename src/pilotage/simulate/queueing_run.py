"""Run a queueing scenario: step by step, until the first expectation that is not met."""

from __future__ import annotations

from typing import Any

from pilotage.config.problems import ConfigError
from pilotage.jobs.adapters import batch_job
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.configuration.load import queueing_of
from pilotage.simulate.queueing_api import QueueingApi
from pilotage.simulate.queueing_expectations import first_queueing_difference
from pilotage.simulate.queueing_file import ConfigScenario, QueueingScenario
from pilotage.simulate.queueing_stage import QueueingStage
from pilotage.simulate.scenario_file import Step


def queueing_difference(scenario: QueueingScenario | ConfigScenario, api: QueueingApi | None = None) -> str:
    """The first thing that is not as expected, and at which step; "" if all is."""
    if isinstance(scenario, ConfigScenario):
        return _config_difference(scenario)
    stage = QueueingStage(scenario.configuration, api=api)
    for step in scenario.steps:
        if step.name == "expect":
            difference = first_queueing_difference(stage, step.value)
            if difference is not None:
                return f"step {step.number} (at {stage.now():g} s): {difference}"
            continue
        try:
            _perform(stage, step)
            stage.settle()
            stage.engine.check()
        except Exception as error:  # a step that cannot be done is a difference, not the end of the run
            return f"step {step.number} ({step.name}): {type(error).__name__}: {error}"
    return ""


def _perform(stage: QueueingStage, step: Step) -> None:
    value = step.value
    match step.name:
        case "apply":
            for item in value:
                stage.apply(item)
        case "patch":
            for item in value:
                stage.patch(item)
        case "delete":
            for item in value:
                stage.delete(item)
        case "advance":
            stage.advance(value)
        case "pods_ready" | "pods_not_ready":
            for name in value:
                stage.engine.pods_ready(stage.key(name), step.name == "pods_ready")
        case "finish":
            for name in value:
                stage.engine.finished(stage.key(name), "Succeeded", "Job finished successfully")
        case "finish_eviction":
            for name in value:
                stage.engine.pods_gone(stage.key(name))
        case "check":
            stage.write_check(value)
        case "reclaim":
            for name, count in value.items():
                stage.reclaim(name, count)
        case "job_status":
            for name, status in value.items():
                _report_job(stage, name, status)


def _report_job(stage: QueueingStage, name: str, status: dict[str, Any]) -> None:
    job = stage.jobs[name]
    job.report(status)
    stage.engine.pods_ready(job.workload_key, batch_job.run_facts(job.job).are_pods_ready)


# --- configurations ---------------------------------------------------------------------------------------------------


def _config_difference(scenario: ConfigScenario) -> str:
    expected = scenario.expected
    try:
        found = queueing_of(scenario.given)
    except ConfigError as error:
        paths = [problem.path for problem in error.problems]
        if expected["valid"]:
            return f"expected to be accepted, but: {'; '.join(error.lines)}"
        field = expected.get("field")
        return "" if field is None or field in paths else f"field: expected {field}, is {', '.join(paths)}"
    if not expected["valid"]:
        return f"expected to be rejected because of {expected.get('field')}, but was accepted"
    effective = _effective(found)
    for name, wanted in expected.get("effective", {}).items():
        if effective[name] != wanted:
            return f"{name}: expected {wanted}, is {effective[name]}"
    return ""


def _effective(configuration: QueueingConfiguration) -> dict[str, Any]:
    ready = configuration.wait_for_pods_ready
    if ready is None:
        return {}
    strategy = ready.requeuing_strategy
    return {
        "timeout": ready.timeout,
        "recoveryTimeout": ready.effective_recovery_timeout,
        "blockAdmission": ready.block_admission,
        "timestamp": strategy.timestamp,
        "backoffLimitCount": strategy.backoff_limit_count,
        "backoffBaseSeconds": strategy.backoff_base_seconds,
        "backoffMaxSeconds": strategy.backoff_max_seconds,
    }
