"""The Workload and the PodGroup of a Job that says in `spec.scheduling` how its pods are to be scheduled together.

    Job without a controller      Workload <job>-<hash> with one template -> PodGroup <workload>-<template>-<hash>
    Job of a controller that      PodGroup alone, from the template of that name in the controller's Workload
    names a group template

Both are made before the first pod, and never for a Job that has started without. What others made for the Job is left
alone. A change of the gang's minCount is passed on. They belong to the Job and go with it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.life.controllers.conditions import find_condition
from pilotage.sandbox.life.controllers.controller import (
    ControllerContext,
    Object,
    controller_reference,
    record_event,
)
from pilotage.sandbox.life.facts import ObjectFacts
from pilotage.sandbox.life.owned_pods import OwnedPods
from pilotage.sandbox.rules.admission import POD_GROUPS
from pilotage.sandbox.rules.json_fields import dict_or_empty, dicts_in, nested
from pilotage.sandbox.storage.store import Key

WORKLOADS: Final = "workloads.scheduling.k8s.io"
GROUP_TEMPLATE: Final = "scheduling.k8s.io/group-template-name"

_API_VERSION: Final = "scheduling.k8s.io/v1beta1"
_LONGEST_NAME: Final = 253
_LONGEST_LABEL: Final = 63
_TEMPLATE_END: Final = "-pgt-0"
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


class JobGroups:
    """Gives Jobs the groups that they ask for."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context

    def of(self, job: Object, owned: OwnedPods) -> str:
        """The name of the PodGroup that the pods of the Job shall name, made if need be; "" for none."""
        scheduling = job["spec"].get("scheduling")
        controller = next((one for one in job["metadata"].get("ownerReferences") or () if one.get("controller")), None)
        template = (job["metadata"].get("annotations") or {}).get(GROUP_TEMPLATE) if controller is not None else None
        if scheduling is None and template is None:
            return ""
        if nested(job, "spec", "template", "spec", "schedulingGroup") is not None:
            self._record(job, "Warning", "SchedulingIgnored", "the pods of the Job name a PodGroup of their own")
            return ""
        if controller is None:
            return self._own_group(job, scheduling, is_new=_is_new(job, owned))
        if template is None:
            text = f"{controller['kind']} {controller['name']} decides how the pods of the Job are scheduled"
            self._record(job, "Warning", "SchedulingIgnored", text)
            return ""
        return self._delegated_group(job, controller, template, is_new=_is_new(job, owned))

    def _own_group(self, job: Object, scheduling: Object, *, is_new: bool) -> str:
        facts = self._made_for(job, WORKLOADS)
        workload = None if facts is None else self._context.read(facts.key)
        if workload is None:
            if not is_new:
                return ""
            workload = _workload(job, scheduling)
            self._create(job, WORKLOADS, workload)
        group = self._made_for(job, POD_GROUPS)
        if group is None:
            template = dicts_in(workload["spec"], "podGroupTemplates")[0]
            return self._create_group(job, workload, template, [_reference(workload)]) if is_new else ""
        self._pass_on_count(workload, group.key, _min_count(job, scheduling))
        return group.key.name

    def _delegated_group(self, job: Object, controller: Object, template_name: str, *, is_new: bool) -> str:
        group = self._made_for(job, POD_GROUPS)
        if group is not None or not is_new:
            return "" if group is None else group.key.name
        wanted = {
            "apiGroup": controller["apiVersion"].rpartition("/")[0],
            "kind": controller["kind"],
            "name": controller["name"],
        }
        for workload in self._context.api.list(WORKLOADS, job["metadata"]["namespace"]):
            if dict_or_empty(workload["spec"].get("controllerRef")) != {k: v for k, v in wanted.items() if v}:
                continue
            for template in dicts_in(workload["spec"], "podGroupTemplates"):
                if template["name"] == template_name:
                    return self._create_group(job, workload, template, [])
        text = f"no Workload of {controller['kind']} {controller['name']} has a template {template_name}"
        self._record(job, "Warning", "SchedulingIgnored", text)
        return ""

    def _made_for(self, job: Object, resource: str) -> ObjectFacts | None:
        """What this controller made for the Job."""
        uid = job["metadata"]["uid"]
        for facts in self._context.index.dependents(uid):
            if facts.key.resource == resource and facts.controller is not None and facts.controller.uid == uid:
                return facts
        return None

    def _create_group(self, job: Object, workload: Object, template: Object, owners: list[Object]) -> str:
        fields = {field: value for field, value in msgspec.to_builtins(template).items() if field != "name"}
        reference = {"workloadName": workload["metadata"]["name"], "templateName": template["name"]}
        group = {
            "apiVersion": _API_VERSION,
            "kind": "PodGroup",
            "metadata": {
                "name": _with_hash("-".join(reference.values()), "".join(reference.values())),
                "ownerReferences": [controller_reference(job), *owners],
            },
            "spec": {"workloadRef": reference, **fields},
        }
        self._create(job, POD_GROUPS, group)
        return str(group["metadata"]["name"])  # type: ignore[index]

    def _create(self, job: Object, resource: str, obj: Object) -> None:
        kind = obj["kind"]
        try:
            self._context.create(resource, job["metadata"]["namespace"], obj)
        except ApiError as error:
            text = f"Failed to create {kind} for Job {job['metadata']['name']}: {error}"
            self._record(job, "Warning", f"Failed{kind}Create", text)
            raise
        text = f"Created {kind} {obj['metadata']['name']} for Job {job['metadata']['name']}"
        self._record(job, "Normal", f"{kind}Created", text)

    def _pass_on_count(self, workload: Object, group_key: Key, count: int | None) -> None:
        templates = dicts_in(workload["spec"], "podGroupTemplates")
        group = self._context.read(group_key)
        if count is None or len(templates) != 1 or group is None:
            return
        workload_key = Key(WORKLOADS, group_key.namespace, workload["metadata"]["name"])
        for key, obj, policy in (
            (workload_key, workload, templates[0]["schedulingPolicy"]),
            (group_key, group, group["spec"]["schedulingPolicy"]),
        ):
            gang = dict_or_empty(policy.get("gang"))
            if gang and gang["minCount"] != count:
                gang["minCount"] = count
                self._context.write(key, obj)

    def _record(self, job: Object, event_type: str, reason: str, message: str) -> None:
        record_event(self._context, job, event_type, reason, message)


