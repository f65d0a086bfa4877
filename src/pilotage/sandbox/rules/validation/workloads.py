"""Rules for the kinds that keep pods running: Deployment, ReplicaSet, StatefulSet, DaemonSet, ReplicationController."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pilotage.sandbox.rules.json_fields import dict_or_empty
from pilotage.sandbox.rules.validation.kind_rules import KindRules, ObjectUpdate
from pilotage.sandbox.rules.validation.metadata import AnyObject
from pilotage.sandbox.rules.validation.pod_shapes import LabelSelector, PodTemplateSpec
from pilotage.sandbox.rules.validation.pods import template_errors
from pilotage.sandbox.rules.validation.problems import (
    IMMUTABLE,
    Errors,
    at_least,
    forbidden,
    invalid,
    not_supported,
    one_of,
    required,
)
from pilotage.sandbox.rules.validation.selectors import is_empty, label_selector_errors, selector_matches
from pilotage.sandbox.rules.validation.shapes import Int32, IntOrString, Labels, Shape

_MISMATCH: Final = "`selector` does not match template `labels`"
_STATEFUL_SET_MUTABLE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


class RollingUpdate(Shape):
    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None
    partition: Int32 | None = None


class UpdateStrategy(Shape):
    type: str | None = None
    rolling_update: RollingUpdate | None = None


class WorkloadSpec(Shape):
    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec | None = None
    min_ready_seconds: Int32 | None = None
    revision_history_limit: Int32 | None = None
    progress_deadline_seconds: Int32 | None = None
    strategy: UpdateStrategy | None = None
    update_strategy: UpdateStrategy | None = None
    pod_management_policy: str | None = None


class Workload(AnyObject):
    spec: WorkloadSpec | None = None


class ReplicationControllerSpec(Shape):
    replicas: Int32 | None = None
    selector: Labels | None = None
    template: PodTemplateSpec | None = None
    min_ready_seconds: Int32 | None = None


class ReplicationController(AnyObject):
    spec: ReplicationControllerSpec | None = None


class PodTemplateObject(AnyObject):
    template: PodTemplateSpec | None = None


def selector_errors(selector: LabelSelector | None, template: PodTemplateSpec | None, noun: str) -> Errors:
    """The selector of a workload exists, is not empty, and selects the pods of the template."""
    if selector is None:
        return [required("spec.selector")]
    if is_empty(selector):
        return [invalid("spec.selector", {}, f"empty selector is invalid for {noun}")]
    errors = label_selector_errors(selector, "spec.selector")
    labels = template.metadata.labels or {} if template is not None and template.metadata is not None else {}
    if not errors and template is not None and not selector_matches(selector, labels):
        errors.append(invalid("spec.template.metadata.labels", labels, _MISMATCH))
    return errors


def int_or_percent_errors(path: str, value: IntOrString | None) -> Errors:
    if value is None:
        return []
    if isinstance(value, int):
        return at_least(path, value, 0)
    if not re.fullmatch("[0-9]{1,9}%", value):
        return [invalid(path, value, "a valid percent string must be a numeric string followed by an ending '%'")]
    return []


def immutable_errors(change: ObjectUpdate, *fields: str) -> Errors:
    """`spec.<field>` may not change."""
    old, new = dict_or_empty(change.old.get("spec")), dict_or_empty(change.new.get("spec"))
    return [invalid(f"spec.{field}", new.get(field), IMMUTABLE) for field in fields if old.get(field) != new.get(field)]


def _workload_errors(spec: WorkloadSpec, noun: str) -> Errors:
    errors = at_least("spec.replicas", spec.replicas, 0) + at_least("spec.minReadySeconds", spec.min_ready_seconds, 0)
    errors += at_least("spec.revisionHistoryLimit", spec.revision_history_limit, 0)
    errors += selector_errors(spec.selector, spec.template, noun)
    errors += template_errors(spec.template, "spec.template")
    pod_spec = spec.template.spec if spec.template is not None else None
    if pod_spec is not None:
        if pod_spec.restart_policy not in ("Always", None, ""):
            path = "spec.template.spec.restartPolicy"
            errors.append(not_supported(path, pod_spec.restart_policy, ("Always",)))
        if pod_spec.active_deadline_seconds is not None:
            path = "spec.template.spec.activeDeadlineSeconds"
            errors.append(forbidden(path, "activeDeadlineSeconds in ReplicaSet is not Supported"))
    return errors


def _of_spec(check: Callable[[WorkloadSpec], Errors]) -> Callable[[Workload], Errors]:
    return lambda workload: check(workload.spec) if workload.spec is not None else [required("spec")]


def _deployment_errors(spec: WorkloadSpec) -> Errors:
    errors = _workload_errors(spec, "deployment")
    strategy = spec.strategy or UpdateStrategy()
    errors += one_of("spec.strategy.type", strategy.type, ("Recreate", "RollingUpdate"))
    if strategy.rolling_update is not None:
        if strategy.type == "Recreate":
            problem = "may not be specified when strategy `type` is 'Recreate'"
            errors.append(forbidden("spec.strategy.rollingUpdate", problem))
        else:
            errors += _rolling_update_errors(strategy.rolling_update, "spec.strategy.rollingUpdate")
    deadline = spec.progress_deadline_seconds
    if deadline is not None and deadline <= (spec.min_ready_seconds or 0):
        errors.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    return errors


def _rolling_update_errors(rolling: RollingUpdate, path: str) -> Errors:
    errors = int_or_percent_errors(f"{path}.maxUnavailable", rolling.max_unavailable)
    errors += int_or_percent_errors(f"{path}.maxSurge", rolling.max_surge)
    if errors:
        return errors
    if _is_zero(rolling.max_unavailable) and _is_zero(rolling.max_surge):
        errors.append(invalid(f"{path}.maxUnavailable", rolling.max_unavailable, "may not be 0 when `maxSurge` is 0"))
    if isinstance(rolling.max_unavailable, str) and int(rolling.max_unavailable[:-1]) > 100:
        errors.append(invalid(f"{path}.maxUnavailable", rolling.max_unavailable, "must not be greater than 100%"))
    return errors


def _is_zero(value: IntOrString | None) -> bool:
    return value is not None and int(str(value).rstrip("%")) == 0


def _stateful_set_errors(spec: WorkloadSpec) -> Errors:
    errors = one_of("spec.podManagementPolicy", spec.pod_management_policy, ("OrderedReady", "Parallel"))
    strategy = spec.update_strategy or UpdateStrategy()
    errors += one_of("spec.updateStrategy.type", strategy.type, ("RollingUpdate", "OnDelete"))
    if strategy.rolling_update is not None:
        errors += at_least("spec.updateStrategy.rollingUpdate.partition", strategy.rolling_update.partition, 0)
    return errors + _workload_errors(spec, "statefulset")


def _daemon_set_errors(spec: WorkloadSpec) -> Errors:
    errors = _workload_errors(spec, "daemonset")
    strategy = spec.update_strategy or UpdateStrategy()
    errors += one_of("spec.updateStrategy.type", strategy.type, ("RollingUpdate", "OnDelete"))
    if strategy.rolling_update is not None:
        errors += _rolling_update_errors(strategy.rolling_update, "spec.updateStrategy.rollingUpdate")
    return errors


def _replication_controller_errors(controller: ReplicationController) -> Errors:
    spec = controller.spec
    if spec is None:
        return [required("spec")]
    errors = at_least("spec.replicas", spec.replicas, 0) + template_errors(spec.template, "spec.template")
    if not spec.selector:
        return [*errors, required("spec.selector")]
    return errors + selector_errors(LabelSelector(spec.selector), spec.template, "replicationcontroller")


def _selector_is_immutable(change: ObjectUpdate) -> Errors:
    return immutable_errors(change, "selector")


def _stateful_set_update_errors(change: ObjectUpdate) -> Errors:
    old, new = dict_or_empty(change.old.get("spec")), dict_or_empty(change.new.get("spec"))
    if _without(old, _STATEFUL_SET_MUTABLE) == _without(new, _STATEFUL_SET_MUTABLE):
        return []
    names = ", ".join(f"'{name}'" for name in _STATEFUL_SET_MUTABLE[:-1])
    problem = f"updates to statefulset spec for fields other than {names} and 'minReadySeconds' are forbidden"
    return [forbidden("spec", problem)]


def _without(spec: Mapping[str, Any], fields: tuple[str, ...]) -> Mapping[str, Any]:
    return {key: value for key, value in spec.items() if key not in fields}


def _pod_template_errors(obj: PodTemplateObject) -> Errors:
    return template_errors(obj.template, "template")


WORKLOAD_RULES: Final[Mapping[str, KindRules]] = {
    "Deployment": KindRules(Workload, _of_spec(_deployment_errors), update=_selector_is_immutable),
    "ReplicaSet": KindRules(
        Workload, _of_spec(lambda spec: _workload_errors(spec, "deployment")), update=_selector_is_immutable
    ),
    "DaemonSet": KindRules(Workload, _of_spec(_daemon_set_errors), update=_selector_is_immutable),
    "StatefulSet": KindRules(Workload, _of_spec(_stateful_set_errors), update=_stateful_set_update_errors),
    "ReplicationController": KindRules(ReplicationController, _replication_controller_errors),
    "PodTemplate": KindRules(PodTemplateObject, _pod_template_errors),
}
