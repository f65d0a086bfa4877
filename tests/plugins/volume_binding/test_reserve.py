"""What is assumed for a pod is gone for others, until it is taken back or has come true."""

from __future__ import annotations

from pilotage.api import PreFlight
from pilotage.api.results import SKIP_BESIDE_OTHERS
from pilotage.testing import node, pod
from tests.plugins.volume_binding.binding_world import BIND_CONFLICT, BindingWorld, with_objects
from tests.plugins.volume_world import claim, storage_class, using, volume

LOCAL = storage_class("local", provisioner="kubernetes.io/no-provisioner")
SELECTED = "volume.kubernetes.io/selected-node"


def local_world() -> BindingWorld:
    claims = [claim(name, class_name="local") for name in ("c", "d")]
    return with_objects(BindingWorld(node("n")), LOCAL, *claims, volume("v", class_name="local"))


def test_an_assumed_volume_is_not_offered_again() -> None:
    world = local_world()
    state = world.reserved(using("c"), "n")
    assert world.messages(using("d")) == {"n": [BIND_CONFLICT]}
    world.plugin.unreserve(state, using("c").build(), "n")
    assert world.rejected(using("d")) == []
    assert world.catalog.assumed == 0


def test_an_assumed_volume_names_the_claim() -> None:
    world = local_world()
    world.reserved(using("c"), "n")
    assumed = world.catalog.volume("v")
    assert assumed is not None
    assert assumed.spec.claim_ref is not None
    assert assumed.spec.claim_ref.uid == "uid-c"
    assert assumed.annotations == {"pv.kubernetes.io/bound-by-controller": "yes"}
    told = world.handle.objects("PersistentVolume")["v"]
    assert told.spec.claim_ref is None, "what the API server said stays as it is"


def test_news_of_the_volume_end_the_assumption() -> None:
    world = local_world()
    state = world.reserved(using("c"), "n")
    bound = volume("v", class_name="local", claimRef={"namespace": "default", "name": "c", "uid": "uid-c"})
    world.put(bound)
    assert world.catalog.assumed == 0
    world.plugin.unreserve(state, using("c").build(), "n")
    assert world.messages(using("d")) == {"n": [BIND_CONFLICT]}, "the volume is the claim's for good"


def test_taking_back_leaves_what_others_assumed_alone() -> None:
    world = local_world()
    first = world.reserved(using("c"), "n")
    world.put(volume("v", class_name="local"))
    world.reserved(using("d"), "n")
    world.plugin.unreserve(first, using("c").build(), "n")
    assert world.messages(using("c")) == {"n": [BIND_CONFLICT]}


def test_a_pod_that_gives_up_leaves_what_another_assumed_for_the_same_claim() -> None:
    """Simulation, seed 3197: a third pod got another volume for the claim, on a node where the first is not."""
    world = BindingWorld(node("n"), node("m"))
    world.put(LOCAL, claim("c", class_name="local"), volume("v", class_name="local"))
    world.reserved(using("c"), "n")
    second = world.reserved(using("c", name="second"), "n")
    world.plugin.unreserve(second, using("c", name="second").build(), "n")
    assumed = world.catalog.volume("v")
    assert assumed is not None and assumed.spec.claim_ref is not None


def test_a_claim_is_assumed_to_have_the_node_of_its_volume() -> None:
    world = BindingWorld(node("n"), node("m"))
    world.put(storage_class("s"), claim("c", class_name="s"))
    state = world.reserved(using("c"), "m")
    assumed = world.catalog.claim("default/c")
    assert assumed is not None
    assert assumed.annotations[SELECTED] == "m"
    assert world.rejected(using("c", name="other")) == ["n"], "a second pod with the claim must follow"
    world.plugin.unreserve(state, using("c").build(), "m")
    world.plugin.unreserve(state, using("c").build(), "m")
    assert world.rejected(using("c", name="other")) == []


def test_there_is_nothing_to_do_for_bound_claims_and_for_none() -> None:
    world = with_objects(BindingWorld(node("n")), volume("v"), claim("c", volume_name="v"))
    state = world.reserved(using("c"), "n")
    assert world.plugin.pre_bind_pre_flight(state, using("c").build(), "n") is SKIP_BESIDE_OTHERS
    assert world.plugin.reserve(state, pod("p").build(), "n") is None


def test_binding_may_run_beside_other_plugins() -> None:
    world = local_world()
    state = world.reserved(using("c"), "n")
    assert world.plugin.pre_bind_pre_flight(state, using("c").build(), "n") == PreFlight(allow_parallel=True)
