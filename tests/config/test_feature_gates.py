"""Feature gates: names, values, locks, dependencies."""

from __future__ import annotations

import re

import pytest

from pilotage.config.feature_gates import FEATURE_GATES, HONOURED, FeatureGateError, FeatureGates, parse_feature_gates
from pilotage.plugins import GATED_PLUGINS
from pilotage.plugins.args import GATED_ARGS
from tests.source_tree import ROOT


def test_gates_of_the_keps_and_of_pod_groups_are_on() -> None:
    gates = FeatureGates()
    assert gates["SchedulerQueueingHints"] and gates["SchedulerPreQueueingHints"] and gates["SchedulerAsyncAPICalls"]
    assert gates["StorageCapacityScoring"] and gates["NodeDeclaredFeatures"]
    assert gates["GenericWorkload"] and gates["TopologyAwareWorkloadScheduling"] and gates["PodGroupPreemptionPolicy"]
    assert not gates["CompositePodGroup"] and not gates["DRAFractionalCapacityRange"]


def test_the_gates_of_pod_groups_go_off_together() -> None:
    gates = FeatureGates({"GenericWorkload": False})
    assert not gates["TopologyAwareWorkloadScheduling"] and not gates["PodGroupPreemptionPolicy"]
    assert not FeatureGates({"AllBeta": False, "DRADeviceTaintRules": False})["PodGroupPreemptionPolicy"]


def test_gates_are_read_as_kube_scheduler_writes_them() -> None:
    assert parse_feature_gates("") == {}
    assert parse_feature_gates(" NodeDeclaredFeatures = false, GenericWorkload=T,") == {
        "NodeDeclaredFeatures": False,
        "GenericWorkload": True,
    }


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(FeatureGateError) as raised:
        parse_feature_gates(
            "GangScheduling=true,GenericWorkloads=true,DRAAdminAccess=false,PodLevelResources,VolumeLimitScaling=maybe"
        )
    assert raised.value.problems == (
        "missing bool value for PodLevelResources: write PodLevelResources=true or PodLevelResources=false",
        'invalid value of VolumeLimitScaling: "maybe" is neither true nor false',
        "unrecognized feature gate: GangScheduling (merged into GenericWorkload in 1.37; write that alone)",
        'unrecognized feature gate: GenericWorkloads (did you mean "GenericWorkload"?)',
        "cannot set feature gate DRAAdminAccess to false, feature is locked to true",
    )


def test_a_locked_gate_may_be_set_to_what_it_is() -> None:
    assert FeatureGates({"DRAAdminAccess": True}) == FeatureGates()


def test_a_gate_that_depends_on_another_needs_it() -> None:
    with pytest.raises(
        FeatureGateError, match="DRADeviceTaintRules is on but depends on DRADeviceTaints, which is off"
    ):
        FeatureGates({"DRADeviceTaints": False})
    assert not FeatureGates({"DRADeviceTaints": False, "DRADeviceTaintRules": False})["DRADeviceTaintRules"]
    with pytest.raises(FeatureGateError, match="TopologyAwareWorkloadScheduling is on but depends on GenericWorkload"):
        FeatureGates({"TopologyAwareWorkloadScheduling": True, "GenericWorkload": False})


def test_all_alpha_and_all_beta_set_what_is_not_set_by_name() -> None:
    gates = FeatureGates({"AllAlpha": True, "AllBeta": True, "SchedulerPopFromBackoffQ": False})
    assert gates["CompositePodGroup"] and gates["GenericWorkload"]
    assert not gates["SchedulerPopFromBackoffQ"]
    assert FeatureGates({"AllAlpha": False})["SchedulerPreQueueingHints"] is False


def test_gates_compare_by_what_is_on() -> None:
    assert FeatureGates({"GenericWorkload": True}) == FeatureGates()
    assert FeatureGates({"GenericWorkload": False}) != FeatureGates()
    assert hash(FeatureGates()) == hash(FeatureGates({"GenericWorkload": True}))


def test_every_dependency_names_a_gate() -> None:
    assert [name for gate in FEATURE_GATES.values() for name in gate.needs if name not in FEATURE_GATES] == []


def test_a_gate_that_changes_nothing_here_is_named() -> None:
    assert FeatureGates().without_effect() == []
    chosen = {"DRAListTypeAttributes": True, "NodeDeclaredFeatures": False, "PodLevelResources": False}
    assert FeatureGates(chosen).without_effect() == [
        "feature gate PodLevelResources=false has no effect: Pilotage works as if it were true",
        "feature gate DRAListTypeAttributes=true has no effect: Pilotage works as if it were false",
    ]
    assert FeatureGates({"PodLevelResources": True, "DRAListTypeAttributes": False}).without_effect() == []


def test_gates_that_a_stage_sets_are_named_one_by_one() -> None:
    told = FeatureGates({"AllAlpha": True, "GenericWorkload": True}).without_effect()
    assert any(line.startswith("feature gate DRAListTypeAttributes=true has no effect") for line in told)
    assert not any("SchedulerPreQueueingHints" in line for line in told)


def test_gates_with_an_effect_are_those_that_the_code_asks_for() -> None:
    sources = (file.read_text() for file in ROOT.rglob("*.py"))
    asked = {name for source in sources for name in re.findall(r'gates\["(\w+)"\]', source)}
    arguments = (gate for fields in GATED_ARGS.values() for gates in fields.values() for gate in gates)
    assert asked | {*GATED_PLUGINS.values(), *arguments} == HONOURED
