"""The arguments of the default plugins: what `pluginConfig` may say, with kube-scheduler's defaults and limits.

One frozen dataclass per args kind. Fields are snake_case here and camelCase in files. `problems()` yields (field path,
message) for everything that is wrong with the values; types and unknown keys have been checked before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pilotage.model.durations import Duration, go_duration
from pilotage.model.names import label_name_problem
from pilotage.model.pod_spec import NodeAffinity, TopologySpreadConstraint
from pilotage.model.requirements import Requirement
from pilotage.model.selectors import NodeSelectorTerm

Problems = Iterator[tuple[str, str]]

_MOST = 100


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """A resource that counts in a score."""

    name: str
    weight: int = 1

    def __post_init__(self) -> None:
        if self.weight == 0:  # as in Kubernetes, a weight of 0 is one that was not given
            object.__setattr__(self, "weight", 1)


@dataclass(frozen=True, slots=True)
class UtilizationShapePoint:
    """A corner of a broken line: the score (0 to 10) at a utilization (0 to 100)."""

    utilization: int
    score: int


CPU_AND_MEMORY = (ResourceSpec("cpu"), ResourceSpec("memory"))
STORAGE_SHAPE = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))


@dataclass(frozen=True, slots=True)
class DefaultPreemptionArgs:
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100

    def problems(self) -> Problems:
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        if not 0 <= percentage <= _MOST:
            yield "minCandidateNodesPercentage", f"Invalid value: {percentage}: not in valid range [0, 100]"
        if absolute < 0:
            yield "minCandidateNodesAbsolute", f"Invalid value: {absolute}: not in valid range [0, inf)"
        if percentage == absolute == 0:
            together = "cannot be zero at the same time as"
            yield "minCandidateNodesPercentage", f"Invalid value: 0: {together} minCandidateNodesAbsolute"
            yield "minCandidateNodesAbsolute", f"Invalid value: 0: {together} minCandidateNodesPercentage"


@dataclass(frozen=True, slots=True)
class InterPodAffinityArgs:
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def problems(self) -> Problems:
        if not 0 <= self.hard_pod_affinity_weight <= _MOST:
            value = self.hard_pod_affinity_weight
            yield "hardPodAffinityWeight", f"Invalid value: {value}: not in valid range [0-100]"


@dataclass(frozen=True, slots=True)
class NodeAffinityArgs:
    added_affinity: NodeAffinity | None = None
    """Required and preferred terms that count for every pod of the profile, besides the pod's own."""

    def problems(self) -> Problems:
        added = self.added_affinity
        if added is None:
            return
        if added.required is not None:
            path = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
            if not added.required.node_selector_terms:
                yield path, "Required value: must have at least one node selector term"
            for at, term in enumerate(added.required.node_selector_terms):
                yield from _term_problems(f"{path}[{at}]", term)
        for at, preferred in enumerate(added.preferred):
            path = f"addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[{at}]"
            if not 1 <= preferred.weight <= _MOST:
                yield f"{path}.weight", f"Invalid value: {preferred.weight}: must be in the range 1-100"
            yield from _term_problems(f"{path}.preference", preferred.preference)


