"""Every recorded decision of kube-scheduler: volumes, devices, mixed clusters, configurations, preemption, hints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pilotage.api.events import POD_RESOURCES, Resource
from pilotage.assembly import SchedulerOptions
from pilotage.conformance.cases import load_cases
from pilotage.conformance.replay import replay
from pilotage.conformance.world import load_world
from pilotage.framework.profile import name_of

ROOT = Path(__file__).parents[2]
_SHARED, _OWN = ROOT.parent / "shared" / "parity", ROOT / "tests" / "data" / "parity"
RECORDED = _SHARED if _SHARED.is_dir() else _OWN

COUNTS = {
    "spread": 200,
    "volumes": 220,
    "dra": 200,
    "mixed": 130,
    "configs": 160,
    "preemption": 275,
    "hints": 1600,
    "prehints": 120,
}


@pytest.mark.parametrize("theme", COUNTS)
def test_our_answers_are_the_recorded_ones(theme: str) -> None:
    results = list(replay(load_cases(RECORDED / f"{theme}.jsonl.gz")))
    assert len(results) == COUNTS[theme]
    different = [(result.case.name, result.differences[:2]) for result in results if not result.is_equal]
    assert not different, f"{len(different)} cases differ, the first are {different[:3]}"


def test_plugins_listen_to_the_events_that_the_real_ones_listen_to() -> None:
    recorded = json.loads((RECORDED / "registered-events.json").read_text())
    case = next(load_cases(RECORDED / "resources.jsonl.gz"))
    ours: dict[str, set[tuple[str, str, bool]]] = {}
    for plugin in load_world(case, SchedulerOptions()).engine.profile.plugins:
        for registration in plugin.registrations():
            event = registration.event
            resources = POD_RESOURCES if event.resource is Resource.POD else (event.resource,)
            for resource in resources:
                for action in event.action_names:
                    entry = (resource.value, action, registration.hint is not None)
                    ours.setdefault(name_of(plugin), set()).add(entry)
    expected: dict[str, set[tuple[str, str, bool]]] = {
        plugin: {(event["resource"], action, event["hasHint"]) for event in events for action in event["actions"]}
        for plugin, events in recorded.items()
        if events
    }
    del ours["GangScheduling"]  # recorded with GenericWorkload off
    added = {"InterPodAffinity": {("Namespace", action, True) for action in ("Add", "Update", "Delete")}}
    assert ours == {plugin: events | added.get(plugin, set()) for plugin, events in expected.items()}
