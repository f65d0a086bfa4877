"""ResourceQuotas: what an object uses of a quota, which quotas it falls under, and what is too much.

    pods                    pods (that have not ended), cpu, requests.cpu, limits.cpu, ... of memory, ephemeral-storage,
                            huge pages and extended resources
    services                services, services.loadbalancers, services.nodeports
    persistentvolumeclaims  persistentvolumeclaims, requests.storage, and both of each class
    any kind                count/<resource>; secrets, configmaps and some more by their bare names

Pure: the quota's own status says what is used so far. Rejections are in the API server's words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final, TypeAlias

from pilotage.model.quantity import format_quantity, quantity_form
from pilotage.sandbox.errors import ApiError, forbidden
from pilotage.sandbox.rules.effective_requests import Amounts, amount_of, effective_amounts
from pilotage.sandbox.rules.qos import qos_class

Object: TypeAlias = dict[str, Any]

QUOTAS: Final = "resourcequotas"

_BARE: Final = frozenset({"configmaps", "persistentvolumeclaims", "replicationcontrollers", QUOTAS, "secrets"})
_OF_PODS: Final = ("cpu", "memory", "ephemeral-storage")
_REQUIRED: Final = ("cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory")
_ONE: Final = Fraction(1)
_ZERO: Final = Fraction(0)


def usage_of(resource: str, obj: Object) -> Amounts:
    """What an object counts for, whatever the quota."""
    used: Amounts = {f"count/{resource}": _ONE}
    if resource in _BARE:
        used[resource] = _ONE
    if resource == "pods":
        used |= _pod_usage(obj)
    elif resource == "services":
        used |= _service_usage(obj.get("spec") or {})
    elif resource == "persistentvolumeclaims":
        used |= _claim_usage(obj.get("spec") or {})
    return used


def falls_under(quota: Object, resource: str, obj: Object) -> bool:
    """Whether the scopes of the quota hold for the object; only pods have scopes."""
    spec = quota.get("spec") or {}
    scopes = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    scopes += (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    return not scopes or (resource == "pods" and all(_in_scope(scope, obj) for scope in scopes))


def charge(quota: Object, resource: str, obj: Object, old: Object | None = None) -> dict[str, str] | None:
    """What the quota has used with the object (in the place of `old`); None: as before.

    ApiError 403 if that is too much.
    """
    status = quota.get("status") or {}
    hard = status.get("hard") or (quota.get("spec") or {}).get("hard") or {}
    if not falls_under(quota, resource, obj):
        return None
    usage = {name: amount for name, amount in usage_of(resource, obj).items() if name in hard}
    if not usage and resource != "pods":
        return None
    name, title = quota["metadata"]["name"], obj["metadata"].get("name") or ""
    if resource == "pods" and old is None and (missing := _missing(obj, hard)):
        raise forbidden(resource, title, f"failed quota: {name}: must specify {missing}")
    if not usage:
        return None
    before = usage_of(resource, old) if old is not None and falls_under(quota, resource, old) else {}
    added = {key: amount - before.get(key, _ZERO) for key, amount in usage.items()}
    used = {key: amount_of((status.get("used") or {}).get(key)) or _ZERO for key in usage}
    over = [key for key in usage if added[key] > 0 and used[key] + added[key] > (amount_of(hard[key]) or _ZERO)]
    if over:
        raise _exceeded(name, resource, title, (_shown(over, source, hard) for source in (added, used, hard)))
    if not any(added.values()):
        return None
    return {**(status.get("used") or {}), **{key: _text(used[key] + added[key], hard[key]) for key in usage}}


def total_usage(quota: Object, objects: Iterable[tuple[str, Object]]) -> dict[str, str]:
    """What the objects, given with their resources, use of the quota together."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    total = dict.fromkeys(hard, _ZERO)
    for resource, obj in objects:
        if falls_under(quota, resource, obj):
            for name, amount in usage_of(resource, obj).items():
                if name in total:
                    total[name] += amount
    return {name: _text(amount, hard[name]) for name, amount in total.items()}


def resources_of(hard: Iterable[str]) -> set[str]:
    """Objects of which resources a quota with these names is about."""
    found: set[str] = set()
    for name in hard:
        if name.startswith("count/"):
            found.add(name.removeprefix("count/"))
        elif name in _BARE or name.startswith("services"):
            found.add(name.partition(".")[0])
        elif name == "requests.storage" or ".storageclass.storage.k8s.io/" in name:
            found.add("persistentvolumeclaims")
        else:
            found.add("pods")
    return found


