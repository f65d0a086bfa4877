"""Feature gates: names, values, locks, dependencies."""

from __future__ import annotations

import pytest

from pilotage.config.feature_gates import FEATURE_GATES, FeatureGateError, FeatureGates, parse_feature_gates


def test_gates_of_the_keps_are_on_and_pod_groups_are_off() -> None:
    gates = FeatureGates()
    assert gates["SchedulerQueueingHints"] and gates["SchedulerPreQueueingHints"] and gates["SchedulerAsyncAPICalls"]
    assert gates["StorageCapacityScoring"] and gates["NodeDeclaredFeatures"]
    assert not gates["GenericWorkload"] and not gates["DRAFractionalCapacityRange"]


def test_gates_are_read_as_kube_scheduler_writes_them() -> None:
    assert parse_feature_gates("") == {}
    assert parse_feature_gates(" NodeDeclaredFeatures = false, GenericWorkload=T,") == {
        "NodeDeclaredFeatures": False,
        "GenericWorkload": True,
    }


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(FeatureGateError) as raised:
        parse_feature_gates("GenericWorkloads=true,DRAAdminAccess=false,PodLevelResources,VolumeLimitScaling=maybe")
    assert raised.value.problems == (
        "missing bool value for PodLevelResources: write PodLevelResources=true or PodLevelResources=false",
        'invalid value of VolumeLimitScaling: "maybe" is neither true nor false',
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
        FeatureGates({"TopologyAwareWorkloadScheduling": True})


def test_all_alpha_and_all_beta_set_what_is_not_set_by_name() -> None:
    gates = FeatureGates({"AllAlpha": True, "AllBeta": True, "SchedulerPopFromBackoffQ": False})
    assert gates["CompositePodGroup"] and gates["GenericWorkload"]
    assert not gates["SchedulerPopFromBackoffQ"]
    assert FeatureGates({"AllAlpha": False})["SchedulerPreQueueingHints"] is False


def test_gates_compare_by_what_is_on() -> None:
    assert FeatureGates({"GenericWorkload": False}) == FeatureGates()
    assert FeatureGates({"GenericWorkload": True}) != FeatureGates()
    assert hash(FeatureGates()) == hash(FeatureGates({"GenericWorkload": False}))


def test_every_dependency_names_a_gate() -> None:
    assert [name for gate in FEATURE_GATES.values() for name in gate.needs if name not in FEATURE_GATES] == []
