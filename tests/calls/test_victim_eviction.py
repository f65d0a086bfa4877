"""Evicting a victim: the condition first, then the deletion; whoever is gone already is no error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from pilotage.api.conditions import PodCondition
from pilotage.calls.victim_eviction import VictimEviction
from pilotage.kube.errors import ApiStatusError
from pilotage.testing import pod

VICTIM = pod("victim").uid("u1").generation(3).build()
CONDITION = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler", "making room", 3, "2026-01-01T00:00:00Z")
GONE = ApiStatusError(404, "NotFound", 'pods "victim" not found')
OTHER = ApiStatusError(409, "Conflict", "the UID of pod victim is not u1")


class Writer:
    """Writes down what is sent, and answers as told."""

    def __init__(
        self, patch: Exception | None = None, delete: Exception | None = None, answer: dict[str, Any] | None = None
    ) -> None:
        self._answer = b"" if answer is None else msgspec.json.encode(answer)
        self.sent: list[tuple[str, Any]] = []
        self.patch = self._method("patch", patch)
        self.delete = self._method("delete", delete)

    def _method(self, verb: str, error: Exception | None) -> Callable[..., Awaitable[bytes]]:
        async def method(kind: Any, namespace: str, name: str, body: bytes, **options: Any) -> bytes:
            assert (kind.plural, namespace, name) == ("pods", "default", "victim")
            self.sent.append((verb, msgspec.json.decode(body)))
            if error is not None:
                raise error
            return self._answer

        return method


async def performed(call: VictimEviction, writer: Any) -> list[str]:
    await call.perform(writer)
    return [verb for verb, _ in writer.sent]


async def test_the_reason_is_written_before_the_pod_is_deleted() -> None:
    writer, call = Writer(), VictimEviction(VICTIM, CONDITION)
    assert await performed(call, writer) == ["patch", "delete"]
    condition = writer.sent[0][1]["status"]["conditions"][0]
    assert condition["type"] == "DisruptionTarget" and condition["observedGeneration"] == 3
    assert writer.sent[1][1] == {"preconditions": {"uid": "u1"}}
    assert call.departure.was_there


async def test_a_reason_that_is_known_is_not_written_again() -> None:
    told = (
        pod("victim")
        .uid("u1")
        .status(
            conditions=[
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "PreemptionByScheduler",
                    "message": "making room",
                    "observedGeneration": 3,
                }
            ]
        )
    )
    assert await performed(VictimEviction(told.build(), CONDITION), Writer()) == ["delete"]


@pytest.mark.parametrize(("writer", "sent"), [(Writer(patch=GONE), 1), (Writer(delete=GONE), 2)])
async def test_a_victim_that_is_gone_is_no_error(writer: Writer, sent: int) -> None:
    call = VictimEviction(VICTIM, CONDITION)
    assert len(await performed(call, writer)) == sent
    assert call.departure.is_gone and not call.departure.was_there


@pytest.mark.parametrize("writer", [Writer(patch=OTHER), Writer(delete=OTHER)])
async def test_another_pod_of_that_name_is_left_alone(writer: Writer) -> None:
    call = VictimEviction(VICTIM, CONDITION)
    with pytest.raises(ApiStatusError):
        await performed(call, writer)
    assert not call.departure.was_there


async def test_two_who_want_the_same_pod_to_go_are_told_the_same() -> None:
    first, second = VictimEviction(VICTIM, CONDITION), VictimEviction(VICTIM, CONDITION)
    merged = first.merged_with(second)
    assert isinstance(merged, VictimEviction)
    assert await performed(merged, Writer()) == ["patch", "delete"]
    assert first.departure.was_there and second.departure.was_there


# --- what the answer to the deletion tells ----------------------------------------------------------------------------


def answered(**metadata: Any) -> dict[str, Any]:
    obj = pod("victim").uid("u1").json()
    return {**obj, "kind": "Pod", "apiVersion": "v1", "metadata": {**obj["metadata"], "uid": "u1", **metadata}}


@pytest.mark.parametrize(
    "metadata",
    [
        {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30, "resourceVersion": "77"},
        {
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 0,
            "finalizers": ["example.com/hold"],
            "resourceVersion": "77",
        },
    ],
    ids=["grace period", "finalizer"],
)
async def test_a_pod_that_is_still_there_is_known_to_terminate_as_of_its_version(metadata: dict[str, Any]) -> None:
    call = VictimEviction(VICTIM, CONDITION)
    writer: Any = Writer(answer=answered(**metadata))
    assert await call.perform(writer) == "77"
    shown = call.applied_to(VICTIM)
    assert shown.deletion_timestamp == metadata["deletionTimestamp"] and not call.departure.is_gone
    assert shown.status.condition("DisruptionTarget").reason == "PreemptionByScheduler"


@pytest.mark.parametrize(
    "answer",
    [
        {"kind": "Status", "apiVersion": "v1", "status": "Success"},
        answered(deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=0),
        answered(),
    ],
    ids=["status", "no time left", "as it was before"],
)
async def test_a_pod_that_was_deleted_at_once_is_known_to_be_gone(answer: dict[str, Any]) -> None:
    call = VictimEviction(VICTIM, CONDITION)
    writer: Any = Writer(answer=answer)
    assert await call.perform(writer) is None
    assert call.departure.is_gone and call.departure.was_there


@pytest.mark.parametrize("answer", [None, {"kind": "Surprise"}])
async def test_an_answer_that_cannot_be_read_says_nothing(answer: dict[str, Any] | None) -> None:
    call = VictimEviction(VICTIM, CONDITION)
    writer: Any = Writer(answer=answer)
    await call.perform(writer)
    assert call.departure.was_there and not call.departure.is_gone and call.applied_to(VICTIM) is VICTIM


async def test_what_is_not_answered_yet_is_not_anticipated() -> None:
    assert VictimEviction(VICTIM, CONDITION).applied_to(VICTIM) is VICTIM
