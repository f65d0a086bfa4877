"""Rules for the kinds that keep pods running: Deployment, ReplicaSet, StatefulSet, DaemonSet, ReplicationController."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pilotage.sandbox.rules.json_fields import Json, dict_or_empty
from pilotage.sandbox.rules.validation.field_rules import KindRules, Rule, at_least, fields, immutable, one_of
from pilotage.sandbox.rules.validation.pods import pod_template
from pilotage.sandbox.rules.validation.problems import Errors, forbidden, invalid, not_supported, required
from pilotage.sandbox.rules.validation.selectors import is_empty, label_selector, selector_matches

_is_percent: Final = re.compile("[0-9]{1,9}%").fullmatch
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


def template_labels(spec: Json) -> dict[str, str]:
    """The labels that the pods of a workload will have."""
    return ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}


def int_or_percent(value: int | str, path: str) -> Errors:
    if isinstance(value, int):
        return at_least(0)(value, path)
    if not _is_percent(value):
        return [invalid(path, value, "a valid percent string must be a numeric string followed by an ending '%'")]
    return []


def _selects_its_pods(noun: str) -> Rule:
    """The selector of a workload exists, is not empty, and selects the pods of the template."""

    def check(spec: Json, path: str) -> Errors:
        selector, labels = spec.get("selector"), template_labels(spec)
        if selector is None:
            return [required(f"{path}.selector")]
        if is_empty(selector):
            return [invalid(f"{path}.selector", {}, f"empty selector is invalid for {noun}")]
        errors = label_selector(selector, f"{path}.selector")
        if not errors and spec.get("template") is not None and not selector_matches(selector, labels):
            errors.append(invalid(f"{path}.template.metadata.labels", labels, _MISMATCH))
        return errors

    return check


def _runs_forever(spec: Json, path: str) -> Errors:
    pod_spec = (spec.get("template") or {}).get("spec") or {}
    path = f"{path}.template.spec"
    errors: Errors = []
    if pod_spec.get("restartPolicy") not in ("Always", None, ""):
        errors.append(not_supported(f"{path}.restartPolicy", pod_spec["restartPolicy"], ("Always",)))
    if pod_spec.get("activeDeadlineSeconds") is not None:
        problem = "activeDeadlineSeconds in ReplicaSet is not Supported"
        errors.append(forbidden(f"{path}.activeDeadlineSeconds", problem))
    return errors


def _deadline_after_readiness(spec: Json, path: str) -> Errors:
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is None or deadline > (spec.get("minReadySeconds") or 0):
        return []
    return [invalid(f"{path}.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")]


def _rolling_update(rolling: Json, path: str) -> Errors:
    errors = _ROLLING_UPDATE(rolling, path)
    if errors:
        return errors
    unavailable = rolling.get("maxUnavailable")
    path = f"{path}.maxUnavailable"
    if _is_zero(unavailable) and _is_zero(rolling.get("maxSurge")):
        errors.append(invalid(path, unavailable, "may not be 0 when `maxSurge` is 0"))
    if isinstance(unavailable, str) and int(unavailable[:-1]) > 100:
        errors.append(invalid(path, unavailable, "must not be greater than 100%"))
    return errors


def _is_zero(value: int | str | None) -> bool:
    return value is not None and int(str(value).rstrip("%")) == 0


def _rolling_update_or_recreate(strategy: Json, path: str) -> Errors:
    path = f"{path}.rollingUpdate"
    if strategy.get("rollingUpdate") is None:
        return []
    if strategy.get("type") == "Recreate":
        return [forbidden(path, "may not be specified when strategy `type` is 'Recreate'")]
    return _rolling_update(strategy["rollingUpdate"], path)


def _controller_selector(spec: Json, path: str) -> Errors:
    labels = spec.get("selector")
    if not labels:
        return [required(f"{path}.selector")]
    return _SELECTS_ITS_PODS({**spec, "selector": {"matchLabels": labels}}, path)


def _stateful_set_update(old: Json, new: Json) -> Errors:
    before, now = (_without(dict_or_empty(obj.get("spec")), _STATEFUL_SET_MUTABLE) for obj in (old, new))
    if before == now:
        return []
    names = ", ".join(f"'{name}'" for name in _STATEFUL_SET_MUTABLE[:-1])
    problem = f"updates to statefulset spec for fields other than {names} and 'minReadySeconds' are forbidden"
    return [forbidden("spec", problem)]


def _without(spec: Json, fields: tuple[str, ...]) -> Json:
    return {key: value for key, value in spec.items() if key not in fields}


def _workload(noun: str) -> Rule:
    return fields(
        ("replicas", at_least(0)),
        ("minReadySeconds", at_least(0)),
        ("revisionHistoryLimit", at_least(0)),
        ("", _selects_its_pods(noun)),
        ("template!", pod_template),
        ("", _runs_forever),
    )


_ROLLING_UPDATE: Final = fields(("maxUnavailable", int_or_percent), ("maxSurge", int_or_percent))
_WAYS_TO_UPDATE: Final = one_of("RollingUpdate", "OnDelete")
_DEPLOYMENT: Final = fields(
    ("", _workload("deployment")),
    ("strategy", fields(("type", one_of("Recreate", "RollingUpdate")), ("", _rolling_update_or_recreate))),
    ("", _deadline_after_readiness),
)
_STATEFUL_SET: Final = fields(
    ("podManagementPolicy", one_of("OrderedReady", "Parallel")),
    (
        "updateStrategy",
        fields(("type", _WAYS_TO_UPDATE), ("rollingUpdate", fields(("partition", at_least(0))))),
    ),
    ("", _workload("statefulset")),
)
_DAEMON_SET: Final = fields(
    ("", _workload("daemonset")),
    ("updateStrategy", fields(("type", _WAYS_TO_UPDATE), ("rollingUpdate", _rolling_update))),
)
_SELECTS_ITS_PODS: Final = _selects_its_pods("replicationcontroller")
_REPLICATION_CONTROLLER: Final = fields(
    ("replicas", at_least(0)),
    ("template!", pod_template),
    ("", _controller_selector),
)

WORKLOAD_RULES: Final[Mapping[str, KindRules]] = {
    "Deployment": KindRules(fields(("spec!", _DEPLOYMENT)), update=immutable("spec.selector")),
    "ReplicaSet": KindRules(fields(("spec!", _workload("deployment"))), update=immutable("spec.selector")),
    "DaemonSet": KindRules(fields(("spec!", _DAEMON_SET)), update=immutable("spec.selector")),
    "StatefulSet": KindRules(fields(("spec!", _STATEFUL_SET)), update=_stateful_set_update),
    "ReplicationController": KindRules(fields(("spec!", _REPLICATION_CONTROLLER))),
    "PodTemplate": KindRules(fields(("template!", pod_template))),
}
