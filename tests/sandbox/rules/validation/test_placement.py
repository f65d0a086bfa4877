"""Affinity, tolerations, topology spread and node selectors of a pod."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.rules.validation import validate_create

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def messages(**spec: Any) -> list[str]:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}
    return [str(error) for error in validate_create("Pod", pod)]


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, []),
        ({"key": "a", "value": "b"}, []),
        ({"key": "a", "operator": "Gt", "value": "5"}, []),
        (
            {},
            [
                'spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is empty, '
                'which means "match all values and all keys"'
            ],
        ),
        (
            {"key": "a", "operator": "Exists", "value": "b"},
            ["spec.tolerations[0].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'"],
        ),
        (
            {"key": "a", "operator": "Like"},
            ['spec.tolerations[0].operator: Unsupported value: "Like": supported values: "Equal", "Exists"'],
        ),
        (
            {"key": "a", "effect": "Never"},
            [
                'spec.tolerations[0].effect: Unsupported value: "Never": '
                'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'
            ],
        ),
        (
            {"key": "a", "effect": "NoSchedule", "tolerationSeconds": 3},
            [
                'spec.tolerations[0].effect: Invalid value: "NoSchedule": '
                "effect must be 'NoExecute' when `tolerationSeconds` is set"
            ],
        ),
    ],
)
def test_toleration(toleration: dict[str, Any], expected: list[str]) -> None:
    assert messages(tolerations=[toleration]) == expected


def node_affinity(*expressions: Any, fields: Any = None) -> dict[str, Any]:
    term = {"matchExpressions": list(expressions), "matchFields": fields}
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}


PLACE = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ({"key": "a", "operator": "In", "values": ["b"]}, []),
        ({"key": "a", "operator": "Gt", "values": ["5"]}, []),
        ({"key": "a", "operator": "Exists"}, []),
        (
            {"key": "a", "operator": "In"},
            ["matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"],
        ),
        (
            {"key": "a", "operator": "Exists", "values": ["b"]},
            [
                "matchExpressions[0].values: Forbidden: "
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            ],
        ),
        (
            {"key": "a", "operator": "Gt", "values": ["1", "2"]},
            [
                "matchExpressions[0].values: Required value: "
                "must be specified single value when `operator` is 'Lt' or 'Gt'"
            ],
        ),
        (
            {"key": "a", "operator": "Is"},
            ['matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator'],
        ),
    ],
)
def test_node_affinity_expression(expression: dict[str, Any], expected: list[str]) -> None:
    assert messages(affinity=node_affinity(expression)) == [f"{PLACE}.{one}" for one in expected]


def test_node_affinity_needs_terms_and_knows_one_field() -> None:
    assert messages(affinity={"nodeAffinity": {REQUIRED: {}}}) == [
        f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms: Required value: "
        "must have at least one node selector term"
    ]
    good = {"key": "metadata.name", "operator": "In", "values": ["n"]}
    assert messages(affinity=node_affinity(fields=[good])) == []
    assert messages(affinity=node_affinity(fields=[{**good, "key": "spec.x"}])) == [
        f'{PLACE}.matchFields[0].key: Invalid value: "spec.x": not a valid field selector key'
    ]


@pytest.mark.parametrize("weight", [0, 101])
def test_preference_has_a_weight_in_range(weight: int) -> None:
    preferred = {"weight": weight, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
    assert messages(affinity={"nodeAffinity": {PREFERRED: [preferred]}}) == [
        f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight: Invalid value: {weight}: must be in the range 1-100"
    ]


@pytest.mark.parametrize("side", ["podAffinity", "podAntiAffinity"])
def test_pod_affinity_term(side: str) -> None:
    good = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
    assert messages(affinity={side: {REQUIRED: [good], PREFERRED: [{"weight": 1, "podAffinityTerm": good}]}}) == []
    bad = {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}}
    assert messages(affinity={side: {REQUIRED: [bad]}}) == [
        f"spec.affinity.{side}.{REQUIRED}[0].labelSelector.matchExpressions[0].operator: Invalid value: "
        '"Gt": not a valid selector operator',
        f"spec.affinity.{side}.{REQUIRED}[0].topologyKey: Required value: can not be empty",
    ]


GOOD_SPREAD: dict[str, Any] = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"minDomains": 2}, []),
        ({"maxSkew": 0}, ["maxSkew: Invalid value: 0: must be greater than zero"]),
        ({"topologyKey": ""}, ["topologyKey: Required value: can not be empty"]),
        (
            {"whenUnsatisfiable": "Retry"},
            ['whenUnsatisfiable: Unsupported value: "Retry": supported values: "DoNotSchedule", "ScheduleAnyway"'],
        ),
        ({"minDomains": 0}, ["minDomains: Invalid value: 0: must be greater than zero"]),
        (
            {"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"},
            [
                "minDomains: Invalid value: 2: "
                "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
            ],
        ),
        (
            {"nodeTaintsPolicy": "Maybe"},
            ['nodeTaintsPolicy: Unsupported value: "Maybe": supported values: "Honor", "Ignore"'],
        ),
        (
            {"matchLabelKeys": ["a"]},
            ["matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"],
        ),
        (
            {"matchLabelKeys": ["a"], "labelSelector": {"matchLabels": {"a": "b"}}},
            ['matchLabelKeys[0]: Invalid value: "a": exists in both matchLabelKeys and labelSelector'],
        ),
    ],
)
def test_spread_constraint(change: dict[str, Any], expected: list[str]) -> None:
    found = messages(topologySpreadConstraints=[GOOD_SPREAD | change])
    assert found == [f"spec.topologySpreadConstraints[0].{one}" for one in expected]


def test_spread_constraints_are_unique() -> None:
    assert messages(topologySpreadConstraints=[GOOD_SPREAD, GOOD_SPREAD]) == [
        'spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate value: "{zone, DoNotSchedule}"'
    ]


def test_node_selector_is_a_map_of_labels() -> None:
    (message,) = messages(nodeSelector={"a": "not a value"})
    assert message.startswith('spec.nodeSelector: Invalid value: "not a value": a valid label')
