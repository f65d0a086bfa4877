"""DynamicResources beside the nodes: unusable claims, claims in flight, idle claims, and who is concerned."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.api import Action, Affected, ClusterEvent, CycleState, Hint, Reject, Resource, Skip
from pilotage.clock import SystemClock
from pilotage.cluster.node_view import RowView
from pilotage.cluster.state import Cluster
from pilotage.cycle.handle import FrameworkHandle
from pilotage.model.resource import ResourceClaim
from pilotage.plugins import DynamicResources
from pilotage.plugins.dynamic_resources.allocation import POD_CLAIMS
from pilotage.plugins.dynamic_resources.claim_book import ClaimBook
from pilotage.plugins.dynamic_resources.claim_update import ClaimUpdate
from pilotage.rng import seeded
from pilotage.testing import PodBuilder, node, pod
from tests.default_plugins import default
from tests.plugins.dynamic_resources.objects import allocated, claim, device, device_class, device_slice, exactly

ELSEWHERE = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}]}


class World:
    def __init__(self, *claims: ResourceClaim) -> None:
        self.cluster = Cluster()
        self.cluster.put_node(node("n").build())
        self.cluster.put_object("DeviceClass", device_class())
        self.cluster.put_object("ResourceSlice", device_slice("n", device("a"), device("b")))
        for known in claims:
            self.cluster.put_object("ResourceClaim", known)
        self.submitted: list[Any] = []
        self.handle = FrameworkHandle(self.cluster, SystemClock(), seeded(1))
        self.handle.submit = lambda call, _=None: self.submitted.append(call)  # type: ignore[method-assign]
        self.told: list[tuple[ClusterEvent, ResourceClaim, ResourceClaim]] = []
        """What no watch tells."""
        self.handle.requeue_on = lambda *event: self.told.append(event)  # type: ignore[method-assign]
        self.plugin = default(DynamicResources, self.handle)

    def pre_filter(self, state: CycleState, waiting: PodBuilder) -> Any:
        return self.plugin.pre_filter(state, waiting.build(), self.cluster.nodes)

    def rejection(self, state: CycleState, waiting: PodBuilder) -> str:
        answer = self.plugin.filter(state, waiting.build(), RowView(self.cluster.nodes, 0))
        return "" if answer is None else answer.reasons[0].message


def using(name: str, pod_name: str = "p") -> PodBuilder:
    return pod(pod_name).spec(resourceClaims=[{"name": "d", "resourceClaimName": name}])


def of_template(pod_name: str = "p", **status: Any) -> PodBuilder:
    made = [{"name": "d", **status}] if status else []
    waiting = pod(pod_name).spec(resourceClaims=[{"name": "d", "resourceClaimTemplateName": "t"}])
    return waiting.status(resourceClaimStatuses=made)


def of_group(**status: Any) -> PodBuilder:
    return of_template(**status).spec(schedulingGroup={"podGroupName": "g"})


def owned_by_group(name: str, api_version: str = "scheduling.k8s.io/v1beta1") -> dict[str, Any]:
    owner = {"apiVersion": api_version, "kind": "PodGroup", "name": name, "uid": "u", "controller": True}
    return {"ownerReferences": [owner]}


DELETED = claim("c", exactly(), metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})


@pytest.mark.parametrize(
    ("known", "waiting", "problem"),
    [
        ([], using("c"), 'could not find ResourceClaim "default/c"'),
        ([DELETED], using("c"), 'resourceclaim "c" is being deleted'),
        ([], of_template(), 'pod "default/p": ResourceClaim not created yet'),
        (
            [claim("c", exactly())],
            of_template(resourceClaimName="c"),
            "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)",
        ),
        (
            [claim("c", exactly(), metadata=owned_by_group("other"))],
            of_group(resourceClaimName="c"),
            "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)",
        ),
        (
            [claim("c", exactly(), metadata=owned_by_group("g", "scheduling.x-k8s.io/v1alpha1"))],
            of_group(resourceClaimName="c"),
            "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)",
        ),
        ([claim("c", exactly(), metadata=owned_by_group("g"))], of_group(resourceClaimName="c"), None),
        ([claim("c", exactly())], using("c"), None),
        ([], of_template(resourceClaimName=None), None),
    ],
)
def test_a_pod_whose_claims_cannot_be_used_is_kept_back(known: Any, waiting: PodBuilder, problem: str | None) -> None:
    world = World(*known)
    answer = world.plugin.pre_enqueue(waiting.build())
    assert (None if answer is None else answer.reasons[0].message) == problem
    if problem is not None:
        rejected = world.pre_filter(CycleState(), waiting)
        assert isinstance(rejected, Reject)
        assert rejected.unresolvable
        assert rejected.reasons[0].message == problem


def test_a_pod_without_claims_is_skipped_and_shares_its_answers() -> None:
    world = World()
    assert isinstance(world.pre_filter(CycleState(), pod("p")), Skip)
    assert world.plugin.sign(pod("p").build()) == world.plugin.sign(pod("q").build()) is not None
    assert world.plugin.sign(using("c").build()) is None
    assert world.plugin.sign(pod("p").requests({"example.com/gpu": 1}).build()) is None


def test_a_claim_for_a_class_that_is_missing_names_request_and_class() -> None:
    world = World(claim("c", exactly("r7", cls="none")))
    assert (
        world.pre_filter(CycleState(), using("c")).reasons[0].message == "request r7: device class none does not exist"
    )


def test_a_claim_that_another_pod_is_about_to_allocate_is_left_alone() -> None:
    world = World(claim("c", exactly()))
    state, first = CycleState(), using("c", "first")
    world.pre_filter(state, first)
    assert world.rejection(state, first) == ""
    world.plugin.reserve(state, first.build(), "n")
    answer = world.pre_filter(CycleState(), using("c", "second"))
    assert answer.reasons[0].message == "resource claim default/c is in the process of being allocated"
    world.plugin.unreserve(state, first.build(), "n")
    assert world.pre_filter(CycleState(), using("c", "second")) is None


def unavailable(**status: Any) -> ResourceClaim:
    return claim("c", exactly(), status={"allocation": {"nodeSelector": ELSEWHERE}, **status})


@pytest.mark.parametrize(
    ("users", "is_freed"),
    [([], True), ([{"resource": "pods", "name": "p", "uid": "own"}], True), ([{"uid": "other"}], False)],
)
def test_a_claim_that_is_in_the_way_is_freed_if_nobody_else_uses_it(users: Any, is_freed: bool) -> None:
    world = World(unavailable(reservedFor=users))
    state, waiting = CycleState(), using("c").uid("own")
    assert world.pre_filter(state, waiting) is None
    assert world.rejection(state, waiting) == "resourceclaim not available on the node"
    answer = world.plugin.post_filter(state, waiting.build(), None)  # type: ignore[arg-type]
    texts = [reason.message for reason in answer.reasons]
    assert texts == (["deallocation of ResourceClaim completed"] if is_freed else [])
    assert [type(call) for call in world.submitted] == ([ClaimUpdate] if is_freed else [])


def test_a_change_of_a_claim_concerns_the_pods_that_use_it_and_freed_devices_concern_all() -> None:
    free, taken = claim("c", exactly()), allocated("c", "a")
    world = World(free)
    for waiting in (using("c", "direct"), of_template("generated", resourceClaimName="c"), using("x", "other")):
        world.cluster.put_object("Pod", waiting.build())
    concerned = Affected.pods(["default/direct", "default/generated"])
    assert world.plugin.pods_with_the_claim(None, free) == concerned
    assert world.plugin.pods_with_the_claim(free, taken) == concerned
    assert world.plugin.pods_with_the_claim(free, None) == concerned
    assert world.plugin.pods_with_the_claim(taken, free) == Affected.all()
    assert world.plugin.pods_with_the_claim(taken, None) == Affected.all()


def test_a_hint_says_queue_for_the_own_claim_and_for_freed_devices() -> None:
    own, other = claim("c", exactly()), claim("o", exactly())
    world = World(own, other)
    waiting = using("c").build()
    hint = world.plugin.after_claim_change
    assert hint(waiting, None, own) is Hint.QUEUE
    assert hint(waiting, None, other) is Hint.SKIP
    assert hint(waiting, own, own) is Hint.SKIP
    assert hint(waiting, allocated("o", "a"), other) is Hint.QUEUE
    assert hint(waiting, allocated("o", "a"), None) is Hint.QUEUE
    assert hint(waiting, other, None) is Hint.SKIP
    assert hint(using("missing").build(), None, own) is Hint.SKIP


def test_reserving_takes_devices_and_unreserving_gives_them_back() -> None:
    world = World(claim("c", exactly(count=2)))
    state, waiting = CycleState(), using("c")
    world.pre_filter(state, waiting)
    assert world.rejection(state, waiting) == ""
    world.plugin.reserve(state, waiting.build(), "n")
    ledger = world.handle.index(ClaimBook).ledger
    assert sorted(str(taken) for taken in ledger.devices()) == ["gpu.example.com/n/a", "gpu.example.com/n/b"]
    world.plugin.unreserve(state, waiting.build(), "n")
    assert list(ledger.devices()) == []
    assert world.submitted == [], "nothing was written, so nothing is taken back"


def test_devices_that_are_given_back_before_they_were_written_are_told_to_those_who_wait() -> None:
    """No watch tells of them, and neither of a claim that was deleted while its allocation was on its way."""
    own = claim("c", exactly(count=2))
    for is_deleted in (False, True):
        world = World(own, claim("o", exactly()))
        state, first, waiting = CycleState(), using("c"), using("o", "waiting").build()
        world.pre_filter(state, first)
        assert world.rejection(state, first) == ""
        world.plugin.reserve(state, first.build(), "n")
        if is_deleted:
            state[POD_CLAIMS].sent[own.uid] = ClaimUpdate(own)
            world.cluster.remove_object("ResourceClaim", own.key)
        assert world.told == []
        world.plugin.unreserve(state, first.build(), "n")
        ((event, old, new),) = world.told
        assert event == ClusterEvent(Resource.RESOURCE_CLAIM, Action.UPDATE)
        assert world.plugin.after_claim_change(waiting, old, new) is Hint.QUEUE


def test_an_allocation_that_was_written_is_told_by_the_watch() -> None:
    world = World(claim("c", exactly()))
    book, own = world.handle.index(ClaimBook), allocated("c", "a")
    assert own.status.allocation is not None
    book.reserve(own, own.status.allocation, pod("p").build())
    world.cluster.put_object("ResourceClaim", own)
    world.plugin._reservations._requeue_if_free(own, book.settle(own.uid))
    assert world.told == []


def test_unreserving_while_the_reservation_is_on_its_way_takes_it_back_and_keeps_the_devices_until_then() -> None:
    world = World(claim("c", exactly()))
    state, waiting = CycleState(), using("c")
    world.pre_filter(state, waiting)
    assert world.rejection(state, waiting) == ""
    world.plugin.reserve(state, waiting.build(), "n")
    claims, on_its_way = state[POD_CLAIMS], claim("c", exactly())
    claims.sent[on_its_way.uid] = ClaimUpdate(on_its_way)
    world.plugin.unreserve(state, waiting.build(), "n")
    assert [type(call) for call in world.submitted] == [ClaimUpdate]
    assert len(list(world.handle.index(ClaimBook).ledger.devices())) == 1, "it is not known yet what was written"


def test_a_pod_without_claims_does_not_keep_pre_binds_apart() -> None:
    world, state = World(), CycleState()
    world.pre_filter(state, pod("p"))
    assert world.plugin.pre_bind_pre_flight(state, pod("p").build(), "n") == Skip(allow_parallel=True)
