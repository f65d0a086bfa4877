"""The next sizes of the ReplicaSets of a Deployment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.sandbox.life.controllers.int_or_percent import scaled_value
from pilotage.sandbox.life.controllers.rollout import Limits, SetSize, in_proportion, recreate, roll


@pytest.mark.parametrize(
    ("value", "total", "up", "down"), [(3, 10, 3, 3), ("25%", 10, 3, 2), ("100%", 7, 7, 7), ("0%", 7, 0, 0)]
)
def test_percentages_are_rounded_as_asked(value: int | str, total: int, up: int, down: int) -> None:
    assert scaled_value(value, total, round_up=True) == up
    assert scaled_value(value, total, round_up=False) == down


@pytest.mark.parametrize("value", ["25", "x%", "%", "-5%"])
def test_text_that_is_no_percentage_is_rejected(value: str) -> None:
    with pytest.raises(ValueError, match="neither a number nor a percentage"):
        scaled_value(value, 10, round_up=True)


def test_surge_is_rounded_up_and_unavailability_down_and_never_are_both_zero() -> None:
    assert Limits.of(10, "25%", "25%") == Limits(10, 3, 2)
    assert Limits.of(1, "25%", "25%") == Limits(1, 1, 0)
    assert Limits.of(4, 0, "0%") == Limits(4, 0, 1)


def test_new_set_grows_into_the_surge() -> None:
    assert roll(Limits(10, 3, 2), SetSize("new", 0), [SetSize("old", 10, 10)]) == {"new": 3}


def test_old_set_shrinks_as_far_as_availability_allows() -> None:
    assert roll(Limits(10, 3, 2), SetSize("new", 3, 0), [SetSize("old", 10, 10)]) == {"old": 8}
    assert roll(Limits(10, 3, 2), SetSize("new", 5, 3), [SetSize("old", 8, 8)]) == {"old": 5}


def test_unhealthy_old_pods_go_first_even_from_a_younger_set() -> None:
    sets = [SetSize("older", 5, 5), SetSize("younger", 5, 1)]
    assert roll(Limits(10, 3, 2), SetSize("new", 3, 0), sets) == {"younger": 3}


def test_new_set_shrinks_with_the_deployment() -> None:
    assert roll(Limits(2, 1, 1), SetSize("new", 5, 5), []) == {"new": 2}


def test_recreate_waits_for_the_old_pods_to_be_gone() -> None:
    old = [SetSize("old", 3, 3)]
    assert recreate(3, SetSize("new", 0), old, old_pods_are_gone=False) == {"old": 0}
    old = [SetSize("old", 0)]
    assert recreate(3, SetSize("new", 0), old, old_pods_are_gone=False) == {}
    assert recreate(3, SetSize("new", 0), old, old_pods_are_gone=True) == {"new": 3}


@pytest.mark.parametrize(
    ("limits", "before", "sizes", "after"),
    [
        (Limits(30, 3, 2), 13, [8, 5], [20, 13]),
        (Limits(5, 1, 1), 13, [8, 5], [4, 2]),
        (Limits(0, 3, 2), 13, [8, 5], [0, 0]),
        (Limits(12, 0, 1), 10, [5, 5], [6, 6]),
        (Limits(11, 0, 1), 10, [5, 5], [5, 6]),
    ],
)
def test_sets_keep_their_parts_of_a_deployment_that_is_scaled_while_it_rolls(
    limits: Limits, before: int, sizes: list[int], after: list[int]
) -> None:
    sets = [SetSize(f"s{at}", size) for at, size in enumerate(sizes)]
    found = in_proportion(limits, before, sets)
    assert [found[one.name] for one in sets] == after


@given(
    wanted=st.integers(0, 40),
    surge=st.integers(0, 5),
    sizes=st.lists(st.integers(1, 20), min_size=1, max_size=5),
    before=st.integers(1, 60),
)
def test_sets_in_proportion_are_as_many_as_the_deployment_may_have(
    wanted: int, surge: int, sizes: list[int], before: int
) -> None:
    found = in_proportion(Limits(wanted, surge, 1), before, [SetSize(f"s{at}", size) for at, size in enumerate(sizes)])
    assert all(size >= 0 for size in found.values())
    assert sum(found.values()) <= max(wanted + surge if wanted else 0, sum(sizes))


@given(
    replicas=st.integers(0, 12),
    surge=st.integers(0, 5),
    unavailable=st.integers(0, 5),
    sizes=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=4),
)
def test_rollout_keeps_both_bounds_and_ends_with_the_new_set_alone(
    replicas: int, surge: int, unavailable: int, sizes: list[tuple[int, int]]
) -> None:
    """Pods that are asked for become available one step later; a step never breaks what held before it."""
    limits = Limits.of(replicas, surge, unavailable)
    sets = {f"s{i}": SetSize(f"s{i}", size, min(size, available)) for i, (size, available) in enumerate(sizes)}
    *old_names, new_name = sets
    for _ in range(200):
        old = [sets[name] for name in old_names]
        changes = roll(limits, sets[new_name], old)
        total, available = (sum(getattr(s, field) for s in sets.values()) for field in ("replicas", "available"))
        for name, size in changes.items():
            sets[name] = SetSize(name, size, min(sets[name].available, size))
        assert sum(s.replicas for s in sets.values()) <= max(limits.replicas + limits.max_surge, total)
        floor = min(limits.replicas - limits.max_unavailable, available)
        assert new_name in changes or sum(s.available for s in sets.values()) >= floor
        sets = {name: SetSize(name, s.replicas, s.replicas) for name, s in sets.items()} if not changes else sets
        if not changes and roll(limits, sets[new_name], [sets[name] for name in old_names]) == {}:
            break
    assert {name: s.replicas for name, s in sets.items() if s.replicas} == ({new_name: replicas} if replicas else {})
