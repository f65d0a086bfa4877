"""The short form of a pod."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_IN_CONTAINER = ("cpu", "memory", "extended", "hostPorts")


def pod_object(s: Json) -> Json:
    spec: Json = {
        "schedulerName": s.get("scheduler", "default-scheduler"),
        "priority": s.get("priority", 0),
        "preemptionPolicy": s.get("preemptionPolicy", "PreemptLowerPriority"),
        "terminationGracePeriodSeconds": s.get("grace", 0),
        "containers": [_container(s)],
        **_placement(s),
        **_storage(s),
    }
    if "gates" in s:
        spec["schedulingGates"] = _named(s["gates"])
    if "group" in s:
        spec["schedulingGroup"] = {"podGroupName": s["group"]}
    return {"spec": spec, "status": {"phase": "Running" if "node" in s else "Pending", **_status(s)}}


def pod_patch(s: Json) -> Json:
    spec: Json = {}
    if any(field in s for field in _IN_CONTAINER):
        spec["containers"] = [_container(s)]
    if "tolerations" in s:
        spec["tolerations"] = [_toleration(text) for text in s["tolerations"]]
    if "gates" in s:
        spec["schedulingGates"] = _named(s["gates"]) or None
    status = _status(s)
    return {**({"spec": spec} if spec else {}), **({"status": status} if status else {})}


def selector_terms(values: dict[str, list[str]]) -> list[Json]:
    """One term: each of these labels has one of its values."""
    expressions = [{"key": key, "operator": "In", "values": allowed} for key, allowed in values.items()]
    return [{"matchExpressions": expressions}]


def _container(s: Json) -> Json:
    extended = {resource: str(amount) for resource, amount in s.get("extended", {}).items()}
    requests = {resource: str(s[resource]) for resource in ("cpu", "memory") if resource in s} | extended
    resources: Json = {}
    if requests:
        resources["requests"] = requests
    if extended:
        resources["limits"] = extended
    claims = [*s.get("claims", ()), *s.get("claimTemplates", ())]
    if claims:
        resources["claims"] = _named(claims)
    container: Json = {"name": "main", "image": "registry.example.com/app:1", "resources": resources}
    if "hostPorts" in s:
        container["ports"] = [{"containerPort": p, "hostPort": p, "protocol": "TCP"} for p in s["hostPorts"]]
    return container


def _placement(s: Json) -> Json:
    renamed = {
        "node": "nodeName",
        "nodeSelector": "nodeSelector",
        "hostNetwork": "hostNetwork",
        "hostUsers": "hostUsers",
    }
    spec: Json = {full: s[short] for short, full in renamed.items() if short in s}
    if "tolerations" in s:
        spec["tolerations"] = [_toleration(text) for text in s["tolerations"]]
    affinity = _affinity(s)
    if affinity:
        spec["affinity"] = affinity
    if "spread" in s:
        spec["topologySpreadConstraints"] = [_spread(constraint) for constraint in s["spread"]]
    return spec


def _affinity(s: Json) -> Json:
    affinity: Json = {}
    if "nodeAffinity" in s or "nodeNames" in s:
        terms = selector_terms(s["nodeAffinity"]) if "nodeAffinity" in s else [{}]
        if "nodeNames" in s:
            terms[0]["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": s["nodeNames"]}]
        affinity["nodeAffinity"] = {_REQUIRED: {"nodeSelectorTerms": terms}}
    for short, full in (("affinity", "podAffinity"), ("antiAffinity", "podAntiAffinity")):
        if short in s:
            affinity[full] = {_REQUIRED: [_pod_term(term) for term in s[short]]}
    return affinity


def _pod_term(term: Json) -> Json:
    made = {"labelSelector": _selector(term), "topologyKey": term["key"]}
    if "namespaceLabels" in term:
        made["namespaceSelector"] = {"matchLabels": term["namespaceLabels"]}
    return made


def _spread(constraint: Json) -> Json:
    optional: Json = {key: constraint[key] for key in ("minDomains", "nodeTaintsPolicy") if key in constraint}
    return {
        "maxSkew": constraint.get("maxSkew", 1),
        "topologyKey": constraint["key"],
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": _selector(constraint),
        **optional,
    }


def _selector(term: Json) -> Json:
    if "exists" in term:
        return {"matchExpressions": [{"key": term["exists"], "operator": "Exists"}]}
    return {"matchLabels": term["match"]}


def _toleration(given: str | Json) -> Json:
    """`key`, `key=value`, `key=value:Effect` or `*`; without a value it is enough that the key exists."""
    if not isinstance(given, str):
        return given
    if given == "*":
        return {"operator": "Exists"}
    rest, _, effect = given.partition(":")
    key, equals, value = rest.partition("=")
    wanted = {"operator": "Equal", "value": value} if equals else {"operator": "Exists"}
    return {"key": key, **wanted, **({"effect": effect} if effect else {})}


def _storage(s: Json) -> Json:
    spec: Json = {}
    volumes = [{"name": f"claim-{name}", "persistentVolumeClaim": {"claimName": name}} for name in s.get("pvcs", ())]
    volumes += s.get("volumes", [])
    if volumes:
        spec["volumes"] = volumes
    claims = [{"name": name, "resourceClaimName": name} for name in s.get("claims", ())]
    claims += [
        {"name": name, "resourceClaimTemplateName": template} for name, template in s.get("claimTemplates", {}).items()
    ]
    if claims:
        spec["resourceClaims"] = claims
    return spec


def _status(s: Json) -> Json:
    status: Json = {}
    if "nominated" in s:
        status["nominatedNodeName"] = s["nominated"]
    if "claimStatuses" in s:
        made = s["claimStatuses"].items()
        status["resourceClaimStatuses"] = [{"name": name, "resourceClaimName": claim} for name, claim in made]
    return status


def _named(names: list[str]) -> list[Json]:
    return [{"name": name} for name in names]