def _is_new(job: Object, owned: OwnedPods) -> bool:
    """Whether the Job never had a pod, as far as can be seen."""
    status = job.get("status") or {}
    has_begun = any(status.get(field) for field in ("startTime", "succeeded", "failed"))
    return not has_begun and not len(owned) and find_condition(status, "Suspended") is None


def _workload(job: Object, scheduling: Object) -> Object:
    template: Object = {"name": _template_name(job["metadata"]["name"]), **msgspec.to_builtins(scheduling)}
    count = _min_count(job, scheduling)
    template["schedulingPolicy"] = {"basic": {}} if count is None else {"gang": {"minCount": count}}
    class_name = nested(job, "spec", "template", "spec", "priorityClassName")
    if class_name:
        template["priorityClassName"] = class_name
    name = job["metadata"]["name"]
    return {
        "apiVersion": _API_VERSION,
        "kind": "Workload",
        "metadata": {
            "name": _with_hash(name, job["metadata"]["uid"]),
            "ownerReferences": [controller_reference(job)],
        },
        "spec": {
            "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": name},
            "podGroupTemplates": [template],
        },
    }


def _template_name(job_name: str) -> str:
    """A label, which may be shorter than the name of the Job and has no dots."""
    return f"{job_name.replace('.', '-')[: _LONGEST_LABEL - len(_TEMPLATE_END)]}{_TEMPLATE_END}"


def _min_count(job: Object, scheduling: Object) -> int | None:
    """Of a gang, which is all pods that run at a time unless the Job says less; None for no gang."""
    gang = nested(scheduling, "schedulingPolicy", "gang")
    if gang is None:
        return None
    count: int = gang.get("minCount") or max(job["spec"].get("parallelism", 1), 1)
    return count


def _reference(owner: Object) -> Object:
    """An ownerReference that neither controls nor blocks."""
    metadata: dict[str, Any] = owner["metadata"]
    return {
        **{field: owner[field] for field in ("apiVersion", "kind")},
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


def _with_hash(name: str, hashed: str) -> str:
    end = _hash(hashed)
    return f"{name[: _LONGEST_NAME - len(end) - 1]}-{end}"


def _hash(text: str) -> str:
    """FNV-1a in the letters that Kubernetes uses for generated names."""
    value = 2166136261
    for byte in text.encode():
        value = (value ^ byte) * 16777619 % 2**32
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(value))
