"""Label keys of affinity terms and spread constraints end up in their selectors when a pod is created."""

from __future__ import annotations

from typing import Any

from pilotage.sandbox.rules.label_keys import merge_label_keys

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def pod(labels: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "labels": labels}, "spec": spec}


def term(**fields: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone", **fields}


def test_affinity_terms_take_the_values_that_the_pod_has() -> None:
    required, preferred = term(matchLabelKeys=["hash"]), term(mismatchLabelKeys=["tenant"])
    affinity = {
        "podAffinity": {REQUIRED: [required]},
        "podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": preferred}]},
    }
    merge_label_keys(pod({"hash": "a1", "tenant": "t"}, affinity=affinity))
    assert required["labelSelector"] == {
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "hash", "operator": "In", "values": ["a1"]}],
    }
    assert preferred["labelSelector"]["matchExpressions"] == [{"key": "tenant", "operator": "NotIn", "values": ["t"]}]


def test_spread_constraints_keep_their_own_requirements() -> None:
    own = {"key": "tier", "operator": "Exists"}
    constraint = {"labelSelector": {"matchExpressions": [own]}, "matchLabelKeys": ["hash", "absent"]}
    merge_label_keys(pod({"hash": "a1"}, topologySpreadConstraints=[constraint]))
    assert constraint["labelSelector"]["matchExpressions"] == [
        own,
        {"key": "hash", "operator": "In", "values": ["a1"]},
    ]


def test_keys_without_a_label_change_nothing() -> None:
    constraint = {"labelSelector": {}, "matchLabelKeys": ["absent"]}
    merge_label_keys(pod({}, topologySpreadConstraints=[constraint]))
    assert constraint["labelSelector"] == {}
