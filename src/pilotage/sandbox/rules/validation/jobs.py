"""Rules for Jobs and CronJobs.

The template of a Job is immutable, except that what steers placement may change while the Job is suspended and has not
started: that is how queueing systems send it to the nodes that they chose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilotage.sandbox.rules.cron_schedule import ScheduleError, parse_schedule
from pilotage.sandbox.rules.job_defaults import CONTROLLER_UID
from pilotage.sandbox.rules.json_fields import Json, dict_or_empty, nested
from pilotage.sandbox.rules.validation.field_rules import KindRules, Rule, at_least, fields, immutable, one_of
from pilotage.sandbox.rules.validation.group_fields import (
    disruption_mode,
    exactly_one_of,
    min_count,
    resource_claims,
    scheduling_constraints,
)
from pilotage.sandbox.rules.validation.pods import pod_template
from pilotage.sandbox.rules.validation.problems import IMMUTABLE, Errors, invalid, not_supported, required
from pilotage.sandbox.rules.validation.selectors import label_selector, selector_matches
from pilotage.sandbox.rules.validation.workloads import template_labels

_MISMATCH: Final = "`selector` does not match template `labels`"
_OTHER_POLICY: Final = (
    "the basic/gang policy variant is immutable after creation; only schedulingPolicy.gang.minCount may be updated"
)
_LONGEST_CRON_JOB_NAME: Final = 52
_PLACEMENT_FIELDS: Final = ("nodeSelector", "tolerations", "schedulingGates")


def _generated_selector(job: Json, _path: str) -> Errors:
    """Without manualSelector the selector must be the one that the server made."""
    spec = job["spec"]
    selector = spec["selector"]
    wanted = {CONTROLLER_UID: (job.get("metadata") or {}).get("uid") or ""}
    is_generated = selector.get("matchLabels") == wanted and not selector.get("matchExpressions")
    if is_generated or spec.get("manualSelector") or job.get("metadata") is None:
        return []
    return [invalid("spec.selector", selector.get("matchLabels"), "`selector` not auto-generated")]


def _selects_its_pods(job: Json, path: str) -> Errors:
    spec = job.get("spec") or {}
    selector = spec.get("selector")
    if selector is None:
        return [] if job.get("spec") is None else [required("spec.selector")]
    errors = label_selector(selector, "spec.selector") + _generated_selector(job, path)
    if spec.get("template") is not None and not selector_matches(selector, template_labels(spec)):
        errors.append(invalid("spec.template.metadata.labels", template_labels(spec), _MISMATCH))
    return errors


def _indexed_has_completions(spec: Json, path: str) -> Errors:
    if spec.get("completionMode") != "Indexed" or spec.get("completions") is not None:
        return []
    return [required(f"{path}.completions", "when completion mode is Indexed")]


def _ends(spec: Json, path: str) -> Errors:
    """The pods of a job are not restarted for ever."""
    pod_spec = (spec.get("template") or {}).get("spec")
    if pod_spec is None or pod_spec.get("restartPolicy") in ("OnFailure", "Never"):
        return []
    return [required(f"{path}.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')]


def _scheduling(spec: Json, path: str) -> Errors:
    """The PodGroup that a Job makes for its pods."""
    scheduling, parallelism = spec.get("scheduling"), spec.get("parallelism")
    if scheduling is None:
        return []
    path = f"{path}.scheduling"
    count = nested(scheduling, "schedulingPolicy", "gang", "minCount")
    errors = _POLICY(scheduling, path)
    if count is not None and parallelism is not None and count > parallelism:
        problem = f"must not be greater than parallelism ({parallelism})"
        errors.append(invalid(f"{path}.schedulingPolicy.gang.minCount", count, problem))
    return errors + _SCHEDULING(scheduling, path)


def _scheduling_update(old_job: Json, new_job: Json) -> Errors:
    """All of it is immutable but the minCount of a gang."""
    old, new = nested(old_job, "spec", "scheduling"), nested(new_job, "spec", "scheduling")
    if (old is None) != (new is None):
        return [invalid("spec.scheduling", None, IMMUTABLE)]
    before, after = dict_or_empty(old), dict_or_empty(new)
    errors: Errors = []
    if dict_or_empty(before.get("schedulingPolicy")).keys() != dict_or_empty(after.get("schedulingPolicy")).keys():
        errors.append(invalid("spec.scheduling.schedulingPolicy", None, _OTHER_POLICY))
    return errors + [
        invalid(f"spec.scheduling.{field}", None, IMMUTABLE)
        for field in ("schedulingConstraints", "disruptionMode", "resourceClaims")
        if before.get(field) != after.get(field)
    ]


def _job_update(old: Json, new: Json) -> Errors:
    errors = _IMMUTABLE(old, new) + _scheduling_update(old, new)
    if not _is_elastic(dict_or_empty(new.get("spec"))):
        errors += _COMPLETIONS_ARE_IMMUTABLE(old, new)
    before, now = nested(old, "spec", "template"), nested(new, "spec", "template")
    if _may_be_steered(old):
        now = _with_placement_of(dict_or_empty(before), dict_or_empty(now))
    return [*errors, invalid("spec.template", now, IMMUTABLE)] if before != now else errors


def _is_elastic(spec: Json) -> bool:
    """An Indexed Job may be resized as long as completions and parallelism move together."""
    return spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")


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


def _short_name(cron_job: Json, _path: str) -> Errors:
    name = nested(cron_job, "metadata", "name") or ""
    if len(name) <= _LONGEST_CRON_JOB_NAME or cron_job.get("spec") is None:
        return []
    return [invalid("metadata.name", name, f"must be no more than {_LONGEST_CRON_JOB_NAME} characters")]


def _schedule(schedule: str, path: str) -> Errors:
    if "TZ" in schedule:
        problem = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        return [invalid(path, schedule, problem)]
    try:
        parse_schedule(schedule)
    except ScheduleError as error:
        return [invalid(path, schedule, str(error))]
    return []


def _time_zone(name: str, path: str) -> Errors:
    try:
        parse_schedule("@daily", name)
    except ScheduleError as error:
        return [invalid(path, name, str(error))]
    return []


def _codes(requirement: Json, path: str) -> Errors:
    values = requirement.get("values") or []
    if not values:
        return [invalid(f"{path}.values", values, "at least one value is required")]
    if 0 in values and requirement.get("operator") == "In":
        return [invalid(f"{path}.values[{values.index(0)}]", 0, "must not be 0 for the In operator")]
    if sorted(set(values)) != values:
        return [invalid(f"{path}.values", values, "must be ordered and have no duplicates")]
    return []


def _one_requirement(rule: Json, path: str) -> Errors:
    found = (rule.get("onExitCodes") is not None) + bool(rule.get("onPodConditions"))
    if found == 1:
        return []
    problem = (
        "specifying one of OnExitCodes and OnPodConditions is required"
        if not found
        else ("specifying both OnExitCodes and OnPodConditions is not supported")
    )
    return [invalid(path, {}, problem)]


def _per_index(spec: Json, path: str) -> Errors:
    is_indexed, limit = spec.get("completionMode") == "Indexed", spec.get("backoffLimitPerIndex")
    most = spec.get("maxFailedIndexes")
    errors: Errors = []
    if limit is not None and not is_indexed:
        errors.append(invalid(f"{path}.backoffLimitPerIndex", limit, "requires indexed completion mode"))
    if most is not None and limit is None:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if most is not None and most > (spec.get("completions") or 0):
        errors.append(invalid(f"{path}.maxFailedIndexes", most, "must be less than or equal to completions"))
    return errors


def _failure_policy(spec: Json, path: str) -> Errors:
    policy = spec.get("podFailurePolicy")
    if policy is None:
        return []
    errors: Errors = []
    if nested(spec, "template", "spec", "restartPolicy") != "Never":
        value = nested(spec, "template", "spec", "restartPolicy")
        problem = 'only "Never" is supported when podFailurePolicy is specified'
        errors.append(invalid(f"{path}.template.spec.restartPolicy", value, problem))
    if spec.get("podReplacementPolicy") not in (None, "Failed"):
        errors.append(not_supported(f"{path}.podReplacementPolicy", spec["podReplacementPolicy"], ("Failed",)))
    for index, rule in enumerate(policy.get("rules") or ()):
        at = f"{path}.podFailurePolicy.rules[{index}]"
        errors += _FAILURE_RULE(rule, at)
        if rule.get("action") == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            problem = "requires the backoffLimitPerIndex to be set"
            errors.append(invalid(f"{at}.action", "FailIndex", problem))
    return errors


def _success_policy(spec: Json, path: str) -> Errors:
    policy = spec.get("successPolicy")
    if policy is None:
        return []
    if spec.get("completionMode") != "Indexed":
        return [invalid(f"{path}.successPolicy", {}, "requires indexed completion mode")]
    rules = policy.get("rules") or ()
    if not rules:
        return [required(f"{path}.successPolicy.rules", "at least one rules must be specified for the successPolicy")]
    errors: Errors = []
    for index, rule in enumerate(rules):
        if rule.get("succeededCount") is None and rule.get("succeededIndexes") is None:
            problem = "at least one of succeededCount or succeededIndexes must be specified"
            errors.append(required(f"{path}.successPolicy.rules[{index}]", problem))
    return errors


def _no_selector(_selector: Json, path: str) -> Errors:
    return [invalid(path, {}, "`selector` will be auto-generated")]


_IMMUTABLE: Final = immutable(
    "spec.selector",
    "spec.completionMode",
    "spec.podFailurePolicy",
    "spec.successPolicy",
    "spec.backoffLimitPerIndex",
    "spec.managedBy",
)
_COMPLETIONS_ARE_IMMUTABLE: Final = immutable("spec.completions")

_POLICY: Final = fields(
    ("schedulingPolicy", fields(("", exactly_one_of("basic", "gang")), ("gang", fields(("minCount", min_count)))))
)
_SCHEDULING: Final = fields(
    ("schedulingConstraints", scheduling_constraints),
    ("disruptionMode", disruption_mode),
    ("resourceClaims", resource_claims),
)
_EXIT_CODES: Final = fields(
    ("operator!", one_of("In", "NotIn")),
    ("", _codes),
)
_FAILURE_RULE: Final = fields(
    ("action!", one_of("Count", "FailIndex", "FailJob", "Ignore")),
    ("onExitCodes", _EXIT_CODES),
    ("", _one_requirement),
)
_JOB: Final[Rule] = fields(
    ("parallelism", at_least(0)),
    ("completions", at_least(0)),
    ("activeDeadlineSeconds", at_least(0)),
    ("backoffLimit", at_least(0)),
    ("backoffLimitPerIndex", at_least(0)),
    ("ttlSecondsAfterFinished", at_least(0)),
    ("completionMode", one_of("Indexed", "NonIndexed")),
    ("podReplacementPolicy", one_of("Failed", "TerminatingOrFailed")),
    ("maxFailedIndexes", at_least(0)),
    ("", _indexed_has_completions),
    ("", _per_index),
    ("", _failure_policy),
    ("", _success_policy),
    ("", _scheduling),
    ("template!", pod_template),
    ("", _ends),
)
_CRON_JOB: Final = fields(
    ("schedule!", _schedule),
    ("timeZone", _time_zone),
    ("concurrencyPolicy", one_of("Allow", "Forbid", "Replace")),
    ("startingDeadlineSeconds", at_least(0)),
    ("successfulJobsHistoryLimit", at_least(0)),
    ("failedJobsHistoryLimit", at_least(0)),
    ("jobTemplate", fields(("spec!", fields(("selector", _no_selector), ("", _JOB)))), {}),
)

JOB_RULES: Final[Mapping[str, KindRules]] = {
    "Job": KindRules(fields(("spec!", _JOB), ("", _selects_its_pods)), update=_job_update),
    "CronJob": KindRules(fields(("", _short_name), ("spec!", _CRON_JOB))),
}
