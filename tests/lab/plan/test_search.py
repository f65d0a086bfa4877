"""The search for mixes, against all there are."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.lab.plan.search import Counts, NodeSearch

MOST = 12


def _covers(demands: list[tuple[int, ...]], counts: Counts) -> str | None:
    """Enough if every demand is met: a demand says what one node of each shape is worth, and how much is needed."""
    met = all(sum(c * w for c, w in zip(counts, one, strict=False)) >= one[-1] for one in demands)
    return "enough" if met else None


@settings(max_examples=200)
@given(
    st.integers(1, 3).flatmap(
        lambda n: st.tuples(
            st.lists(st.tuples(*[st.integers(0, 4)] * n, st.integers(1, 20)), min_size=1, max_size=3),
            st.tuples(*[st.integers(1, 9)] * n),
        )
    )
)
def test_what_is_told_is_enough_and_least_and_something_is_found_if_there_is_anything(
    problem: tuple[list[tuple[int, ...]], tuple[int, ...]],
) -> None:
    demands, prices = problem
    search: NodeSearch[str] = NodeSearch(lambda counts: _covers(demands, counts), prices, MOST, 10_000)
    found = search.run()
    enough = [
        counts for counts in product(range(MOST + 1), repeat=len(prices)) if any(counts) and _covers(demands, counts)
    ]
    assert bool(found) == bool(enough) and not search.is_exhausted
    assert [one.cost for one in found] == sorted(one.cost for one in found)
    for one in found:
        assert one.counts in enough and one.cost == sum(c * p for c, p in zip(one.counts, prices, strict=True))
    for at in range(len(prices)):
        alone = [counts[at] for counts in enough if sum(counts) == counts[at]]
        told = [one.counts[at] for one in found if sum(one.counts) == one.counts[at]]
        assert not alone or not told or min(told) == min(alone)
        assert not alone or found[0].cost <= min(alone) * prices[at]


def test_two_shapes_that_are_both_needed() -> None:
    search: NodeSearch[str] = NodeSearch(lambda c: _covers([(1, 0, 5), (0, 1, 3)], c), (1, 1), 100, 200)
    assert [one.counts for one in search.run()] == [(5, 3)]


def test_a_mix_that_is_cheaper_than_either() -> None:
    search: NodeSearch[str] = NodeSearch(lambda c: _covers([(2, 8, 11)], c), (1, 3.5), 100, 200)
    assert search.run()[0].counts == (2, 1)


def test_trials_are_bounded_and_none_is_made_twice() -> None:
    asked: list[Counts] = []

    def attempt(counts: Counts) -> str | None:
        asked.append(counts)
        return _covers([(1, 2, 100)], counts)

    search: NodeSearch[str] = NodeSearch(attempt, (1, 1), 1000, 20)
    assert search.run()[0].cost <= 100
    assert search.is_exhausted and len(asked) == len(set(asked)) == search.trials == 20
