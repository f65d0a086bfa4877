"""The framework without a scheduler."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from pilotage.api import CycleState, Filter, NodeView, Plugin, Reason, Reject, Rejection
from pilotage.config.problems import ConfigError
from pilotage.library import Framework
from pilotage.model import Pod
from pilotage.testing import node, pod
from tests.cycle.foreign_kinds_world import PlainTickets, Tickets, ticket


class Sober(Plugin, Filter):
    """No nodes with a bar."""

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return Reject(Reason("Bar", "node has a bar")) if "bar" in node.labels else None


def test_a_pod_that_fits_nowhere_is_answered_with_all_reasons() -> None:
    framework = Framework(node("a").cpu(1).build(), node("b").unschedulable().json())
    answer = framework.fits(pod("p").requests(cpu=2).build())
    assert not answer and answer.best is None
    assert answer.reasons == {"a": ["Insufficient cpu"], "b": ["node(s) were unschedulable"]}


def test_a_pod_that_pre_filter_rejects_fits_nowhere() -> None:
    framework = Framework(node("a").json())
    answer = framework.fits(pod("p").node_affinity_terms({"matchFields": [_field("no-such-node")]}).json())
    assert not answer and list(answer.reasons) == ["a"]


def _field(name: str) -> dict[str, object]:
    return {"key": "metadata.name", "operator": "In", "values": [name]}


def test_a_framework_that_no_one_needs_any_more_is_freed_with_its_cluster() -> None:
    """Programs ask many frameworks, one after the other; the pod's spec outlives them."""
    asked = pod("p").requests(cpu=1).build()
    framework = Framework(node("a").cpu(4).build(), pod("running").node("a").requests(cpu=1).build())
    assert framework.fits(asked)
    freed = weakref.ref(framework)
    cluster = weakref.ref(framework._cluster)
    del framework
    gc.collect()
    assert freed() is None and cluster() is None


def test_pods_with_a_place_count_and_can_be_taken_away() -> None:
    there = pod("there").requests(cpu=4).node("a")
    framework = Framework(node("a").cpu(4).json(), there.json())
    assert not framework.fits(pod("p").requests(cpu=1).json())
    framework.remove(there.json())
    assert framework.fits(pod("p").requests(cpu=1).json()).nodes == ["a"]
    framework.remove(node("a").json())
    framework.put(node("b").json())
    assert framework.fits(pod("p").json()).nodes == ["b"]


def test_no_nodes_is_no_error() -> None:
    assert Framework().fits(pod("p").json()).nodes == []


def test_own_plugins_and_a_configuration_are_used(tmp_path: Path) -> None:
    nodes = [node("a").label("bar").json(), node("b").json()]
    assert Framework(*nodes, plugins=[Sober]).fits(pod("p").json()).nodes == ["b"]
    file = tmp_path / "c.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: wet}, {schedulerName: dry, plugins: {filter: {enabled: [{name: Sober}]}}}]\n"
    )
    framework = Framework(*nodes, plugins=[Sober], config=file)
    assert framework.fits(pod("p").scheduler("wet").json()).nodes == ["a", "b"]
    assert framework.fits(pod("p").scheduler("dry").json()).nodes == ["b"]
    with pytest.raises(ValueError, match='names the scheduler "default-scheduler"; the profiles are: wet, dry'):
        framework.fits(pod("p").json())


def test_what_cannot_be_used_is_named() -> None:
    with pytest.raises(ValueError, match="scheduling does not read objects of kind 'Secret'"):
        Framework({"kind": "Secret", "metadata": {"name": "s"}})
    with pytest.raises(TypeError, match="a pod is wanted, not a Node"):
        Framework().fits(node("a").json())


def test_a_bad_configuration_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("profils: []\n")
    with pytest.raises(ConfigError, match="Required value"):
        Framework(config=file)


def test_objects_of_a_kind_that_a_plugin_watches_are_put_in_as_json_or_as_its_type() -> None:
    framework = Framework(node("a").json(), plugins=[Tickets, PlainTickets])
    wanted = pod("p").json()
    assert framework.fits(wanted).reasons == {"a": ["no open ticket"]}
    framework.put(ticket("p"))
    assert framework.fits(wanted).best == "a"
    framework.remove(ticket("p"))
    assert not framework.fits(wanted)


def test_an_object_of_a_kind_that_no_plugin_watches_is_rejected() -> None:
    with pytest.raises(ValueError, match="does not read objects of kind 'Ticket', and no plugin watches them"):
        Framework(node("a").json(), ticket("p"))
