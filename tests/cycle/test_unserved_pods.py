"""Pods that ask for what no plugin serves: an Event for the owner, a line and a count for the operator."""

from __future__ import annotations

import logging

import pytest

from pilotage.api import Permit, Plugin
from pilotage.assembly import options_from_configuration
from pilotage.cli.json_logs import taken_apart
from pilotage.config.feature_gates import FeatureGates
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.explain.explainer import explain
from pilotage.explain.render import render
from pilotage.testing import PodBuilder, node, pod
from tests.cycle.live_scheduler import live
from tests.explain.world import engine_of

GROUP = (
    'spec.schedulingGroup has no effect: no plugin of profile "default-scheduler" serves it; '
    "the pod is scheduled by itself, not together with its group"
)
OPERATOR = (
    'spec.tolerations[].operator has no effect: no plugin of profile "default-scheduler" serves it; '
    "a toleration with the operator Lt or Gt tolerates nothing"
)

NO_GROUPS = {"GenericWorkload": False}


def member(name: str) -> PodBuilder:
    return pod(name).spec(schedulingGroup={"podGroupName": "g"})


def tolerant(builder: PodBuilder) -> PodBuilder:
    return builder.spec(tolerations=[{"key": "level", "operator": "Gt", "value": "3", "effect": "NoSchedule"}])


class Gang(Plugin, Permit):
    serves_fields = ("spec.schedulingGroup",)

    def permit(self, state: object, pod: object, node_name: str) -> None:
        return None


async def test_owner_is_reported_once_and_the_pod_is_scheduled() -> None:
    async with live(gates=NO_GROUPS) as world:
        await world.put(node("n").cpu(4), member("a"), tolerant(member("b")), pod("plain"))
        assert world.notes("a")[0] == ("FieldNotServed", GROUP) and world.node_of("a") == "n"
        assert world.notes("b")[0] == ("FieldNotServed", f"{GROUP}. {OPERATOR}")
        assert [reason for reason, _ in world.notes("plain")] == ["Scheduled"]


async def test_pod_that_is_tried_again_is_not_told_again() -> None:
    async with live(gates=NO_GROUPS) as world:
        await world.put(node("n").cpu(1), member("big").requests(cpu=2))
        await world.put(node("m").cpu(3))
        await world.after(5)
        assert world.node_of("big") == "m"
        assert [reason for reason, _ in world.notes("big")].count("FieldNotServed") == 1


async def test_operator_is_reported_per_field_with_a_count(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with live(gates=NO_GROUPS) as world:
            await world.put(node("n").cpu(64), *(member(f"p{number}") for number in range(25)))
            total = world.scheduler.metrics.unserved_field_pods_total
            assert total.value("spec.schedulingGroup") == 25
    told = [keys for text, keys in map(taken_apart, caplog.records) if text == "pods ask for what no plugin serves"]
    assert [(one["field"], one["profile"], one["pods"]) for one in told] == [
        ("spec.schedulingGroup", "default-scheduler", "1"),
        ("spec.schedulingGroup", "default-scheduler", "10"),
    ]


async def test_field_that_a_plugin_serves_is_like_any_other() -> None:
    async with live(Gang, gates=NO_GROUPS) as world:
        await world.put(node("n").cpu(4), member("a"), tolerant(member("b")))
        assert [reason for reason, _ in world.notes("a")] == ["Scheduled"]
        assert world.notes("b")[0] == ("FieldNotServed", OPERATOR)


def test_explain_says_it() -> None:
    without_groups = options_from_configuration(SchedulerConfiguration(), gates=FeatureGates(NO_GROUPS))
    told = explain(engine_of(node("n").cpu(4), options=without_groups), member("a").build())
    assert told.unserved == (GROUP,)
    assert f"Not served:\n  {GROUP}" in render(told)
    assert explain(engine_of(node("n")), pod("plain").build()).unserved == ()
