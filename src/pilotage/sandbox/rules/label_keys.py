"""`matchLabelKeys` and `mismatchLabelKeys` of a new pod become part of the selectors beside them.

The API server does this once, with the labels that the pod has when it is created, so that a scheduler need not know
the keys and labels changed later do not matter. It runs after validation, on objects of the right shape: validation
refuses keys that the author's own selector names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pilotage.sandbox.rules.json_fields import Json, dict_or_empty, dicts_in, nested


def merge_label_keys(pod: Json) -> None:
    spec = dict_or_empty(pod.get("spec"))
    if "affinity" not in spec and "topologySpreadConstraints" not in spec:
        return
    labels = dict_or_empty(nested(pod, "metadata", "labels"))
    for term in (*_affinity_terms(spec), *dicts_in(spec, "topologySpreadConstraints")):
        _add_to_selector(term, "matchLabelKeys", "In", labels)
        _add_to_selector(term, "mismatchLabelKeys", "NotIn", labels)


def _affinity_terms(spec: Json) -> Iterator[Json]:
    for direction in ("podAffinity", "podAntiAffinity"):
        affinity = nested(spec, "affinity", direction)
        yield from dicts_in(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
        for weighted in dicts_in(affinity, "preferredDuringSchedulingIgnoredDuringExecution"):
            yield dict_or_empty(weighted.get("podAffinityTerm"))


def _add_to_selector(term: Json, field: str, operator: str, labels: Mapping[str, str]) -> None:
    """One requirement per key that the pod has a label for; the other keys mean nothing."""
    requirements = [
        {"key": key, "operator": operator, "values": [labels[key]]} for key in term.get(field) or () if key in labels
    ]
    if requirements:
        selector = term["labelSelector"]
        selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *requirements]
