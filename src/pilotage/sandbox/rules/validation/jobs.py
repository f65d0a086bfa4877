"""Rules for Jobs and CronJobs.

The template of a Job is immutable, except that what steers placement may change while the Job is suspended and has not
started: that is how queueing systems send it to the nodes that they chose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pilotage.sandbox.rules.job_defaults import CONTROLLER_UID
from pilotage.sandbox.rules.json_fields import Json, dict_or_empty, nested
from pilotage.sandbox.rules.validation.kind_rules import KindRules, ObjectUpdate
from pilotage.sandbox.rules.validation.metadata import AnyObject, Metadata
from pilotage.sandbox.rules.validation.pod_shapes import LabelSelector, PodTemplateSpec
from pilotage.sandbox.rules.validation.pods import template_errors
from pilotage.sandbox.rules.validation.problems import IMMUTABLE, Errors, at_least, invalid, one_of, required
from pilotage.sandbox.rules.validation.selectors import label_selector_errors, selector_matches
from pilotage.sandbox.rules.validation.shapes import Int32, Int64, Shape
from pilotage.sandbox.rules.validation.workloads import immutable_errors

_MISMATCH: Final = "`selector` does not match template `labels`"
_LONGEST_CRON_JOB_NAME: Final = 52
_PLACEMENT_FIELDS: Final = ("nodeSelector", "tolerations", "schedulingGates")
_CRON_FIELD: Final = r"[-*/,?LW#0-9A-Za-z]+"
_CRON: Final = re.compile(
    rf"@(yearly|annually|monthly|weekly|daily|midnight|hourly|every \S+)|{_CRON_FIELD}( +{_CRON_FIELD}){{4}}"
)


class JobSpec(Shape):
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    backoff_limit: Int32 | None = None
    backoff_limit_per_index: Int32 | None = None
    active_deadline_seconds: Int64 | None = None
    ttl_seconds_after_finished: Int32 | None = None
    completion_mode: str | None = None
    manual_selector: bool | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec | None = None
    pod_replacement_policy: str | None = None


class Job(AnyObject):
    spec: JobSpec | None = None


class JobTemplate(Shape):
    metadata: Metadata | None = None
    spec: JobSpec | None = None


class CronJobSpec(Shape):
    schedule: str | None = None
    concurrency_policy: str | None = None
    starting_deadline_seconds: Int64 | None = None
    successful_jobs_history_limit: Int32 | None = None
    failed_jobs_history_limit: Int32 | None = None
    job_template: JobTemplate | None = None


class CronJob(AnyObject):
    spec: CronJobSpec | None = None


def _job_errors(job: Job) -> Errors:
    if job.spec is None:
        return [required("spec")]
    errors = _job_spec_errors(job.spec, "spec")
    if job.spec.selector is None:
        return [*errors, required("spec.selector")]
    errors += label_selector_errors(job.spec.selector, "spec.selector")
    errors += _generated_selector_errors(job)
    template = job.spec.template
    labels = template.metadata.labels or {} if template is not None and template.metadata is not None else {}
    if template is not None and not selector_matches(job.spec.selector, labels):
        errors.append(invalid("spec.template.metadata.labels", labels, _MISMATCH))
    return errors


def _generated_selector_errors(job: Job) -> Errors:
    """Without manualSelector the selector must be the one that the server made."""
    if job.spec is None or job.spec.selector is None or job.spec.manual_selector or job.metadata is None:
        return []
    wanted = {CONTROLLER_UID: job.metadata.uid or ""}
    if job.spec.selector.match_labels == wanted and not job.spec.selector.match_expressions:
        return []
    return [invalid("spec.selector", job.spec.selector.match_labels, "`selector` not auto-generated")]


def _job_spec_errors(spec: JobSpec, path: str) -> Errors:
    errors: Errors = []
    for field, value in (
        ("parallelism", spec.parallelism),
        ("completions", spec.completions),
        ("activeDeadlineSeconds", spec.active_deadline_seconds),
        ("backoffLimit", spec.backoff_limit),
        ("backoffLimitPerIndex", spec.backoff_limit_per_index),
        ("ttlSecondsAfterFinished", spec.ttl_seconds_after_finished),
    ):
        errors += at_least(f"{path}.{field}", value, 0)
    errors += one_of(f"{path}.completionMode", spec.completion_mode, ("Indexed", "NonIndexed"))
    errors += one_of(f"{path}.podReplacementPolicy", spec.pod_replacement_policy, ("Failed", "TerminatingOrFailed"))
    if spec.completion_mode == "Indexed" and spec.completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    errors += template_errors(spec.template, f"{path}.template")
    pod_spec = spec.template.spec if spec.template is not None else None
    if pod_spec is not None and pod_spec.restart_policy not in ("OnFailure", "Never"):
        place = f"{path}.template.spec.restartPolicy"
        errors.append(required(place, 'valid values: "OnFailure", "Never"'))
    return errors


def _job_update_errors(change: ObjectUpdate) -> Errors:
    errors = immutable_errors(
        change, "selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy"
    )
    if not _is_elastic(change):
        errors += immutable_errors(change, "completions")
    old, new = nested(change.old, "spec", "template"), nested(change.new, "spec", "template")
    if _may_be_steered(change.old):
        new = _with_placement_of(dict_or_empty(old), dict_or_empty(new))
    if old != new:
        errors.append(invalid("spec.template", new, IMMUTABLE))
    return errors


def _is_elastic(change: ObjectUpdate) -> bool:
    """An Indexed Job may be resized as long as completions and parallelism move together."""
    spec = change.after.spec
    return spec is not None and spec.completion_mode == "Indexed" and spec.completions == spec.parallelism


def _may_be_steered(job: Json) -> bool:
    return nested(job, "spec", "suspend") is True and nested(job, "status", "startTime") is None


def _with_placement_of(old: Json, new: Json) -> Json:
    """A copy of the template `new` in which everything that may be steered has its old value again."""
    spec = dict(dict_or_empty(new.get("spec")))
    _restore(spec, dict_or_empty(old.get("spec")), _PLACEMENT_FIELDS)
    affinity = dict(dict_or_empty(spec.get("affinity")))
    _restore(affinity, dict_or_empty(nested(old, "spec", "affinity")), ("nodeAffinity",))
    if affinity or nested(old, "spec", "affinity") is not None:
        spec["affinity"] = affinity
    else:
        spec.pop("affinity", None)
    metadata = dict(dict_or_empty(new.get("metadata")))
    _restore(metadata, dict_or_empty(old.get("metadata")), ("labels", "annotations"))
    return {**new, "spec": spec, "metadata": metadata} if metadata or "metadata" in old else {**new, "spec": spec}


def _restore(target: Json, source: Json, fields: tuple[str, ...]) -> None:
    for field in fields:
        if field in source:
            target[field] = source[field]
        else:
            target.pop(field, None)


def _cron_job_errors(cron_job: CronJob) -> Errors:
    spec = cron_job.spec
    if spec is None:
        return [required("spec")]
    errors: Errors = []
    name: Any = cron_job.metadata.name if cron_job.metadata is not None else None
    if name and len(name) > _LONGEST_CRON_JOB_NAME:
        errors.append(invalid("metadata.name", name, f"must be no more than {_LONGEST_CRON_JOB_NAME} characters"))
    if not spec.schedule:
        errors.append(required("spec.schedule"))
    elif not _CRON.fullmatch(spec.schedule.strip()):
        problem = "expected five fields (minute hour day month weekday) or a descriptor such as @daily"
        errors.append(invalid("spec.schedule", spec.schedule, problem))
    errors += one_of("spec.concurrencyPolicy", spec.concurrency_policy, ("Allow", "Forbid", "Replace"))
    for field, value in (
        ("startingDeadlineSeconds", spec.starting_deadline_seconds),
        ("successfulJobsHistoryLimit", spec.successful_jobs_history_limit),
        ("failedJobsHistoryLimit", spec.failed_jobs_history_limit),
    ):
        errors += at_least(f"spec.{field}", value, 0)
    job_spec = spec.job_template.spec if spec.job_template is not None else None
    if job_spec is None:
        return [*errors, required("spec.jobTemplate.spec")]
    if job_spec.selector is not None:
        errors.append(invalid("spec.jobTemplate.spec.selector", {}, "`selector` will be auto-generated"))
    return errors + _job_spec_errors(job_spec, "spec.jobTemplate.spec")


JOB_RULES: Final[Mapping[str, KindRules]] = {
    "Job": KindRules(Job, _job_errors, update=_job_update_errors),
    "CronJob": KindRules(CronJob, _cron_job_errors),
}
