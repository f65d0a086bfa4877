"""What the API server decides about a new object by looking at other objects.

`admit_create` runs after defaulting and before validation. It changes the object in place or rejects it with
`ApiError`; like defaulting it meets unchecked input and leaves wrong types to validation. Rules, in order:

    Pod                     requests and limits from LimitRanges (see limit_ranger), priority and preemption policy from
                            its PriorityClass, overhead and placement from its RuntimeClass (see runtime_class), service
                            account, tolerations for nodes that stop answering
    PodGroup                priority and preemption policy in the same way; the finalizer that keeps it beside its pods
    PersistentVolumeClaim   the default storage class
    PriorityClass           at most one global default
    Service                 cluster IP and node ports (see service_addresses)

`admit_valid` runs after validation, on what is about to be stored, and only rejects:

    Pod, PersistentVolumeClaim   bounds of LimitRanges; of pods an overhead that is none of their RuntimeClass

`admit_update` puts back what the server once decided and an update that replaces the whole object leaves out, and gives
pods the tolerations for nodes that stop answering, as on creation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from pilotage.sandbox.errors import forbidden
from pilotage.sandbox.kinds.builtin_groups import is_builtin
from pilotage.sandbox.rules.json_fields import Json, child, dict_or_empty, nested, text_or_empty
from pilotage.sandbox.rules.limit_ranger import reject_beyond_limits, set_default_resources
from pilotage.sandbox.rules.lookup import Lookup
from pilotage.sandbox.rules.runtime_class import apply_runtime_class, reject_own_overhead
from pilotage.sandbox.rules.service_addresses import assign_addresses, keep_addresses

PRIORITY_CLASSES: Final = "priorityclasses.scheduling.k8s.io"
STORAGE_CLASSES: Final = "storageclasses.storage.k8s.io"
POD_GROUPS: Final = "podgroups.scheduling.k8s.io"

POD_GROUP_PROTECTION: Final = "scheduling.k8s.io/podgroup-protection"

SYSTEM_PRIORITY_CLASSES: Final[Mapping[str, int]] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}

_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_TOLERATED_SECONDS: Final = 300
_NODE_FAILURES: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_PREEMPT: Final = "PreemptLowerPriority"


def admit_create(kind: str, obj: Json, lookup: Lookup) -> None:
    """Complete or reject a new object."""
    rule = _RULES.get(kind)
    if rule is not None and is_builtin(obj):
        rule(obj, lookup)


def admit_valid(kind: str, obj: Json, lookup: Lookup) -> None:
    """Reject a pod or a claim that is valid in itself, but not here."""
    reject_beyond_limits(kind, obj, lookup)
    if kind == "Pod":
        reject_own_overhead(obj, lookup)


def admit_update(kind: str, old: Json, new: Json) -> None:
    """Keep the server's own decisions where the new state does not mention them."""
    if not is_builtin(new):
        return
    before, spec = dict_or_empty(old.get("spec")), dict_or_empty(new.get("spec"))
    if kind == "Pod":
        for decided in ("priority", "preemptionPolicy"):
            if spec.get(decided) is None and before.get(decided) is not None:
                spec[decided] = before[decided]
        _tolerate_node_failures(spec)
    elif kind == "Service":
        keep_addresses(before, spec)


