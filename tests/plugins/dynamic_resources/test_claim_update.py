"""One call writes what all pods want of a claim: the bytes that it sends, and what it makes of wishes that meet."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.api.calls import ApiCall
from pilotage.kube.errors import ApiStatusError
from pilotage.model import Pod
from pilotage.model.meta import ObjectMeta
from pilotage.model.pod_group import PodGroup
from pilotage.model.resource import AllocationResult, ResourceClaim
from pilotage.plugins.dynamic_resources.claim_update import Act, ClaimIntent, ClaimUpdate, grant
from pilotage.plugins.dynamic_resources.extended_claim import ClaimDeletion
from pilotage.testing import pod
from tests.plugins.dynamic_resources.objects import allocated, claim, exactly

NOW = "2026-01-01T00:00:00Z"
P, Q = pod("p").uid("p").build(), pod("q").uid("q").build()
GROUP = PodGroup(metadata=ObjectMeta(name="g", namespace="default", uid="g"))
FREE = claim("c", exactly())


def devices(*names: str) -> AllocationResult:
    allocation = allocated("c", *names).status.allocation
    assert allocation is not None
    return allocation


def having(*users: str, device: str = "a") -> ResourceClaim:
    """A claim with its device, used by pods."""
    known = allocated("c", device)
    consumers = [{"resource": "pods", "name": user, "uid": user} for user in users]
    status = {**msgspec.to_builtins(known.status), "reservedFor": consumers}
    return claim("c", exactly(), status=status)


def reserve(user: Pod, device: str = "a", *, is_new: bool = False, group: PodGroup | None = None) -> ClaimIntent:
    return ClaimIntent(Act.RESERVE, user, devices(device), is_new=is_new, group=group)


class Server:
    """Remembers patches and answers with the claim in a new version."""

    def __init__(self, stored: ResourceClaim) -> None:
        self.stored: ResourceClaim | None = stored
        self.patches: list[tuple[str, str, Any]] = []

    async def patch(self, kind: Any, namespace: str, name: str, body: bytes, **options: Any) -> bytes:
        self.patches.append((options["content_type"].split("/")[1], options["subresource"], msgspec.json.decode(body)))
        if self.stored is None:
            raise ApiStatusError(404, "NotFound", "gone")
        version = str(int(self.stored.resource_version) + 1)
        metadata = msgspec.structs.replace(self.stored.metadata, resource_version=version)
        self.stored = msgspec.structs.replace(self.stored, metadata=metadata)
        return msgspec.json.encode(self.stored)

    async def get(self, *_: Any) -> bytes:
        if self.stored is None:
            raise ApiStatusError(404, "NotFound", "gone")
        return msgspec.json.encode(self.stored)


async def sent(call: ApiCall, stored: ResourceClaim) -> list[tuple[str, str, Any]]:
    server: Any = Server(stored)
    await call.perform(server)
    patches: list[tuple[str, str, Any]] = server.patches
    return patches


async def test_an_allocation_is_written_with_finalizer_reservation_and_version() -> None:
    call = ClaimUpdate(FREE, reserve(P, is_new=True), now=NOW)
    (_, first, protected), (_, second, status) = await sent(call, FREE)
    assert (first, second) == ("", "status")
    assert protected["metadata"] == {
        "finalizers": ["resource.kubernetes.io/delete-protection"],
        "resourceVersion": "1",
    }
    assert status["metadata"] == {"resourceVersion": "2"}, "the version that the first write left behind"
    assert status["status"]["reservedFor"] == [{"resource": "pods", "name": "p", "uid": "p"}]
    assert status["status"]["allocation"]["allocationTimestamp"] == NOW
    assert status["status"]["allocation"]["devices"]["results"][0]["device"] == "a"
    assert call.claim.resource_version == "3"


async def test_a_claim_that_has_its_devices_is_only_reserved() -> None:
    has = having("x")
    ((_, where, patch),) = await sent(ClaimUpdate(has, reserve(P), now=NOW), has)
    assert where == "status"
    assert "devices" not in patch["status"].get("allocation", {}), "what was given is not written again"
    assert [user["uid"] for user in patch["status"]["reservedFor"]] == ["x", "p"]


async def test_two_pods_that_come_and_one_that_goes_are_one_write() -> None:
    has = having("x")
    first, second = ClaimUpdate(has, reserve(P), now=NOW), ClaimUpdate(has, reserve(Q), now=NOW)
    leaving = ClaimUpdate(has, ClaimIntent(Act.RELEASE, pod("x").uid("x").build()))
    whole = first.merged_with(second).merged_with(leaving)
    ((_, _, patch),) = await sent(whole, has)
    assert [user["uid"] for user in patch["status"]["reservedFor"]] == ["p", "q"]
    assert first.claim.resource_version == second.claim.resource_version == "2", "all know what became of the claim"


async def test_taking_a_pod_off_is_right_for_any_version() -> None:
    ((how, where, patch),) = await sent(ClaimUpdate(having("p", "x"), ClaimIntent(Act.RELEASE, P)), having("p", "x"))
    assert (how, where) == ("strategic-merge-patch+json", "status")
    assert patch == {"metadata": {"uid": FREE.uid}, "status": {"reservedFor": [{"$patch": "delete", "uid": "p"}]}}


async def test_freeing_takes_devices_and_users_off() -> None:
    ((_, _, patch),) = await sent(ClaimUpdate(having("p"), ClaimIntent(Act.FREE, P)), having("p"))
    assert patch["status"] == {"allocation": None, "reservedFor": None, "devices": None}
    assert patch["metadata"] == {"resourceVersion": "1"}


def test_what_a_pod_takes_back_before_it_was_sent_is_not_sent() -> None:
    has = having("x")
    coming, going = ClaimUpdate(has, reserve(P), now=NOW), ClaimUpdate(has, ClaimIntent(Act.RELEASE, P))
    both = coming.merged_with(going)
    assert both.is_pointless()
    assert not both.still_wants(coming)
    assert both.still_wants(going)


GRANTS = {
    "reserve devices that are there": (having(), (reserve(P),), {"p"}, {}),
    "a second pod brings other devices": (
        FREE,
        (reserve(P, "a", is_new=True), reserve(Q, "b", is_new=True)),
        {"p"},
        {"q": "claim default/c got allocated elsewhere in the meantime"},
    ),
    "somebody else has allocated others": (
        having(device="b"),
        (reserve(P, "a", is_new=True),),
        set(),
        {"p": "claim default/c got allocated elsewhere in the meantime"},
    ),
    "it was allocated anew, elsewhere": (
        having(device="b"),
        (reserve(P, "a"),),
        set(),
        {"p": "claim default/c got allocated elsewhere in the meantime"},
    ),
    "the devices were freed": (
        FREE,
        (reserve(P), ClaimIntent(Act.RELEASE, Q)),
        set(),
        {"p": "claim default/c got deallocated elsewhere in the meantime"},
    ),
    "what is in use is not freed, whoever came first": (
        having(),
        (ClaimIntent(Act.FREE, Q), reserve(P)),
        {"p"},
        {"q": "claim default/c is in use by another pod"},
    ),
    "what another pod leaves can be freed": (
        having("q"),
        (ClaimIntent(Act.FREE, P), ClaimIntent(Act.RELEASE, Q)),
        set(),
        {},
    ),
    "members use it in the name of their group": (
        having("g"),
        (reserve(P, group=GROUP), reserve(Q, group=GROUP)),
        {"g"},
        {},
    ),
    "a member that gives up leaves its group in": (
        having("g"),
        (ClaimIntent(Act.RELEASE, P), reserve(Q, group=GROUP)),
        {"g"},
        {},
    ),
    "a group that is its only user frees it": (
        having("g"),
        (ClaimIntent(Act.FREE, P, group=GROUP),),
        set(),
        {},
    ),
    "a group does not free what others use": (
        having("g", "q"),
        (ClaimIntent(Act.FREE, P, group=GROUP),),
        {"g", "q"},
        {"p": "claim default/c is in use by another pod"},
    ),
    "it is being deleted": (
        claim("c", exactly(), metadata={"deletionTimestamp": NOW}),
        (reserve(P, is_new=True),),
        set(),
        {"p": "claim default/c got deleted in the meantime"},
    ),
    "it has all the users that there can be": (
        having(*(f"u{n}" for n in range(256))),
        (reserve(P),),
        {f"u{n}" for n in range(256)},
        {"p": "claim default/c is reserved for 256 pods already, which is the most that there can be"},
    ),
}


@pytest.mark.parametrize(("known", "wishes", "users", "failures"), GRANTS.values(), ids=GRANTS.keys())
def test_wishes_that_meet(
    known: ResourceClaim, wishes: tuple[ClaimIntent, ...], users: set[str], failures: dict[str, str]
) -> None:
    granted = grant(known, wishes)
    assert set(granted.users) == users
    assert {uid: str(error) for uid, error in granted.failures.items()} == failures


@pytest.mark.parametrize("does_look", [False, True])
async def test_a_claim_that_is_gone_fails_those_who_would_use_it_and_nobody_else(does_look: bool) -> None:
    has = having("q")
    coming, going = ClaimUpdate(has, reserve(P), now=NOW), ClaimUpdate(has, ClaimIntent(Act.RELEASE, Q))
    whole, server = coming.merged_with(going), Server(has)
    server.stored = None
    await (whole.look(server) if does_look else whole.perform(server))  # type: ignore[arg-type]
    assert str(whole.failure_of(coming)) == "claim default/c got deleted in the meantime"
    assert whole.failure_of(going) is None


async def test_a_deletion_that_lost_a_race_reads_the_claim_and_is_sent_again() -> None:
    known = claim("c", exactly(), metadata={"finalizers": ["resource.kubernetes.io/delete-protection"]})
    newer = claim("c", exactly(), metadata={"resourceVersion": "7"})
    deletion = ClaimDeletion(known)
    assert (await deletion.look(Server(newer))).has_happened is False  # type: ignore[arg-type]
    server = Server(newer)
    server.stored = None
    assert (await deletion.look(server)).has_happened is True  # type: ignore[arg-type]
