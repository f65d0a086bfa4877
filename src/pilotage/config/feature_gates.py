"""Feature gates: one table, a reader of `A=true,B=false`, and the set that a scheduler is built with.

The table is kube-scheduler's of Kubernetes 1.37. It differs in gates that are the subject of the KEPs we follow: those
of queueing hints, pre-queueing hints and asynchronous API calls are on, and so are those of pod groups (which go off
together). Gates are read once, when the scheduler is put together; they choose what is built and are not asked
afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pilotage.config import obsolete
from pilotage.model.suggestions import suggestion

Stage = Literal["alpha", "beta", "GA"]


@dataclass(frozen=True, slots=True)
class FeatureGate:
    name: str
    default: bool
    stage: Stage
    is_locked: bool = False
    needs: tuple[str, ...] = ()
    """Gates that must be on if this one is."""
    follows: bool = False
    """Goes off with a gate that it needs, unless it was chosen; kube-scheduler has it off from the start."""


class FeatureGateError(ValueError):
    """What is wrong with a choice of gates; one problem per line."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def _dra(name: str, default: bool, stage: Stage, *needs: str, is_locked: bool = False) -> FeatureGate:
    return FeatureGate(name, default, stage, is_locked, ("DynamicResourceAllocation", *needs))


_TABLE: Final = (
    FeatureGate("SchedulerQueueingHints", True, "GA"),
    FeatureGate("SchedulerPreQueueingHints", True, "alpha"),
    FeatureGate("SchedulerAsyncAPICalls", True, "beta"),
    FeatureGate("SchedulerAsyncPreemption", True, "beta"),
    FeatureGate("SchedulerPopFromBackoffQ", True, "beta"),
    FeatureGate("OpportunisticBatching", True, "beta"),
    FeatureGate("NominatedNodeNameForExpectation", True, "beta"),
    FeatureGate("ClearingNominatedNodeNameAfterBinding", True, "beta"),
    FeatureGate("NodeInclusionPolicyInPodTopologySpread", True, "GA", is_locked=True),
    FeatureGate("MatchLabelKeysInPodTopologySpread", True, "beta"),
    FeatureGate("MatchLabelKeysInPodTopologySpreadSelectorMerge", True, "beta"),
    FeatureGate("MatchLabelKeysInPodAffinity", True, "GA"),
    FeatureGate("PodLevelResources", True, "beta"),
    FeatureGate("InPlacePodVerticalScaling", True, "GA"),
    FeatureGate("InPlacePodLevelResourcesVerticalScaling", True, "beta"),
    FeatureGate("InPlacePodVerticalScalingSchedulerPreemption", False, "alpha"),
    FeatureGate("NodeDeclaredFeatures", True, "GA"),
    FeatureGate("TaintTolerationComparisonOperators", False, "alpha"),
    FeatureGate("StorageCapacityScoring", True, "beta"),
    FeatureGate("VolumeLimitScaling", True, "beta"),
    FeatureGate("VolumeAttributesClass", True, "GA"),
    FeatureGate("InterPodAffinityHostnameFastPath", False, "alpha"),
    FeatureGate("DynamicResourceAllocation", True, "GA", is_locked=True),
    _dra("DRAPrioritizedList", True, "GA"),
    _dra("DRAAdminAccess", True, "GA", is_locked=True),
    _dra("DRADeviceTaints", True, "GA"),
    _dra("DRADeviceTaintRules", True, "GA", "DRADeviceTaints"),
    _dra("DRAExtendedResource", True, "GA", is_locked=True),
    _dra("DRAResourceClaimDeviceStatus", True, "GA"),
    _dra("DRAConsumableCapacity", True, "beta"),
    _dra("DRAFractionalCapacityRange", False, "beta", "DRAConsumableCapacity"),
    _dra("DRADeviceBindingConditions", True, "beta", "DRAResourceClaimDeviceStatus"),
    _dra("DRAPartitionableDevices", True, "beta"),
    _dra("DRASchedulerFilterTimeout", True, "beta"),
    _dra("DRAListTypeAttributes", False, "alpha"),
    _dra("DRADerivedAttributes", False, "alpha"),
    _dra("DRADeviceCompatibilityGroups", False, "alpha"),
    _dra("DRAOptionalNodeOperations", False, "alpha"),
    _dra("DRANodeAllocatableResources", False, "alpha"),
    FeatureGate("GenericWorkload", True, "beta"),
    FeatureGate(
        "DRAWorkloadResourceClaims", True, "beta", needs=("DynamicResourceAllocation", "GenericWorkload"), follows=True
    ),
    FeatureGate("TopologyAwareWorkloadScheduling", True, "alpha", needs=("GenericWorkload",), follows=True),
    FeatureGate("CompositePodGroup", False, "alpha", needs=("GenericWorkload", "TopologyAwareWorkloadScheduling")),
    FeatureGate("PodGroupPreemptionPolicy", True, "alpha", needs=("GenericWorkload",), follows=True),
    FeatureGate("WorkloadWithJob", False, "alpha", needs=("GenericWorkload",)),
    FeatureGate("PodObservedGenerationTracking", True, "GA", is_locked=True),
    FeatureGate("CoordinatedLeaderElection", False, "beta"),
    FeatureGate("ComponentFlagz", True, "beta"),
    FeatureGate("ComponentStatusz", True, "beta"),
)
HONOURED: Final = frozenset(
    {
        "SchedulerQueueingHints",
        "SchedulerPreQueueingHints",
        "SchedulerAsyncAPICalls",
        "SchedulerAsyncPreemption",
        "SchedulerPopFromBackoffQ",
        "NominatedNodeNameForExpectation",
        "NodeDeclaredFeatures",
        "StorageCapacityScoring",
        "DynamicResourceAllocation",
        "DRAResourceClaimDeviceStatus",
        "DRADeviceBindingConditions",
        "DRASchedulerFilterTimeout",
        "GenericWorkload",
        "DRAWorkloadResourceClaims",
        "TopologyAwareWorkloadScheduling",
        "PodGroupPreemptionPolicy",
        "ComponentFlagz",
        "ComponentStatusz",
    }
)
"""Gates that choose something here. Of the others Pilotage does what their default says, whatever is chosen."""
FEATURE_GATES: Final[Mapping[str, FeatureGate]] = {gate.name: gate for gate in _TABLE}
_ALL_OF_STAGE: Final[Mapping[str, Stage]] = {"AllAlpha": "alpha", "AllBeta": "beta"}
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})


