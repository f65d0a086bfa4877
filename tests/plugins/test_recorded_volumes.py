"""The volume plugins against recorded decisions of kube-scheduler: answers, hints, events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pilotage.api import Action, Plugin
from pilotage.conformance.cases import load_cases
from pilotage.conformance.replay import replay
from pilotage.plugins import NodeVolumeLimits, VolumeBinding, VolumeRestrictions, VolumeZone
from pilotage.plugins.args import VolumeBindingArgs
from tests.plugins.volume_world import VolumeWorld

RECORDED = Path(__file__).parents[1] / "data" / "parity"
HINTS = {"VolumeRestrictions": 85, "NodeVolumeLimits": 133, "VolumeBinding": 181, "VolumeZone": 113}
PLUGINS: dict[str, Any] = {
    "VolumeRestrictions": VolumeRestrictions,
    "NodeVolumeLimits": NodeVolumeLimits,
    "VolumeBinding": lambda handle: VolumeBinding(handle, VolumeBindingArgs()),
    "VolumeZone": VolumeZone,
}


def test_volumes_are_judged_as_recorded() -> None:
    results = list(replay(load_cases(RECORDED / "volumes.jsonl.gz")))
    assert len(results) == 220
    assert {result.case.name: result.differences for result in results if not result.is_equal} == {}


@pytest.mark.parametrize("name", PLUGINS)
def test_hints_are_as_recorded(name: str) -> None:
    cases = [case for case in load_cases(RECORDED / "hints.jsonl.gz") if case.plugin == name]
    assert len(cases) == HINTS[name]
    assert {result.case.name: result.differences for result in replay(cases) if not result.is_equal} == {}


@pytest.mark.parametrize("name", PLUGINS)
def test_events_are_registered_as_recorded(name: str) -> None:
    actions = {member.replace("_", "").lower(): action for member, action in Action.__members__.items()}
    recorded: list[dict[str, Any]] = json.loads((RECORDED / "registered-events.json").read_bytes())[name]
    wanted = {(e["resource"], sum(actions[a.lower()] for a in e["actions"]), e["hasHint"]) for e in recorded}
    plugin: Plugin = VolumeWorld(PLUGINS[name]).plugin
    found = {(r.event.resource.value, int(r.event.action), r.hint is not None) for r in plugin.registrations()}
    assert found == wanted