@dataclass(frozen=True, slots=True)
class RequestedToCapacityRatioParam:
    shape: tuple[UtilizationShapePoint, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None

    def __post_init__(self) -> None:
        if not self.resources:
            object.__setattr__(self, "resources", CPU_AND_MEMORY)

    def problems(self) -> Problems:
        for at, resource in enumerate(self.resources):
            yield from _label_name_problems(f"resources[{at}].name", resource.name)
            if not 1 <= resource.weight <= _MOST:
                problem = f"resource weight of {resource.name} not in valid range [1-100]"
                yield f"resources[{at}].weight", f"Invalid value: {resource.weight}: {problem}"
        ratio = self.requested_to_capacity_ratio
        if self.type == "RequestedToCapacityRatio":
            yield from shape_problems("requestedToCapacityRatio.shape", ratio.shape if ratio else ())
        elif ratio is not None:
            problem = f"only allowed when type is RequestedToCapacityRatio, not {self.type}"
            yield "requestedToCapacityRatio", f"Forbidden: {problem}"


@dataclass(frozen=True, slots=True)
class NodeResourcesFitArgs:
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()

    def problems(self) -> Problems:
        for at, name in enumerate(self.ignored_resources):
            yield from _label_name_problems(f"ignoredResources[{at}]", name)
        for at, name in enumerate(self.ignored_resource_groups):
            path = f"ignoredResourceGroups[{at}]"
            if "/" in name:
                yield path, f"Invalid value: \"{name}\": resource group name can't contain '/'"
            else:
                yield from _label_name_problems(path, name)
        for path, problem in self.scoring_strategy.problems():
            yield f"scoringStrategy.{path}", problem


@dataclass(frozen=True, slots=True)
class NodeResourcesBalancedAllocationArgs:
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY

    def __post_init__(self) -> None:
        if not self.resources:
            object.__setattr__(self, "resources", CPU_AND_MEMORY)

    def problems(self) -> Problems:
        seen: set[str] = set()
        for at, resource in enumerate(self.resources):
            path = f"resources[{at}]"
            if resource.name in seen:
                yield f"{path}.name", f'Duplicate value: "{resource.name}"'
            seen.add(resource.name)
            if resource.weight != 1:
                yield f"{path}.weight", f"Invalid value: {resource.weight}: must be 1"


@dataclass(frozen=True, slots=True)
class PodTopologySpreadArgs:
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    """For pods without constraints of their own, when `defaulting_type` is List."""
    defaulting_type: Literal["System", "List"] = "System"

    def problems(self) -> Problems:
        if self.defaulting_type == "System" and self.default_constraints:
            problem = "when .defaultConstraints are not empty (say defaultingType: List)"
            yield "defaultingType", f'Invalid value: "System": {problem}'
        seen: set[tuple[str, str]] = set()
        for at, constraint in enumerate(self.default_constraints):
            path = f"defaultConstraints[{at}]"
            yield from _constraint_problems(path, constraint)
            identity = (constraint.topology_key, constraint.when_unsatisfiable)
            if identity in seen:
                yield path, f'Duplicate value: "{{{", ".join(identity)}}}"'
            seen.add(identity)


@dataclass(frozen=True, slots=True)
class VolumeBindingArgs:
    bind_timeout_seconds: int = 600
    shape: tuple[UtilizationShapePoint, ...] | None = STORAGE_SHAPE
    """None: storage capacity is not scored (feature gate StorageCapacityScoring is off)."""

    def problems(self) -> Problems:
        if self.bind_timeout_seconds < 0:
            problem = "invalid BindTimeoutSeconds, should not be a negative value"
            yield "bindTimeoutSeconds", f"Invalid value: {self.bind_timeout_seconds}: {problem}"
        if self.shape is not None:
            yield from shape_problems("shape", self.shape)


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgs:
    filter_timeout: Duration | None = 10.0
    """For one node; 0 or None: no limit (feature gate DRASchedulerFilterTimeout is off)."""
    binding_timeout: Duration | None = 600.0
    """None: binding conditions are not waited for (feature gate DRADeviceBindingConditions is off)."""
    reserves_for_groups: bool | None = field(default=True, metadata={"stands in files": False})
    """Are claims of groups reserved for the group? None: for each pod (gate DRAWorkloadResourceClaims is off)."""

    def problems(self) -> Problems:
        if self.filter_timeout is not None and self.filter_timeout < 0:
            yield "filterTimeout", f'Invalid value: "{go_duration(self.filter_timeout)}": must be zero or positive'
        if self.binding_timeout is not None and self.binding_timeout < 1:
            yield "bindingTimeout", f'Invalid value: "{go_duration(self.binding_timeout)}": must be at least 1 second'


ARGS_OF_DEFAULT_PLUGINS: Final[Mapping[str, type]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}
"""Also of plugins that do not exist yet: their configuration is checked all the same."""

GATED_ARGS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "VolumeBinding": {"shape": ("StorageCapacityScoring",)},
    "DynamicResources": {
        "filterTimeout": ("DRASchedulerFilterTimeout",),
        "bindingTimeout": ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
        "reservesForGroups": ("DRAWorkloadResourceClaims",),
    },
}
"""Arguments that must not be given, and are None, unless all these feature gates are on."""


def shape_problems(path: str, shape: Sequence[UtilizationShapePoint]) -> Problems:
    """A shape needs a point, rising utilizations from 0 to 100, and scores from 0 to 10."""
    if not shape:
        yield path, "Required value: at least one point must be specified"
    for at, point in enumerate(shape):
        here = f"{path}[{at}]"
        if not 0 <= point.utilization <= _MOST:
            yield f"{here}.utilization", f"Invalid value: {point.utilization}: not in valid range [0-100]"
        if at and point.utilization <= shape[at - 1].utilization:
            problem = "utilization values must be sorted in increasing order"
            yield f"{here}.utilization", f"Invalid value: {point.utilization}: {problem}"
        if not 0 <= point.score <= 10:
            yield f"{here}.score", f"Invalid value: {point.score}: not in valid range [0-10]"


def _constraint_problems(path: str, constraint: TopologySpreadConstraint) -> Problems:
    if constraint.max_skew <= 0:
        yield f"{path}.maxSkew", f"Invalid value: {constraint.max_skew}: not in valid range (0, inf)"
    if not constraint.topology_key:
        yield f"{path}.topologyKey", "Required value: can not be empty"
    else:
        yield from _label_name_problems(f"{path}.topologyKey", constraint.topology_key)
    if not constraint.when_unsatisfiable:
        yield f"{path}.whenUnsatisfiable", "Required value: can not be empty"
    elif constraint.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
        supported = 'supported values: "DoNotSchedule", "ScheduleAnyway"'
        yield f"{path}.whenUnsatisfiable", f'Unsupported value: "{constraint.when_unsatisfiable}": {supported}'
    if constraint.label_selector is not None:
        problem = "constraint must not define a selector, as they deduced for each pod"
        yield f"{path}.labelSelector", f"Forbidden: {problem}"


def _term_problems(path: str, term: NodeSelectorTerm) -> Problems:
    for at, requirement in enumerate(term.match_expressions):
        yield from _requirement_problems(f"{path}.matchExpressions[{at}]", requirement)
    for at, requirement in enumerate(term.match_fields):
        here = f"{path}.matchFields[{at}]"
        if requirement.key != "metadata.name":
            yield f"{here}.key", f'Invalid value: "{requirement.key}": not a valid field selector key'
        if requirement.operator not in ("In", "NotIn") or len(requirement.values) != 1:
            yield here, "Invalid value: a field needs the operator In or NotIn with exactly one value"


def _requirement_problems(path: str, requirement: Requirement) -> Problems:
    yield from _label_name_problems(f"{path}.key", requirement.key)
    problem = requirement.problem()
    if problem is not None:
        yield path, f"Invalid value: {problem}"


def _label_name_problems(path: str, name: str) -> Problems:
    problem = label_name_problem(name)
    if problem is not None:
        yield path, f'Invalid value: "{name}": {problem}'
