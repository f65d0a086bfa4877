"""Every event that a default plugin listens to wakes a pod that nothing else would wake.

Each case of `wake_up_cases` runs twice: as it is, where the pod must be scheduled without the periodic flush, and
with this one plugin deaf to this one event, where the pod must stay behind. So a hint that stops working is noticed,
and so is a case that proves nothing.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pilotage.api import PreEnqueue
from pilotage.api.events import Action, ClusterEvent, Resource
from pilotage.assembly import options_from_configuration
from pilotage.config.feature_gates import FeatureGates
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.observe.metrics import Metrics
from pilotage.plugins import DEFAULT_PLUGINS
from pilotage.queue.hints import HintTable, Route
from pilotage.simulate.shorthands import SHORTHANDS, full_object, merge_patch
from pilotage.simulate.stage import Stage
from tests.default_plugins import default
from tests.properties.wake_up_cases import CASES, Case, Change

Json = dict[str, Any]
SCHEDULER = "default-scheduler"
LONGEST_BACKOFF_SECONDS = 30

_CLAIM_FIRST = "a pod whose claim is missing is rejected by VolumeRestrictions, before this plugin is asked"
_MIGRATION = "only whether a plugin is migrated matters, and nothing that the plugin rejects depends on that any more"
_OWN_FEATURES = "what the features follow from cannot be changed in a pending pod"
_NOT_BY_HINTS = "the queue itself puts the pod into the entry of its group, and asks PreEnqueue about it"
GROUPED = options_from_configuration(SchedulerConfiguration(), gates=FeatureGates({"GenericWorkload": True}))
NOT_SHOWN = {
    ("GangScheduling", "UnscheduledPodAdd"): _NOT_BY_HINTS,
    ("GangScheduling", "scheduling.k8s.io/PodGroupAdd"): _NOT_BY_HINTS,
    ("DefaultPreemption", "AssignedPodDelete"): "its hint always skips: the event only opens its gate",
    ("NodeName", "NodeAdd"): "a pod that names its node never comes into the queue",
    ("NodeVolumeLimits", "PersistentVolumeClaimAdd"): _CLAIM_FIRST,
    ("VolumeBinding", "PersistentVolumeClaimAdd"): _CLAIM_FIRST,
    ("VolumeZone", "PersistentVolumeClaimAdd"): _CLAIM_FIRST,
    ("VolumeZone", "storage.k8s.io/StorageClassAdd"): "without its class the claim is rejected by VolumeBinding first",
    ("NodeVolumeLimits", "storage.k8s.io/CSINodeAdd"): "a node without a CSINode has no limits",
    ("VolumeBinding", "storage.k8s.io/CSINodeAdd"): _MIGRATION,
    ("VolumeBinding", "storage.k8s.io/CSINodeUpdate"): _MIGRATION,
    # A gap of kube-scheduler's rule, which we follow: a claim that this driver provisions is not asked about.
    ("VolumeBinding", "storage.k8s.io/CSIDriverUpdate"): "concerns inline volumes, which VolumeBinding never rejects",
    ("DynamicResources", "resource.k8s.io/DeviceClassUpdate"): "selectors cannot be written in short forms",
    ("NodeDeclaredFeatures", "TargetPodUpdate"): _OWN_FEATURES,
    ("NodeDeclaredFeatures", "TargetPodUpdatePodGeneratedResourceClaim"): _OWN_FEATURES,
    ("NodeDeclaredFeatures", "TargetPodUpdatePodLabel"): _OWN_FEATURES,
    ("NodeDeclaredFeatures", "TargetPodUpdatePodScaleDown"): _OWN_FEATURES,
    ("NodeDeclaredFeatures", "TargetPodUpdatePodScaleUp"): _OWN_FEATURES,
    ("NodeDeclaredFeatures", "TargetPodUpdatePodSchedulingGatesEliminated"): _OWN_FEATURES,
    ("NodeDeclaredFeatures", "TargetPodUpdatePodToleration"): _OWN_FEATURES,
}
"""Why there is no case."""


_routes = HintTable.routes


def deaf(plugin: str, label: str) -> Callable[[HintTable, ClusterEvent], Sequence[Route]]:
    """The routes of events, without this plugin for this event."""

    def routes(table: HintTable, event: ClusterEvent) -> Sequence[Route]:
        known = _routes(table, event)
        return [_without(route, plugin) for route in known] if event.label == label else known

    return routes


def _without(route: Route, plugin: str) -> Route:
    judges = {name: hints for name, hints in route.judges.items() if name != plugin}
    return Route(route.scheduler, judges, {name: how for name, how in route.narrowed.items() if name != plugin})


async def _outcome(case: Case) -> tuple[frozenset[str], bool]:
    """Who rejected the pod at first, and whether it has a node in the end (or waits for its volume there)."""
    world, change = case
    rejected_by: frozenset[str] = frozenset()
    is_placed = False
    try:
        async with asyncio.TaskGroup() as tasks:
            stage = Stage(replace(GROUPED, max_wait_seconds=math.inf), tasks)
            for item in world:
                stage.api.add(full_object(item))
            await stage.clock.advance(LONGEST_BACKOFF_SECONDS)
            (entry,) = [waiting for waiting in stage.queue.entries() if waiting.pod.name == "p"]
            rejected_by = entry.rejectors
            _do(stage, change)
            await stage.clock.advance(LONGEST_BACKOFF_SECONDS)
            is_placed = entry.pod.uid not in stage.queue or stage.scheduler.cluster.is_assumed(entry.pod.uid)
            raise _Over
    except* _Over:
        pass
    return rejected_by, is_placed


class _Over(Exception):
    pass


def _do(stage: Stage, change: Change) -> None:
    verb, short, name, fields = change
    entry = SHORTHANDS[short]
    key = (entry.kind, "default" if entry.is_namespaced else "", name)
    if verb == "put":
        stage.api.add(full_object({short: {"name": name, **fields}}))
    elif verb == "set":
        stage.api.merge(key, merge_patch(short, name, fields))
    else:
        stage.api.remove(key)


@pytest.mark.parametrize(("plugin", "label"), CASES, ids=[f"{plugin}-{label}" for plugin, label in CASES])
def test_pod_is_woken_by_this_plugin_and_by_no_one_else(
    plugin: str, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rejected_by, is_placed = asyncio.run(_outcome(CASES[plugin, label]))
    assert plugin in rejected_by
    assert is_placed, "a wake-up was missed"
    monkeypatch.setattr(HintTable, "routes", deaf(plugin, label))
    assert asyncio.run(_outcome(CASES[plugin, label])) == (rejected_by, False), "the case proves nothing"


def in_a_gang(case: Case, *siblings: Json) -> Case:
    """The same, with the pod as a member of a gang of which nobody else has anything to wait for."""
    world, change = case
    made = [{"podGroup": {"name": "g", "min": 1 + len(siblings)}}]
    made += [
        {"pod": {**item["pod"], "group": "g"}} if item.get("pod", {}).get("name") == "p" else item for item in world
    ]
    # The UID of an object tells its place: that of the first one is known to others.
    return [*made[1:2], made[0], *made[2:], *siblings], change


ALONE = {key: case for key, case in CASES.items() if key[0] != "GangScheduling"}
GATED = {
    key: case
    for key, case in ALONE.items()
    if key[0] in ("SchedulingGates", "DynamicResources")
    and key[1]
    in (
        "TargetPodUpdatePodSchedulingGatesEliminated",
        "TargetPodUpdatePodGeneratedResourceClaim",
        "resource.k8s.io/ResourceClaimAdd",
    )
}
"""Those in which PreEnqueue rejects the pod."""


@pytest.mark.parametrize("key", ALONE, ids=[f"{plugin}-{label}" for plugin, label in ALONE])
def test_what_helps_a_pod_helps_it_as_a_member_of_a_gang(key: tuple[str, str]) -> None:
    rejected_by, is_placed = asyncio.run(_outcome(in_a_gang(CASES[key])))
    assert key[0] in rejected_by
    assert is_placed, "a wake-up was missed"


@pytest.mark.parametrize("key", GATED, ids=[f"{plugin}-{label}" for plugin, label in GATED])
def test_gang_that_a_member_gates_is_woken_by_that_member_s_event_and_by_nothing_else(
    key: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = in_a_gang(CASES[key], {"pod": {"name": "sibling", "group": "g"}}, {"pod": {"name": "third", "group": "g"}})
    rejected_by, is_placed = asyncio.run(_outcome(case))
    assert key[0] in rejected_by
    assert is_placed, "a wake-up was missed"
    monkeypatch.setattr(HintTable, "routes", deaf(*key))
    assert asyncio.run(_outcome(case)) == (rejected_by, False), "the case proves nothing"


def test_every_plugin_that_gates_has_its_case_with_a_gang() -> None:
    """Only a gated group waits for events: whatever can gate a member must wake the group."""
    gatekeepers = {cls.plugin_name() for cls, _ in DEFAULT_PLUGINS if issubclass(cls, PreEnqueue)}
    not_here = {
        "GangScheduling": "it is among the cases itself",
        "DefaultPreemption": "tests/properties/test_pod_groups.py shows it, whoever of the group is left",
    }
    assert gatekeepers - not_here.keys() == {plugin for plugin, _ in GATED}


def incoming() -> Iterator[ClusterEvent]:
    """Every event that can come in."""
    for resource in Resource:
        if resource in (Resource.POD, Resource.ANY):
            continue
        word = "NODE" if resource is Resource.NODE else "POD" if resource.value.endswith("Pod") else "-"
        precise = [action for action in Action if f"UPDATE_{word}" in str(action.name)]
        for action in (Action.ADD, Action.DELETE, Action.UPDATE, *precise):
            yield ClusterEvent(resource, action)


def test_there_is_a_case_for_everything_that_a_default_plugin_listens_to() -> None:
    hints = HintTable({SCHEDULER: [default(cls) for cls, _ in DEFAULT_PLUGINS]}, Metrics())
    heard = {(plugin, event.label) for event in incoming() for plugin in hints.judges(SCHEDULER, event)}
    assert heard - CASES.keys() == NOT_SHOWN.keys()
    assert CASES.keys() - heard == set()
