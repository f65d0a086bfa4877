"""What the API server fills in for Jobs, among it the selector and labels that tie pods to their Job.

The generated selector needs the Job's uid, so metadata must have been stamped before.
"""

from __future__ import annotations

from typing import Any, Final

from pilotage.sandbox.rules.json_fields import Json, child, dict_or_empty, dicts_in, fill, nested
from pilotage.sandbox.rules.pod_defaults import default_pod_spec

CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_NAME: Final = "batch.kubernetes.io/job-name"
# Written beside the prefixed ones for readers that know only these.
_OLD_CONTROLLER_UID: Final = "controller-uid"
_OLD_JOB_NAME: Final = "job-name"
_NO_LIMIT: Final = 2**31 - 1


def default_job(job: Json) -> None:
    spec = job.get("spec")
    if type(spec) is not dict:
        return
    metadata = child(job, "metadata")
    _default_counts(spec)
    for rule in dicts_in(spec.get("podFailurePolicy"), "rules"):
        for pattern in dicts_in(rule, "onPodConditions"):
            fill(pattern, (("status", "True"),))
    if spec.get("manualSelector") is not True:
        _tie_pods_to_job(spec, metadata)
    labels = nested(spec, "template", "metadata", "labels")
    if not metadata.get("labels") and labels and type(labels) is dict:
        metadata["labels"] = dict(labels)
    template_spec = nested(spec, "template", "spec")
    if type(template_spec) is dict:
        default_pod_spec(template_spec)


def default_cron_job(cron_job: Json) -> None:
    spec = cron_job.get("spec")
    if type(spec) is not dict:
        return
    fill(
        spec,
        (
            ("concurrencyPolicy", "Allow"),
            ("suspend", False),
            ("successfulJobsHistoryLimit", 3),
            ("failedJobsHistoryLimit", 1),
        ),
    )
    template_spec = nested(spec, "jobTemplate", "spec", "template", "spec")
    if type(template_spec) is dict:
        default_pod_spec(template_spec)


def _default_counts(spec: Json) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    unlimited = spec.get("backoffLimitPerIndex") is not None
    replaced_when = "Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed"
    fill(
        spec,
        (
            ("parallelism", 1),
            ("backoffLimit", _NO_LIMIT if unlimited else 6),
            ("completionMode", "NonIndexed"),
            ("suspend", False),
            ("manualSelector", False),
            ("podReplacementPolicy", replaced_when),
        ),
    )


def _tie_pods_to_job(spec: Json, metadata: Json) -> None:
    uid, name = metadata.get("uid"), metadata.get("name")
    template = spec.get("template")
    if not isinstance(uid, str) or not isinstance(name, str) or type(template) is not dict:
        return
    if spec.get("selector") is None:
        spec["selector"] = {"matchLabels": {CONTROLLER_UID: uid}}
    elif not _selects_by_uid(spec["selector"], uid):
        # A selector of the user's own without manualSelector: validation rejects it.
        return
    labels: dict[str, Any] = child(child(template, "metadata"), "labels")
    fill(labels, ((CONTROLLER_UID, uid), (_OLD_CONTROLLER_UID, uid), (JOB_NAME, name), (_OLD_JOB_NAME, name)))


def _selects_by_uid(selector: Any, uid: str) -> bool:
    return dict_or_empty(dict_or_empty(selector).get("matchLabels")).get(CONTROLLER_UID) == uid
