"""Claims of a group: used in its name, freed when it does not fit where their devices are."""

from __future__ import annotations

from typing import Any

from tests.cycle.group_world import GroupWorld, Short, group, members, node, pod, world

ENTRY = {"name": "card", "resourceClaimName": "card"}


def gang(name: str, min_count: int, **spec: Any) -> Short:
    """A group that has the claim "card" for its members."""
    policy = {"schedulingPolicy": {"gang": {"minCount": min_count}}}
    manifest = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup"}
    return {
        **manifest,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**policy, "resourceClaims": [ENTRY], "priority": 0, **spec},
    }


def slice_of(node_name: str) -> Short:
    return {
        "slice": {"name": node_name, "driver": "gpu.example.com", "node": node_name, "devices": [f"gpu-{node_name}"]}
    }


async def put_devices(w: GroupWorld, *nodes: str, **card: Any) -> None:
    await w.apply({"deviceClass": {"name": "gpu"}}, *map(slice_of, nodes))
    await w.apply({"claim": {"name": "card", "class": "gpu", **card}})


def status(w: GroupWorld) -> dict[str, Any]:
    found: dict[str, Any] = w.stage.api.last_known(("ResourceClaim", "default", "card")).get("status") or {}
    return found


def users(w: GroupWorld) -> list[tuple[str, str]]:
    return sorted((user["resource"], user["name"]) for user in status(w).get("reservedFor") or ())


def reserve(w: GroupWorld, *consumers: tuple[str, str, str]) -> None:
    entries = [
        {
            **({"apiGroup": "scheduling.k8s.io"} if kind == "podgroups" else {}),
            "resource": kind,
            "name": name,
            "uid": uid,
        }
        for kind, name, uid in consumers
    ]
    w.stage.api.merge(("ResourceClaim", "default", "card"), {"status": {"reservedFor": entries}})


async def test_more_members_than_a_claim_can_name_share_it_in_the_name_of_their_group() -> None:
    async with world() as w:
        await w.apply(node("a", cpu=300, pods=300))
        await put_devices(w, "a")
        await w.apply(gang("g", 260), *members("g", 260, claims=["card"]))
        await w.after(5)
        assert len(w.bound()) == 260 and users(w) == [("podgroups", "g")]


async def test_without_the_gate_every_member_is_named() -> None:
    async with world(gates={"DRAWorkloadResourceClaims": False}) as w:
        await w.apply(node("a", cpu=8))
        await put_devices(w, "a")
        await w.apply(gang("g", 2), *members("g", 2, claims=["card"]))
        await w.after(5)
        assert users(w) == [("pods", "g-0"), ("pods", "g-1")]


async def test_a_claim_that_is_not_the_groups_is_reserved_for_each_member() -> None:
    async with world() as w:
        await w.apply(node("a", cpu=8))
        await put_devices(w, "a")
        await w.apply(group("g", min=2), *members("g", 2, claims=["card"]))
        await w.after(5)
        assert users(w) == [("pods", "g-0"), ("pods", "g-1")]


async def test_the_first_member_allocates_it_and_one_that_comes_later_uses_it() -> None:
    async with world() as w:
        await w.apply(node("a", cpu=8), node("b", cpu=8))
        await put_devices(w, "b")
        await w.apply(gang("g", 2), *members("g", 2, claims=["card"]))
        await w.after(5)
        await w.apply(pod("late", group="g", claims=["card"]))
        await w.after(5)
        assert {w.node_of(name) for name in ("g-0", "g-1", "late")} == {"b"} and users(w) == [("podgroups", "g")]


async def test_a_claim_of_a_group_that_does_not_fit_there_is_freed_and_had_elsewhere() -> None:
    async with world() as w:
        await w.apply(node("a", cpu=1), node("b", cpu=8))
        there = {"driver": "gpu.example.com", "pool": "a", "device": "gpu-a", "node": "a"}
        await put_devices(w, "a", "b", allocated=there)
        await w.apply(gang("g", 3))
        reserve(w, ("podgroups", "g", w.cluster.objects("PodGroup")["default/g"].uid))
        await w.apply(*members("g", 3, claims=["card"]))
        assert "deallocation of PodGroup ResourceClaim completed" in w.group_message("g")
        await w.after(30)
        assert [w.node_of(f"g-{number}") for number in range(3)] == ["b"] * 3
        assert users(w) == [("podgroups", "g")]


async def test_a_group_lets_go_of_a_claim_that_others_use_before_anybody_is_evicted_for_it() -> None:
    async with world() as w:
        await w.apply(node("a", cpu=2), node("b", cpu=8), pod("low", cpu=2, node="a"))
        there = {"driver": "gpu.example.com", "pool": "a", "device": "gpu-a", "node": "a"}
        await put_devices(w, "a", "b", allocated=there)
        await w.apply(gang("g", 2, priority=9), pod("other", cpu=1, node="b"))
        reserve(
            w, ("podgroups", "g", w.cluster.objects("PodGroup")["default/g"].uid), ("pods", "other", w.pod("other").uid)
        )
        await w.apply(*members("g", 2, claims=["card"], priority=9))
        assert "ResourceClaim unreserved for PodGroup" in w.group_message("g")
        asked = status(w)["reservedFor"]
        assert asked == [{"$patch": "delete", "uid": w.cluster.objects("PodGroup")["default/g"].uid}]
        assert "default/low" in w.cluster.objects("Pod")


async def test_where_there_is_nothing_to_free_nothing_is_said_of_it() -> None:
    async with world() as w:
        await w.apply(node("a", cpu=1), group("g", min=2), *members("g", 2))
        assert "ResourceClaim" not in w.group_message("g") and "error" not in w.group_message("g")


async def test_a_group_with_running_members_keeps_its_claim() -> None:
    async with world() as w:
        await w.apply(node("a", cpu=2), node("b", cpu=8))
        await put_devices(w, "a", "b")
        await w.apply(gang("g", 2), *members("g", 2, claims=["card"], nodeSelector={"kubernetes.io/hostname": "a"}))
        await w.after(5)
        before = status(w)
        await w.apply(pod("late", group="g", claims=["card"]))
        await w.after(60)
        assert w.node_of("g-0") == "a" and w.node_of("late") == "" and status(w) == before
