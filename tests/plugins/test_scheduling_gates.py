"""SchedulingGates: a pod with gates stays out of the queue."""

from __future__ import annotations

from pilotage.api import Action, Hint, Resource
from pilotage.plugins import SchedulingGates
from pilotage.testing import pod
from tests.plugins.one_plugin import hint, registered

PLUGIN = SchedulingGates()


def test_a_pod_without_gates_may_enter() -> None:
    assert PLUGIN.pre_enqueue(pod("p").build()) is None


def test_a_gated_pod_is_told_which_gates_it_waits_for() -> None:
    rejection = PLUGIN.pre_enqueue(pod("p").gate("example.com/a").gate("b").build())
    assert rejection is not None and rejection.unresolvable
    assert [reason.message for reason in rejection.reasons] == ["waiting for scheduling gates: [example.com/a b]"]


def test_only_the_removal_of_the_last_gate_helps() -> None:
    last = Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    assert registered(PLUGIN) == [(Resource.TARGET_POD, last)]
    gated = pod("p").gate("a")
    assert hint(PLUGIN, Resource.TARGET_POD, last, gated, gated, pod("p")) is Hint.QUEUE
    assert hint(PLUGIN, Resource.TARGET_POD, Action.UPDATE, gated, gated.gate("b"), gated) is None
