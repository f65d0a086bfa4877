"""What the first default plugins must say of one node, written down plainly from the JSON of the objects.

Slow and without columns, caches or our own model: the specification that the fast variants are compared with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
DEFAULTS = {"cpu": 100, "memory": 200 * 2**20}
WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "NodeResourcesBalancedAllocation": 1,
}


@dataclass(frozen=True)
class NaiveNode:
    node: Json
    pods: list[Json]

    @property
    def name(self) -> str:
        return str(self.node["metadata"]["name"])

    @property
    def labels(self) -> dict[str, str]:
        return self.node["metadata"].get("labels", {})

    @property
    def taints(self) -> list[Json]:
        return self.node["spec"].get("taints", [])

    def offers(self, resource: str) -> int:
        return amount(resource, self.node["status"]["allocatable"].get(resource, "0"))

    def used(self, resource: str, default: int = 0) -> int:
        return sum(wants(pod, resource, default) for pod in self.pods)


def amount(resource: str, text: str) -> int:
    """Amounts are plain integers, and milli-cores for cpu (`250m`)."""
    return int(text.removesuffix("m")) if resource == "cpu" else int(text)


def wants(pod: Json, resource: str, default: int = 0) -> int:
    requests = pod["spec"]["containers"][0]["resources"].get("requests", {})
    return amount(resource, requests[resource]) if resource in requests else default


# --- filter -----------------------------------------------------------------------------------------------------------


def rejection(pod: Json, node: NaiveNode) -> tuple[str, bool, list[str]] | None:
    """(plugin, unresolvable, messages) of the first plugin that rejects; None if the pod fits."""
    spec = pod["spec"]
    if spec.get("nodeName") and spec["nodeName"] != node.name:
        return "NodeName", True, ["node(s) didn't match the requested node name"]
    if node.node["spec"].get("unschedulable") and not tolerated(spec.get("tolerations", []), CORDON):
        return "NodeUnschedulable", True, ["node(s) were unschedulable"]
    hard = [taint for taint in node.taints if taint["effect"] in ("NoSchedule", "NoExecute")]
    if not all(tolerated(spec.get("tolerations", []), taint) for taint in hard):
        return "TaintToleration", True, ["node(s) had untolerated taint(s)"]
    if not matches_required(spec, node.labels):
        return "NodeAffinity", True, ["node(s) didn't match Pod's node affinity/selector"]
    return _does_not_fit(pod, node)


def _does_not_fit(pod: Json, node: NaiveNode) -> tuple[str, bool, list[str]] | None:
    messages, unresolvable = [], False
    if len(node.pods) + 1 > node.offers("pods"):
        messages.append("Too many pods")
    for resource in ("cpu", "memory", "example.com/gpu"):
        wanted = wants(pod, resource)
        if wanted > 0 and wanted > node.offers(resource) - node.used(resource):
            messages.append(f"Insufficient {resource}")
            unresolvable = unresolvable or wanted > node.offers(resource)
    return ("NodeResourcesFit", unresolvable, sorted(messages)) if messages else None


def tolerated(tolerations: list[Json], taint: Json) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("value", "") == taint.get("value", ""))


def matches_required(spec: Json, labels: dict[str, str]) -> bool:
    if any(labels.get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
        return False
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(matches_term(term, labels) for term in required["nodeSelectorTerms"])


def matches_term(term: Json, labels: dict[str, str]) -> bool:
    expressions = term.get("matchExpressions", [])
    return bool(expressions) and all(_matches(expression, labels) for expression in expressions)


def _matches(expression: Json, labels: dict[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values", [])
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            if value is None or not value.isdecimal():
                return False
            return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
    raise AssertionError(expression)


# --- score ------------------------------------------------------------------------------------------------------------


def raw_scores(pod: Json, nodes: list[NaiveNode]) -> dict[str, list[int]]:
    """By plugin, for each node; without the plugins that have nothing to say for this pod."""
    scores = {
        "TaintToleration": [_disliked(pod, node) for node in nodes],
        "NodeResourcesFit": [_least_allocated(pod, node) for node in nodes],
    }
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution", [])
    if preferred:
        scores["NodeAffinity"] = [
            sum(wish["weight"] for wish in preferred if matches_term(wish["preference"], node.labels)) for node in nodes
        ]
    if wants(pod, "cpu") or wants(pod, "memory"):
        scores["NodeResourcesBalancedAllocation"] = [_balance_change(pod, node) for node in nodes]
    return scores


def weighted_scores(raw: dict[str, list[int]]) -> dict[str, list[int]]:
    weighted = {}
    for plugin, scores in raw.items():
        if plugin == "TaintToleration":
            scores = _normalized(scores, reverse=True)
        elif plugin == "NodeAffinity":
            scores = _normalized(scores, reverse=False)
        weighted[plugin] = [score * WEIGHTS[plugin] for score in scores]
    return weighted


def _normalized(scores: list[int], *, reverse: bool) -> list[int]:
    highest = max([*scores, 0])
    if highest == 0:
        return [100 if reverse else score for score in scores]
    scaled = [score * 100 // highest for score in scores]
    return [100 - score for score in scaled] if reverse else scaled


def _disliked(pod: Json, node: NaiveNode) -> int:
    fitting = [t for t in pod["spec"].get("tolerations", []) if t.get("effect", "") in ("", "PreferNoSchedule")]
    return sum(taint["effect"] == "PreferNoSchedule" and not tolerated(fitting, taint) for taint in node.taints)


def _least_allocated(pod: Json, node: NaiveNode) -> int:
    shares = []
    for resource, default in DEFAULTS.items():
        capacity = node.offers(resource)
        if capacity:
            used = node.used(resource, default) + wants(pod, resource, default)
            shares.append(0 if used > capacity else (capacity - used) * 100 // capacity)
    return sum(shares) // len(shares) if shares else 0


def _balance_change(pod: Json, node: NaiveNode) -> int:
    def balance(extra: Json | None) -> int:
        shares = []
        for resource in DEFAULTS:
            if node.offers(resource):
                used = node.used(resource) + (wants(extra, resource) if extra else 0)
                shares.append(min(used / node.offers(resource), 1.0))
        spread = abs(shares[0] - shares[1]) / 2 if len(shares) == 2 else 0.0
        return int((1 - spread) * 100)

    return 50 + int((50 + balance(pod) - balance(None)) / 2)
