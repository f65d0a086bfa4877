"""Jobs and CronJobs."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pilotage.sandbox.rules.defaults import apply_defaults
from pilotage.sandbox.rules.validation import validate_create, validate_update


def job(suspend: bool = False, started: str | None = None, **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    obj: dict[str, Any] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "uid": "u"},
        "spec": {"template": template, "suspend": suspend, **spec},
        "status": {"startTime": started} if started else {},
    }
    apply_defaults("Job", obj)
    return obj


def messages(obj: dict[str, Any]) -> list[str]:
    return [str(error) for error in validate_create(obj["kind"], obj)]


def test_defaulted_job_is_fine() -> None:
    assert messages(job()) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"parallelism": -1}, "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"),
        ({"backoffLimit": -1}, "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"),
        (
            {"completionMode": "Indexed", "parallelism": 1},
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        (
            {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
            'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
        ),
    ],
)
def test_wrong_job(spec: dict[str, Any], expected: str) -> None:
    assert messages(job(**spec)) == [expected]


def test_own_selector_needs_manual_selector() -> None:
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"},
    }
    own = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
    (message,) = messages(job(**copy.deepcopy(own)))
    assert message.endswith("`selector` not auto-generated")
    assert messages(job(manualSelector=True, **copy.deepcopy(own))) == []


@pytest.mark.parametrize(("field", "value"), [("completions", 5), ("completionMode", "Indexed"), ("managedBy", "x")])
def test_job_is_mostly_immutable(field: str, value: Any) -> None:
    old, new = job(completions=3, parallelism=3), job(completions=3, parallelism=3)
    new["spec"][field] = value
    assert [(e.path, e.problem) for e in validate_update("Job", old, new)] == [(f"spec.{field}", "field is immutable")]


def test_parallelism_and_suspension_may_change() -> None:
    assert validate_update("Job", job(), job(completions=1, parallelism=7, suspend=True)) == []


def test_indexed_job_grows_with_its_parallelism() -> None:
    old = job(completionMode="Indexed", completions=2, parallelism=2)
    assert validate_update("Job", old, job(completionMode="Indexed", completions=4, parallelism=4)) == []
    assert validate_update("Job", old, job(completionMode="Indexed", completions=4, parallelism=2)) != []


def steered(obj: dict[str, Any]) -> dict[str, Any]:
    new = copy.deepcopy(obj)
    new["spec"]["template"]["spec"]["nodeSelector"] = {"zone": "a"}
    new["spec"]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    new["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": {}}
    new["spec"]["template"]["metadata"]["annotations"] = {"a": "b"}
    new["spec"]["suspend"] = False
    return new


def test_suspended_job_may_be_steered_before_its_start() -> None:
    old = job(suspend=True)
    assert validate_update("Job", old, steered(old)) == []


@pytest.mark.parametrize("old", [job(), job(suspend=True, started="2024-01-01T00:00:00Z")])
def test_running_or_started_job_may_not_be_steered(old: dict[str, Any]) -> None:
    assert [error.path for error in validate_update("Job", old, steered(old))] == ["spec.template"]


def test_image_of_a_suspended_job_stays() -> None:
    old = job(suspend=True)
    new = copy.deepcopy(old)
    new["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    assert [error.path for error in validate_update("Job", old, new)] == ["spec.template"]


def cron_job(**spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    spec = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": template}}, **spec}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": spec}


@pytest.mark.parametrize("schedule", ["0 0 * * *", "@hourly", "@every 5m", "1,2 3-4 */5 JAN MON", " 0 0 * * * "])
def test_good_schedules(schedule: str) -> None:
    assert messages(cron_job(schedule=schedule)) == []


@pytest.mark.parametrize("schedule", ["* * * *", "soon", "@later", "* * * * * *"])
def test_bad_schedules(schedule: str) -> None:
    (message,) = messages(cron_job(schedule=schedule))
    assert message.startswith(f'spec.schedule: Invalid value: "{schedule}"')


def test_cron_job_needs_schedule_and_template() -> None:
    assert messages(cron_job(schedule=None, jobTemplate=None)) == [
        "spec.schedule: Required value",
        "spec.jobTemplate.spec: Required value",
    ]
    assert messages(cron_job(concurrencyPolicy="Maybe")) == [
        'spec.concurrencyPolicy: Unsupported value: "Maybe": supported values: "Allow", "Forbid", "Replace"'
    ]
