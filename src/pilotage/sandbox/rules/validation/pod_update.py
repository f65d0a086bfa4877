"""What may change in the spec of an existing pod.

Almost nothing: images, a shorter deadline, more tolerations. While a pod is held by scheduling gates its node selector
and node affinity may be narrowed too, and gates may go but not come. Everything else is compared as a whole, so that a
field unknown here is immutable as well.

The old spec may be of any shape: it must be possible to mend what an older version stored.
"""

from __future__ import annotations

from typing import Any, Final

from pilotage.sandbox.rules.json_fields import Json, dict_or_empty, dicts_in, nested
from pilotage.sandbox.rules.validation.problems import Errors, forbidden, invalid

_ONLY: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_ADDITIONS: Final = "only additions are allowed (no mutations or deletions)"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_CONTAINER_LISTS: Final = ("containers", "initContainers")


def pod_update_errors(old: Json, new: Json) -> Errors:
    """Forbidden changes from the spec `old` to the spec `new`."""
    for field in _CONTAINER_LISTS:
        if len(dicts_in(old, field)) != len(dicts_in(new, field)):
            return [forbidden(f"spec.{field}", "pod updates may not add or remove containers")]
    errors = _deadline_errors(old, new) + _toleration_errors(old, new) + _gate_errors(old, new)
    restored = _with_mutable_fields_of(old, new)
    if dicts_in(old, "schedulingGates"):
        errors += _narrowing_errors(old, new)
        _restore_placement(restored, old)
    if restored != old:
        errors.append(forbidden("spec", f"{_ONLY}\nchanged: {', '.join(_changed_fields(old, restored))}"))
    return errors


def _with_mutable_fields_of(old: Json, new: Json) -> Json:
    """A copy of `new` in which every field that may change has its old value again."""
    restored = dict(new)
    for field in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        _restore(restored, old, field)
    grace = old.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0 and new.get("terminationGracePeriodSeconds") == 1:
        _restore(restored, old, "terminationGracePeriodSeconds")
    for field in _CONTAINER_LISTS:
        if new.get(field):
            pairs = zip(dicts_in(new, field), dicts_in(old, field), strict=True)
            restored[field] = [_restored(container, before, "image") for container, before in pairs]
    return restored


def _restore_placement(restored: Json, old: Json) -> None:
    _restore(restored, old, "nodeSelector")
    if "affinity" in restored or "affinity" in old:
        affinity = dict(dict_or_empty(restored.get("affinity")))
        _restore(affinity, dict_or_empty(old.get("affinity")), "nodeAffinity")
        if affinity or old.get("affinity") is not None:
            restored["affinity"] = affinity
        else:
            restored.pop("affinity", None)


def _restored(container: Json, before: Json, field: str) -> Json:
    changed = dict(container)
    _restore(changed, before, field)
    return changed


def _restore(target: Json, source: Json, field: str) -> None:
    if field in source:
        target[field] = source[field]
    else:
        target.pop(field, None)


def _deadline_errors(old: Json, new: Json) -> Errors:
    before, now = old.get("activeDeadlineSeconds"), new.get("activeDeadlineSeconds")
    path = "spec.activeDeadlineSeconds"
    if not isinstance(before, int) or before == now:
        return []
    if now is None:
        return [invalid(path, now, "must not update from a positive integer to nil value")]
    return [invalid(path, now, "must be less than or equal to previous value")] if now > before else []


def _toleration_errors(old: Json, new: Json) -> Errors:
    kept = [_without_seconds(toleration) for toleration in dicts_in(new, "tolerations")]
    if all(_without_seconds(toleration) in kept for toleration in dicts_in(old, "tolerations")):
        return []
    return [forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]


def _without_seconds(toleration: Json) -> Json:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _gate_errors(old: Json, new: Json) -> Errors:
    before = [gate.get("name") for gate in dicts_in(old, "schedulingGates")]
    return [
        forbidden(
            "spec.schedulingGates", f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
        )
        for gate in dicts_in(new, "schedulingGates")
        if gate.get("name") not in before
    ]


def _narrowing_errors(old: Json, new: Json) -> Errors:
    errors: Errors = []
    selector = dict_or_empty(new.get("nodeSelector"))
    if any(selector.get(key) != value for key, value in dict_or_empty(old.get("nodeSelector")).items()):
        errors.append(invalid("spec.nodeSelector", selector, _ADDITIONS))
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    before, now = _terms(old), _terms(new)
    if before and len(before) != len(now):
        problem = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [*errors, invalid(path, now, problem)]
    for index, (term, changed) in enumerate(zip(before, now, strict=False)):
        for field in ("matchExpressions", "matchFields"):
            kept = dicts_in(term, field)
            if dicts_in(changed, field)[: len(kept)] != kept:
                errors.append(invalid(f"{path}[{index}]", changed, _ADDITIONS))
    return errors


def _terms(spec: Json) -> list[Json]:
    return dicts_in(nested(spec, "affinity", "nodeAffinity", _REQUIRED), "nodeSelectorTerms")


def _changed_fields(old: Json, new: Json) -> list[str]:
    """The places at which two specs differ, one level into lists."""
    places = []
    for field in sorted(old.keys() | new.keys()):
        before, now = old.get(field), new.get(field)
        if before == now:
            continue
        if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
            places += [
                f"spec.{field}[{at}]{_inner(a, b)}" for at, (a, b) in enumerate(zip(before, now, strict=True)) if a != b
            ]
        else:
            places.append(f"spec.{field}")
    return places


def _inner(before: Any, now: Any) -> str:
    if not isinstance(before, dict) or not isinstance(now, dict):
        return ""
    return "." + "+".join(key for key in sorted(before.keys() | now.keys()) if before.get(key) != now.get(key))