class FeatureGates:
    """Which gates are on; built complete and checked."""

    def __init__(self, chosen: Mapping[str, bool] | None = None) -> None:
        self._chosen = dict(chosen or {})
        problems = [problem for name, value in self._chosen.items() if (problem := _choice_problem(name, value))]
        self._on = {gate.name: self._value(gate) for gate in _TABLE}
        for gate in _TABLE if not problems else ():
            off = [name for name in gate.needs if not self._on[name]]
            if self._on[gate.name] and off:
                problems.append(f"{gate.name} is on but depends on {' and '.join(off)}, which is off")
        if problems:
            raise FeatureGateError(problems)

    def _value(self, gate: FeatureGate) -> bool:
        if gate.name in self._chosen:
            return self._chosen[gate.name]
        for name, stage in _ALL_OF_STAGE.items():
            if name in self._chosen and gate.stage == stage and not gate.is_locked:
                return self._chosen[name]
        return gate.default and (not gate.follows or all(self._value(FEATURE_GATES[name]) for name in gate.needs))

    def __getitem__(self, name: str) -> bool:
        return self._on[name]

    def without_effect(self) -> list[str]:
        """A sentence for each gate that was set, by name or by its stage, to something that is not done here."""
        return [
            f"feature gate {gate.name}={str(self._on[gate.name]).lower()} has no effect: "
            f"Pilotage works as if it were {str(gate.default).lower()}"
            for gate in _TABLE
            if gate.name not in HONOURED and self._on[gate.name] != gate.default
        ]

    def states(self) -> Iterator[tuple[str, Stage, bool]]:
        """(name, stage, is on) of every gate."""
        return ((gate.name, gate.stage, self._on[gate.name]) for gate in _TABLE)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureGates) and self._on == other._on

    def __hash__(self) -> int:
        return hash(tuple(self._on.items()))

    def __repr__(self) -> str:
        return f"FeatureGates({self._chosen})"


def parse_feature_gates(text: str) -> dict[str, bool]:
    """The gates of `A=true,B=false`; FeatureGateError names all that do not exist or make no sense."""
    chosen: dict[str, bool] = {}
    problems = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
            problems.append(f"missing bool value for {name}: write {name}=true or {name}=false")
        elif value not in _TRUE | _FALSE:
            problems.append(f'invalid value of {name}: "{value}" is neither true nor false')
        else:
            chosen[name] = value in _TRUE
    problems += [problem for name, value in chosen.items() if (problem := _choice_problem(name, value))]
    if problems:
        raise FeatureGateError(problems)
    return chosen


def _choice_problem(name: str, value: bool) -> str | None:
    if name in _ALL_OF_STAGE:
        return None
    gate = FEATURE_GATES.get(name)
    if gate is None:
        hint = f" ({obsolete.GATES[name]})" if name in obsolete.GATES else suggestion(name, FEATURE_GATES)
        return f"unrecognized feature gate: {name}{hint}"
    if gate.is_locked and value != gate.default:
        return (
            f"cannot set feature gate {name} to {str(value).lower()}, feature is locked to {str(gate.default).lower()}"
        )
    return None
