"""The arguments of the default plugins: defaults, and what is rejected."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.config.problems import ConfigError
from pilotage.framework.plugin_args import arguments_of
from pilotage.plugins.args import (
    ARGS_OF_DEFAULT_PLUGINS,
    CPU_AND_MEMORY,
    GATED_ARGS,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def decoded(plugin: str, given: dict[str, Any]) -> Any:
    return arguments_of(plugin, ARGS_OF_DEFAULT_PLUGINS[plugin], given)


@pytest.mark.parametrize(
    ("plugin", "defaults"),
    [
        ("DefaultPreemption", DefaultPreemptionArgs(10, 100)),
        ("DynamicResources", DynamicResourcesArgs(10.0, 600.0)),
        ("InterPodAffinity", InterPodAffinityArgs(1, False)),
        ("NodeAffinity", NodeAffinityArgs(None)),
        (
            "NodeResourcesBalancedAllocation",
            NodeResourcesBalancedAllocationArgs((ResourceSpec("cpu"), ResourceSpec("memory"))),
        ),
        ("NodeResourcesFit", NodeResourcesFitArgs((), (), ScoringStrategy("LeastAllocated", CPU_AND_MEMORY, None))),
        ("PodTopologySpread", PodTopologySpreadArgs((), "System")),
        (
            "VolumeBinding",
            VolumeBindingArgs(600, (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))),
        ),
    ],
)
def test_the_defaults_are_those_of_kube_scheduler(plugin: str, defaults: object) -> None:
    assert decoded(plugin, {}) == defaults
    assert list(defaults.problems()) == []  # type: ignore[attr-defined]


def test_a_weight_of_zero_and_an_empty_list_count_as_not_given() -> None:
    args = decoded("NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated", "resources": []}})
    assert args.scoring_strategy.resources == CPU_AND_MEMORY
    args = decoded("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu", "weight": 0}]})
    assert args.resources == (ResourceSpec("cpu", 1),)
    assert decoded("NodeResourcesBalancedAllocation", {"resources": []}).resources == CPU_AND_MEMORY


def test_added_affinity_is_the_models_own_struct() -> None:
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    given = {REQUIRED: {"nodeSelectorTerms": [term]}, PREFERRED: [{"weight": 3, "preference": term}]}
    added = decoded("NodeAffinity", {"addedAffinity": given}).added_affinity
    assert added.required.node_selector_terms[0].match_expressions[0].values == ("ssd",)
    assert added.preferred[0].weight == 3


def shape(*points: tuple[int, int]) -> list[dict[str, int]]:
    return [{"utilization": utilization, "score": score} for utilization, score in points]


def strategy(**fields: Any) -> dict[str, Any]:
    return {"scoringStrategy": fields}


def constraint(**fields: Any) -> dict[str, Any]:
    usual = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **fields}
    return {"defaultingType": "List", "defaultConstraints": [usual]}


RATIO = "RequestedToCapacityRatio"
SHAPE = "scoringStrategy.requestedToCapacityRatio.shape"


@pytest.mark.parametrize(
    ("plugin", "given", "problem"),
    [
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 101},
            "minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]",
        ),
        (
            "DefaultPreemption",
            {"minCandidateNodesAbsolute": -1},
            "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
        ),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": 101},
            "hardPodAffinityWeight: Invalid value: 101: not in valid range [0-100]",
        ),
        ("NodeResourcesFit", {"ignoredResources": ["-x"]}, 'ignoredResources[0]: Invalid value: "-x": must consist of'),
        (
            "NodeResourcesFit",
            {"ignoredResources": ["UPPER.com/x"]},
            'ignoredResources[0]: Invalid value: "UPPER.com/x": the part before the slash',
        ),
        (
            "NodeResourcesFit",
            {"ignoredResourceGroups": ["a/b"]},
            "ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain '/'",
        ),
        (
            "NodeResourcesFit",
            strategy(type="Best"),
            'scoringStrategy.type: Unsupported value: "Best": supported values',
        ),
        (
            "NodeResourcesFit",
            strategy(resources=[{"name": "cpu", "weight": 101}]),
            "scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range",
        ),
        (
            "NodeResourcesFit",
            strategy(resources=[{"name": "cpu", "weight": -1}]),
            "scoringStrategy.resources[0].weight: Invalid value: -1",
        ),
        ("NodeResourcesFit", strategy(resources=[{}]), "scoringStrategy.resources[0].name: Required value"),
        (
            "NodeResourcesFit",
            strategy(requestedToCapacityRatio={"shape": shape((0, 0))}),
            "scoringStrategy.requestedToCapacityRatio: Forbidden: only allowed when type is RequestedToCapacityRatio",
        ),
        ("NodeResourcesFit", strategy(type=RATIO), f"{SHAPE}: Required value: at least one point must be specified"),
        (
            "NodeResourcesFit",
            strategy(type=RATIO, requestedToCapacityRatio={"shape": shape((0, 0), (101, 1))}),
            f"{SHAPE}[1].utilization: Invalid value: 101: not in valid range [0-100]",
        ),
        (
            "NodeResourcesFit",
            strategy(type=RATIO, requestedToCapacityRatio={"shape": shape((5, 0), (5, 1))}),
            f"{SHAPE}[1].utilization: Invalid value: 5: utilization values must be sorted in increasing order",
        ),
        (
            "NodeResourcesFit",
            strategy(type=RATIO, requestedToCapacityRatio={"shape": shape((5, 11))}),
            f"{SHAPE}[0].score: Invalid value: 11: not in valid range [0-10]",
        ),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu"}, {"name": "cpu"}]},
            'resources[1].name: Duplicate value: "cpu"',
        ),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 2}]},
            "resources[0].weight: Invalid value: 2: must be 1",
        ),
        (
            "PodTopologySpread",
            {**constraint(), "defaultingType": "System"},
            'defaultingType: Invalid value: "System": when .defaultConstraints are not empty',
        ),
        ("PodTopologySpread", {"defaultingType": "Lists"}, "defaultingType: Unsupported value"),
        (
            "PodTopologySpread",
            constraint(maxSkew=0),
            "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
        ),
        ("PodTopologySpread", constraint(topologyKey=""), "defaultConstraints[0].topologyKey: Required value"),
        ("PodTopologySpread", constraint(topologyKey="a b"), 'defaultConstraints[0].topologyKey: Invalid value: "a b"'),
        ("PodTopologySpread", constraint(whenUnsatisfiable=""), "defaultConstraints[0].whenUnsatisfiable: Required"),
        (
            "PodTopologySpread",
            constraint(whenUnsatisfiable="Never"),
            'defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Never": supported values',
        ),
        (
            "PodTopologySpread",
            constraint(labelSelector={"matchLabels": {"a": "b"}}),
            "defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector",
        ),
        (
            "PodTopologySpread",
            {"defaultingType": "List", "defaultConstraints": constraint()["defaultConstraints"] * 2},
            'defaultConstraints[1]: Duplicate value: "{zone, DoNotSchedule}"',
        ),
        (
            "VolumeBinding",
            {"bindTimeoutSeconds": -1},
            "bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value",
        ),
        ("VolumeBinding", {"shape": []}, "shape: Required value: at least one point must be specified"),
        ("VolumeBinding", {"shape": shape((50, 1), (40, 2))}, "shape[1].utilization: Invalid value: 40"),
        ("DynamicResources", {"filterTimeout": "-1s"}, 'filterTimeout: Invalid value: "-1s": must be zero or positive'),
        ("DynamicResources", {"bindingTimeout": "999ms"}, 'bindingTimeout: Invalid value: "999ms": must be at least 1'),
        (
            "NodeAffinity",
            {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": []}}},
            f"addedAffinity.{REQUIRED}.nodeSelectorTerms: Required value",
        ),
        (
            "NodeAffinity",
            {"addedAffinity": {PREFERRED: [{"weight": 0, "preference": {}}]}},
            f"addedAffinity.{PREFERRED}[0].weight: Invalid value: 0: must be in the range 1-100",
        ),
        (
            "NodeAffinity",
            {
                "addedAffinity": {
                    REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Is"}]}]}
                }
            },
            f'addedAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]: Invalid value: key "a"',
        ),
        (
            "NodeAffinity",
            {
                "addedAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [
                            {"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["a"]}]}
                        ]
                    }
                }
            },
            f"addedAffinity.{REQUIRED}.nodeSelectorTerms[0].matchFields[0].key: Invalid value",
        ),
        (
            "NodeAffinity",
            {
                "addedAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [
                            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}
                        ]
                    }
                }
            },
            f"addedAffinity.{REQUIRED}.nodeSelectorTerms[0].matchFields[0]: Invalid value: a field needs",
        ),
        ("NodeAffinity", {"addedAffinity": {"required": {}}}, "addedAffinity.required: unknown field"),
    ],
)
def test_a_value_that_is_not_allowed_is_rejected_with_its_path(
    plugin: str, given: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        decoded(plugin, given)
    assert len(raised.value.lines) == 1
    assert raised.value.lines[0].startswith(f'plugin "{plugin}": args.{problem}')


def test_no_candidates_at_all_is_rejected_at_both_fields() -> None:
    with pytest.raises(ConfigError) as raised:
        decoded("DefaultPreemption", {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0})
    assert [problem.path for problem in raised.value.problems] == [
        "args.minCandidateNodesAbsolute",
        "args.minCandidateNodesPercentage",
    ]


def test_gated_arguments_exist() -> None:
    for plugin, fields in GATED_ARGS.items():
        for name in fields:
            attribute = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
            assert hasattr(ARGS_OF_DEFAULT_PLUGINS[plugin](), attribute)
