"""The queue of what controllers look at: once per key, earliest request wins, ties in order of arrival."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotage.sandbox.life.work_queue import WorkQueue


def drain(queue: WorkQueue[str], now: float) -> list[str]:
    items = []
    while (item := queue.pop(now)) is not None:
        items.append(item)
    return items


def test_items_come_out_when_due_in_order_of_time_and_arrival() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for item, due in [("late", 5.0), ("b", 1.0), ("a", 1.0), ("first", 0.5)]:
        queue.add(item, due)
    assert drain(queue, 0.4) == []
    assert drain(queue, 1.0) == ["first", "b", "a"]
    assert queue.next_due() == 5.0 and len(queue) == 1


def test_item_waits_once_and_the_earliest_request_wins() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", 10.0)
    queue.add("a", 20.0)
    assert queue.next_due() == 10.0
    queue.add("a", 3.0)
    assert drain(queue, 3.0) == ["a"]
    assert queue.next_due() is None and drain(queue, 100.0) == []


def test_discarded_item_does_not_come_out_but_may_come_back() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", 1.0)
    queue.discard("a")
    queue.discard("never there")
    assert "a" not in queue and drain(queue, 2.0) == []
    queue.add("a", 1.0)
    assert drain(queue, 2.0) == ["a"]


def test_pulling_forward_again_and_again_does_not_grow_the_queue() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for step in range(10_000):
        queue.add("a", 10_000.0 - step)
    queue.check()
    assert len(queue) == 1 and len(queue._heap) < 100


@given(st.lists(st.tuples(st.sampled_from(["add", "discard", "pop"]), st.sampled_from("abcdef"), st.integers(0, 9))))
def test_queue_equals_a_dictionary_of_earliest_times(steps: list[tuple[str, str, int]]) -> None:
    queue: WorkQueue[str] = WorkQueue()
    model: dict[str, float] = {}
    for verb, item, time in steps:
        if verb == "add":
            queue.add(item, time)
            model[item] = min(time, model.get(item, time))
        elif verb == "discard":
            queue.discard(item)
            model.pop(item, None)
        else:
            popped = queue.pop(time)
            due = [t for t in model.values() if t <= time]
            assert (popped is None) == (not due)
            if popped is not None:
                assert model.pop(popped) == min(due)
        queue.check()
        assert len(queue) == len(model)
        assert queue.next_due() == min(model.values(), default=None)
