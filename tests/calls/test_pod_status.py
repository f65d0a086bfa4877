"""The status patch: what changed and nothing else; several are merged into one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.api.calls import Lane, Relevance
from pilotage.api.conditions import PodCondition
from pilotage.calls.binding import PodBinding
from pilotage.calls.pod_status import PodStatusPatch
from pilotage.calls.victim_eviction import VictimEviction
from pilotage.kube.errors import ApiStatusError
from pilotage.model.kinds import KindInfo
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
    write = await written(PodStatusPatch(pod("p").uid("u").build(), condition()))
    assert write is not None
    assert (write.verb, write.kind, write.key) == ("patch", "Pod", "default/p")
    assert write.options == {"content_type": "application/strategic-merge-patch+json", "subresource": "status"}
    rendered = {**KNOWN, "lastProbeTime": None, "lastTransitionTime": NOW}
    assert write.body == {"metadata": {"uid": "u"}, "status": {"conditions": [rendered]}}


async def test_a_condition_that_the_pod_has_already_is_not_written_again() -> None:
    assert await written(PodStatusPatch(pod("p").status(conditions=[KNOWN]).build(), condition())) is None


@pytest.mark.parametrize(
    "changes",
    [{"message": "other"}, {"reason": "SchedulerError"}, {"observed_generation": 3}],
    ids=["message", "reason", "generation"],
)
async def test_the_time_of_transition_stays_while_the_status_does(changes: dict[str, Any]) -> None:
    known = pod("p").status(conditions=[KNOWN]).build()
    write = await written(PodStatusPatch(known, condition(**changes)))
    assert write is not None
    (rendered,) = write.body["status"]["conditions"]
    assert "lastTransitionTime" not in rendered


async def test_another_status_is_a_transition() -> None:
    was_scheduled = pod("p").status(conditions=[{**KNOWN, "status": "True"}]).build()
    write = await written(PodStatusPatch(was_scheduled, condition()))
    assert write is not None and write.body["status"]["conditions"][0]["lastTransitionTime"] == NOW


async def test_a_pod_without_generation_gets_none() -> None:
    write = await written(PodStatusPatch(pod("p").build(), condition(observed_generation=0)))
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
    write = await written(PodStatusPatch(known.build(), nomination=nomination))
    assert (None if write is None else write.body["status"]) == status


async def test_merging_keeps_the_newer_words_and_what_only_the_older_said() -> None:
    old, new = pod("p").version(1).nominated("b").build(), pod("p").version(1).nominated("a").build()
    older = PodStatusPatch(old, condition(message="older"), nomination="a")
    write = await written(older.merged_with(PodStatusPatch(new)))  # type: ignore[arg-type]
    assert write is not None
    assert write.body["status"]["conditions"][0]["message"] == "older"
    assert write.body["status"]["nominatedNodeName"] == "a"
    merged = older.merged_with(PodStatusPatch(new, condition(message="newer"), nomination=""))
    write = await written(merged)  # type: ignore[arg-type]
    assert write is not None
    assert write.body["status"]["conditions"][0]["message"] == "newer"
    assert write.body["status"]["nominatedNodeName"] is None


def test_a_status_yields_to_a_binding_of_the_same_pod() -> None:
    patch = PodStatusPatch(pod("p").uid("u").build(), nomination="a")
    assert (patch.object_key, patch.lane, patch.relevance) == ("u", Lane.STATUS, Relevance.STATUS)
    assert Relevance.STATUS < Relevance.BINDING < Relevance.DELETION


# --- what need not be sent, and what is seen --------------------------------------------------------------------------

KNOWN_POD = pod("p").uid("u").version(5).nominated("a").status(conditions=[KNOWN], nominatedNodeName="a").build()


@pytest.mark.parametrize(
    ("patch", "is_pointless"),
    [
        (PodStatusPatch(KNOWN_POD, condition(), nomination="a"), True),
        (PodStatusPatch(KNOWN_POD), True),
        (PodStatusPatch(KNOWN_POD, nomination=""), False),
        (PodStatusPatch(KNOWN_POD, condition(message="other")), False),
        (PodStatusPatch(KNOWN_POD, condition(type="Other")), False),
    ],
    ids=["all is so", "nothing is wanted", "other node", "other message", "other type"],
)
def test_a_patch_knows_whether_it_has_anything_to_say(patch: PodStatusPatch, is_pointless: bool) -> None:
    assert patch.is_pointless() is is_pointless
    assert (patch.applied_to(KNOWN_POD) is KNOWN_POD) is is_pointless


def test_the_pod_is_seen_as_it_will_be() -> None:
    shown = PodStatusPatch(KNOWN_POD, condition(message="new"), condition(type="Other"), nomination="b").applied_to(
        KNOWN_POD
    )
    assert shown.status.nominated_node_name == "b" and shown.resource_version == "5"
    assert [(c.type, c.message[:3]) for c in shown.status.conditions] == [("PodScheduled", "new"), ("Other", "0/1")]
    assert KNOWN_POD.status.nominated_node_name == "a", "what was received stays as it was"


async def test_only_the_difference_to_what_the_server_has_now_is_sent() -> None:
    patch = PodStatusPatch(pod("p").uid("u").build(), condition(), nomination="b")
    patch.rebase(KNOWN_POD)
    write = await written(patch)
    assert write is not None and write.body["status"] == {"nominatedNodeName": "b"}
    patch.follow(PodStatusPatch(KNOWN_POD, nomination="b"))
    assert patch.is_pointless()


class Reader(CapturedWrites):
    """An API server that has one pod."""

    def __init__(self, found: PodBuilder | None) -> None:
        super().__init__()
        self._found = found

    async def get(self, kind: KindInfo, namespace: str, name: str) -> bytes:
        if self._found is None:
            raise ApiStatusError(404, "NotFound", "no such pod")
        return msgspec.json.encode(self._found.json())


async def test_looking_says_whether_the_status_was_written_and_what_is_left() -> None:
    patch = PodStatusPatch(pod("p").uid("u").build(), nomination="b")
    seen = await patch.look(Reader(pod("p").uid("u").version(9).nominated("b")))
    assert seen.has_happened and seen.object.resource_version == "9"
    seen = await patch.look(Reader(pod("p").uid("u").version(9).nominated("c")))
    assert seen.has_happened is False


@pytest.mark.parametrize(
    ("found", "node_name", "has_happened"),
    [(pod("p").uid("u"), "n", False), (pod("p").uid("u").node("n"), "n", True)],
    ids=["not bound", "bound by us"],
)
async def test_looking_says_whether_the_pod_was_bound(found: PodBuilder, node_name: str, has_happened: bool) -> None:
    seen = await PodBinding(pod("p").uid("u").build(), node_name).look(Reader(found))
    assert seen.has_happened is has_happened


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (pod("p").uid("u").node("m"), "bound to m already"),
        (pod("p").uid("v"), "another one"),
        (None, "no such pod"),
    ],
    ids=["bound elsewhere", "recreated", "gone"],
)
async def test_a_pod_that_cannot_be_bound_any_more_is_an_error(found: PodBuilder | None, message: str) -> None:
    with pytest.raises(Exception, match=message):
        await PodBinding(pod("p").uid("u").build(), "n").look(Reader(found))


@pytest.mark.parametrize(
    ("found", "has_happened"),
    [
        (pod("p").uid("u").node("n"), False),
        (pod("p").uid("u").node("n").terminating(), True),
        (pod("p").uid("v"), True),
        (None, True),
    ],
    ids=["still there", "going", "recreated", "gone"],
)
async def test_looking_says_whether_a_victim_goes(found: PodBuilder | None, has_happened: bool) -> None:
    call = VictimEviction(pod("p").uid("u").build(), condition(type="DisruptionTarget"))
    seen = await call.look(Reader(found))
    assert seen.has_happened is has_happened and call.departure.was_there is has_happened
    assert call.departure.is_gone is (has_happened and seen.object is None)


async def test_a_nomination_is_written_and_cleared() -> None:
    write = await written(PodStatusPatch(pod("p").uid("u").build(), nomination="n"))
    assert write is not None and write.body["status"] == {"nominatedNodeName": "n"}
    write = await written(PodStatusPatch(KNOWN_POD, nomination=""))
    assert write is not None and write.body["status"] == {"nominatedNodeName": None}