def _admit_pod(pod: Json, lookup: Lookup) -> None:
    spec = pod.get("spec")
    if type(spec) is not dict:
        return
    set_default_resources(pod, lookup)
    _set_priority(pod, spec, lookup)
    apply_runtime_class(pod, spec, lookup)
    account = spec.get("serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = account
    _tolerate_node_failures(spec)


def _set_priority(pod: Json, spec: Json, lookup: Lookup) -> None:
    class_name = spec.get("priorityClassName")
    if class_name is not None and not isinstance(class_name, str):
        return
    if class_name:
        value, policy = _named_priority(class_name, lookup, "pods", _name(pod))
    else:
        class_name, value, policy = _default_priority(lookup)
        if class_name:
            spec["priorityClassName"] = class_name
    given = spec.get("priority")
    if given is not None and given != value:
        raise _rejected(
            pod,
            f"the integer value of priority ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name",
        )
    given = spec.get("preemptionPolicy")
    if given is not None and given != policy:
        raise _rejected(
            pod,
            f"the string value of PreemptionPolicy ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name",
        )
    spec["priority"], spec["preemptionPolicy"] = value, policy


def _admit_pod_group(group: Json, lookup: Lookup) -> None:
    metadata = child(group, "metadata")
    finalizers = metadata.get("finalizers")
    if finalizers is None:
        metadata["finalizers"] = [POD_GROUP_PROTECTION]
    elif type(finalizers) is list and POD_GROUP_PROTECTION not in finalizers:
        finalizers.append(POD_GROUP_PROTECTION)
    spec = group.get("spec")
    if type(spec) is dict:
        _set_group_priority(group, spec, lookup)


def _set_group_priority(group: Json, spec: Json, lookup: Lookup) -> None:
    class_name = spec.get("priorityClassName")
    if class_name is not None and not isinstance(class_name, str):
        return
    if class_name:
        value, policy = _named_priority(class_name, lookup, POD_GROUPS, _name(group))
    else:
        class_name, value, policy = _default_priority(lookup)
    given = spec.get("priority")
    if given is not None and given != value:
        raise forbidden(
            POD_GROUPS,
            _name(group),
            f"priority set in the pod group ({given}) must match the priority computed ({value}) "
            "based on the priority class set in the spec",
        )
    spec["priority"] = value
    if class_name:
        spec["priorityClassName"] = class_name
    given = spec.get("preemptionPolicy")
    if given is not None and given != policy:
        raise forbidden(
            POD_GROUPS,
            _name(group),
            f"the string value of PreemptionPolicy ({given}) must not be provided in pod group spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name",
        )
    spec["preemptionPolicy"] = policy


def _named_priority(name: str, lookup: Lookup, resource: str, asking: str) -> tuple[Any, str]:
    found = lookup.get(PRIORITY_CLASSES, "", name)
    if found is not None:
        return _value_and_policy(found)
    if name in SYSTEM_PRIORITY_CLASSES:
        return SYSTEM_PRIORITY_CLASSES[name], _PREEMPT
    raise forbidden(resource, asking, f"no PriorityClass with name {name} was found")


def _default_priority(lookup: Lookup) -> tuple[str, Any, str]:
    defaults = [one for one in lookup.list(PRIORITY_CLASSES) if one.get("globalDefault") is True]
    if not defaults:
        return "", 0, _PREEMPT
    # Two defaults can only come from a race; the lowest harms least.
    chosen = min(defaults, key=lambda one: (_value_and_policy(one)[0], _name(one)))
    return _name(chosen), *_value_and_policy(chosen)


def _value_and_policy(priority_class: Json) -> tuple[Any, str]:
    return priority_class.get("value", 0), priority_class.get("preemptionPolicy") or _PREEMPT


def _tolerate_node_failures(spec: Json) -> None:
    tolerations = spec.get("tolerations")
    if tolerations is None:
        tolerations = spec["tolerations"] = []
    elif type(tolerations) is not list:
        return
    missing = [key for key in _NODE_FAILURES if not any(_tolerates(one, key) for one in tolerations)]
    tolerations += [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_SECONDS}
        for key in missing
    ]


def _tolerates(toleration: Any, key: str) -> bool:
    return (
        type(toleration) is dict
        and toleration.get("key") in (key, "", None)
        and toleration.get("effect") in ("NoExecute", "", None)
    )


def _admit_claim(claim: Json, lookup: Lookup) -> None:
    spec = claim.get("spec")
    if type(spec) is not dict or spec.get("storageClassName") is not None:
        return
    if "volume.beta.kubernetes.io/storage-class" in dict_or_empty(nested(claim, "metadata", "annotations")):
        return
    defaults = [one for one in lookup.list(STORAGE_CLASSES) if _is_default_class(one)]
    if defaults:
        # Of several the newest wins, then the first by name.
        by_name = sorted(defaults, key=_name)
        newest = max(by_name, key=lambda one: text_or_empty(nested(one, "metadata", "creationTimestamp")))
        spec["storageClassName"] = _name(newest)


def _is_default_class(storage_class: Json) -> bool:
    annotations = dict_or_empty(nested(storage_class, "metadata", "annotations"))
    return any(annotations.get(name) == "true" for name in _DEFAULT_CLASS)


def _admit_priority_class(priority_class: Json, lookup: Lookup) -> None:
    if priority_class.get("globalDefault") is not True:
        return
    name = _name(priority_class)
    for other in lookup.list(PRIORITY_CLASSES):
        if other.get("globalDefault") is True and _name(other) != name:
            problem = f"PriorityClass {_name(other)} is already marked as default. Only one default can exist"
            raise forbidden(PRIORITY_CLASSES, name, problem)


def _admit_service(service: Json, lookup: Lookup) -> None:
    assign_addresses(service, lookup.list("services"))


def _name(obj: Json) -> str:
    return text_or_empty(nested(obj, "metadata", "name"))


def _rejected(pod: Json, problem: str) -> Exception:
    return forbidden("pods", _name(pod), problem)


_RULES: Final[Mapping[str, Callable[[Json, Lookup], None]]] = {
    "Pod": _admit_pod,
    "PersistentVolumeClaim": _admit_claim,
    "PriorityClass": _admit_priority_class,
    "PodGroup": _admit_pod_group,
    "Service": _admit_service,
}