def _exceeded(quota: str, resource: str, title: str, shown: Iterable[str]) -> ApiError:
    requested, used, limited = shown
    problem = f"exceeded quota: {quota}, requested: {requested}, used: {used}, limited: {limited}"
    return forbidden(resource, title, problem)


def _shown(names: Iterable[str], amounts: Mapping[str, Any], hard: Mapping[str, str]) -> str:
    texts = {name: amounts[name] for name in sorted(names)}
    return ",".join(
        f"{name}={_text(value, hard[name]) if isinstance(value, Fraction) else value}" for name, value in texts.items()
    )


def _text(amount: Fraction, like: str) -> str:
    return format_quantity(amount, quantity_form(like))


def _pod_usage(pod: Object) -> Amounts:
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return {}
    spec = pod.get("spec") or {}
    used: Amounts = {"pods": _ONE}
    for kind in ("requests", "limits"):
        for name, amount in _of_pod(spec, kind).items():
            if kind == "limits" and name not in _OF_PODS:
                continue
            used[f"{kind}.{name}"] = amount
            if kind == "requests" and (name in _OF_PODS or name.startswith("hugepages-")):
                used[name] = amount
    return used


def _of_pod(spec: Object, kind: str) -> Amounts:
    amounts = effective_amounts(spec, kind)
    for name, value in ((spec.get("resources") or {}).get(kind) or {}).items():
        amounts[name] = amount_of(value) or _ZERO
    for name, value in (spec.get("overhead") or {}).items():
        if kind == "requests" or name in amounts:
            amounts[name] = amounts.get(name, _ZERO) + (amount_of(value) or _ZERO)
    return amounts


def _service_usage(spec: Object) -> Amounts:
    ports, kind = spec.get("ports") or (), spec.get("type")
    takes_ports = kind == "NodePort" or (
        kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False
    )
    count = len(ports) if takes_ports else sum(bool(port.get("nodePort")) for port in ports)
    return {
        "services": _ONE,
        "services.loadbalancers": Fraction(kind == "LoadBalancer"),
        "services.nodeports": Fraction(count if kind in ("NodePort", "LoadBalancer") else 0),
    }


def _claim_usage(spec: Object) -> Amounts:
    size = amount_of(((spec.get("resources") or {}).get("requests") or {}).get("storage")) or _ZERO
    used: Amounts = {"requests.storage": size}
    if spec.get("storageClassName"):
        prefix = f"{spec['storageClassName']}.storageclass.storage.k8s.io"
        used |= {f"{prefix}/requests.storage": size, f"{prefix}/persistentvolumeclaims": _ONE}
    return used


def _missing(pod: Object, hard: Mapping[str, str]) -> str:
    """The containers that do not say how much of a limited resource they want: `cpu for: a,b; memory for: b`."""
    spec = pod.get("spec") or {}
    if (spec.get("resources") or {}).get("requests") or (spec.get("resources") or {}).get("limits"):
        return ""
    parts: list[str] = []
    for required in _REQUIRED:
        if required not in hard:
            continue
        kind = "limits" if required.startswith("limits.") else "requests"
        resource = required.rpartition(".")[2]
        names = [c["name"] for c in _containers(spec) if resource not in ((c.get("resources") or {}).get(kind) or {})]
        if names:
            parts.append(f"{required} for: {','.join(sorted(names))}")
    return "; ".join(parts)


def _containers(spec: Object) -> Iterator[Object]:
    for field in ("containers", "initContainers"):
        yield from spec.get(field) or ()


def _in_scope(scope: Object, pod: Object) -> bool:
    spec = pod.get("spec") or {}
    match scope["scopeName"]:
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return qos_class(spec) == "BestEffort"
        case "NotBestEffort":
            return qos_class(spec) != "BestEffort"
        case "PriorityClass":
            return _selects(scope, spec.get("priorityClassName") or "")
        case "CrossNamespacePodAffinity":
            return _looks_into_other_namespaces(spec.get("affinity") or {})
        case _:
            return False


def _selects(scope: Object, name: str) -> bool:
    match scope.get("operator"):
        case "In":
            return name in (scope.get("values") or ())
        case "NotIn":
            return name not in (scope.get("values") or ())
        case "DoesNotExist":
            return not name
        case _:
            return bool(name)


def _looks_into_other_namespaces(affinity: Object) -> bool:
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        required = terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        preferred = terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        for term in [*required, *(one.get("podAffinityTerm") or {} for one in preferred)]:
            if term.get("namespaces") or term.get("namespaceSelector") is not None:
                return True
    return False
