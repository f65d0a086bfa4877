"""The status patch: what changed and nothing else; several are merged into one."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.api.calls import Lane, Relevance
from pilotage.calls.pod_status import PodCondition, PodStatusPatch
from pilotage.testing import PodBuilder, pod
from tests.calls.captured_writes import CapturedWrites, Write

NOW = "2026-01-01T00:00:09Z"
KNOWN = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/1 nodes are available: 1 Insufficient cpu.",
    "observedGeneration": 2,
}


def condition(**changes: Any) -> PodCondition:
    facts = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Insufficient cpu.",
        "observed_generation": 2,
        "now": NOW,
    }
    return PodCondition(**{**facts, **changes})


async def written(patch: PodStatusPatch) -> Write | None:
    writer = CapturedWrites()
    await patch.perform(writer)
    assert len(writer.writes) <= 1
    return writer.writes[0] if writer.writes else None


async def test_a_new_condition_is_written_with_its_time() -> None:
    write = await written(PodStatusPatch(pod("p").uid("u").build(), condition(), None))
    assert write is not None
    assert (write.verb, write.kind, write.key) == ("patch", "Pod", "default/p")
    assert write.options == {"content_type": "application/strategic-merge-patch+json", "subresource": "status"}
    rendered = {**KNOWN, "lastProbeTime": None, "lastTransitionTime": NOW}
    assert write.body == {"metadata": {"uid": "u"}, "status": {"conditions": [rendered]}}


async def test_a_condition_that_the_pod_has_already_is_not_written_again() -> None:
    assert await written(PodStatusPatch(pod("p").status(conditions=[KNOWN]).build(), condition(), None)) is None


@pytest.mark.parametrize(
    "changes",
    [{"message": "other"}, {"reason": "SchedulerError"}, {"observed_generation": 3}],
    ids=["message", "reason", "generation"],
)
async def test_the_time_of_transition_stays_while_the_status_does(changes: dict[str, Any]) -> None:
    known = pod("p").status(conditions=[KNOWN]).build()
    write = await written(PodStatusPatch(known, condition(**changes), None))
    assert write is not None
    (rendered,) = write.body["status"]["conditions"]
    assert "lastTransitionTime" not in rendered


async def test_another_status_is_a_transition() -> None:
    was_scheduled = pod("p").status(conditions=[{**KNOWN, "status": "True"}]).build()
    write = await written(PodStatusPatch(was_scheduled, condition(), None))
    assert write is not None and write.body["status"]["conditions"][0]["lastTransitionTime"] == NOW


async def test_a_pod_without_generation_gets_none() -> None:
    write = await written(PodStatusPatch(pod("p").build(), condition(observed_generation=0), None))
    assert write is not None and "observedGeneration" not in write.body["status"]["conditions"][0]


@pytest.mark.parametrize(
    ("known", "nomination", "status"),
    [
        (pod("p"), "a", {"nominatedNodeName": "a"}),
        (pod("p").nominated("a"), "b", {"nominatedNodeName": "b"}),
        (pod("p").nominated("a"), "", {"nominatedNodeName": None}),
        (pod("p").nominated("a"), "a", None),
        (pod("p").nominated("a"), None, None),
        (pod("p"), "", None),
    ],
    ids=["set", "changed", "cleared", "the same", "left alone", "nothing to clear"],
)
async def test_the_nomination_is_written_if_it_changes(
    known: PodBuilder, nomination: str | None, status: dict[str, Any] | None
) -> None:
    write = await written(PodStatusPatch(known.build(), None, nomination))
    assert (None if write is None else write.body["status"]) == status


async def test_merging_keeps_the_newer_words_and_what_only_the_older_said() -> None:
    old, new = pod("p").version(1).build(), pod("p").version(2).nominated("b").build()
    older = PodStatusPatch(old, condition(message="older"), "a")
    write = await written(older.merged_with(PodStatusPatch(new, None, None)))  # type: ignore[arg-type]
    assert write is not None
    assert write.body["status"]["conditions"][0]["message"] == "older"
    assert write.body["status"]["nominatedNodeName"] == "a"
    merged = older.merged_with(PodStatusPatch(new, condition(message="newer"), ""))
    write = await written(merged)  # type: ignore[arg-type]
    assert write is not None
    assert write.body["status"]["conditions"][0]["message"] == "newer"
    assert write.body["status"]["nominatedNodeName"] is None


def test_a_status_yields_to_a_binding_of_the_same_pod() -> None:
    patch = PodStatusPatch(pod("p").uid("u").build(), None, "a")
    assert (patch.object_key, patch.lane, patch.relevance) == ("u", Lane.STATUS, Relevance.STATUS)
    assert Relevance.STATUS < Relevance.BINDING < Relevance.DELETION
