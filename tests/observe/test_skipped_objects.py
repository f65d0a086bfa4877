"""What is skipped is counted always, logged once, and listed up to a bound."""

from __future__ import annotations

import logging

import pytest

from pilotage.observe.declaration import ALPHA, MetricTable, gauge
from pilotage.observe.exposition import render
from pilotage.observe.instruments import Counter
from pilotage.observe.skipped_objects import MOST_KEPT, SkippedObjects, describe
from pilotage.observe.task_errors import TaskErrors


def test_an_object_is_logged_once_and_counted_each_time(caplog: pytest.LogCaptureFixture) -> None:
    counter = Counter("kind", "stage")
    skipped = SkippedObjects(counter)
    for _ in range(3):
        try:
            raise ValueError("too\nmany \x1b[31mdigits")
        except ValueError as error:
            skipped.skip("Workload", "ns/w", "queueing", error)
    assert counter.value("Workload", "queueing") == 3
    [told] = caplog.records
    assert "Workload ns/w is skipped (queueing): ValueError: too many ?[31mdigits" in told.getMessage()
    assert "goes on without it" in told.getMessage() and told.exc_info is not None
    skipped.understood("Workload", "ns/w")
    assert skipped.about("Workload", "ns/w") is None and len(skipped) == 0


def test_the_table_is_bounded_and_its_overflow_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    counter = Counter("kind", "stage")
    skipped = SkippedObjects(counter)
    for number in range(MOST_KEPT + 50):
        skipped.skip("Pod", f"ns/p{number}", "intake", KeyError("x"))
    assert len(skipped) == MOST_KEPT and counter.total() == MOST_KEPT + 50
    assert len(caplog.records) == MOST_KEPT + 1


def test_what_concerns_a_namespace() -> None:
    skipped = SkippedObjects()
    for kind, key in (("Pod", "a/p"), ("Pod", "b/p"), ("Node", "n")):
        skipped.skip(kind, key, "intake", KeyError("x"))
    assert [one.key for one in skipped.concerning("a")] == ["a/p", "n"]


def test_an_exception_whose_text_cannot_be_made_is_described_by_its_type() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert describe(Silent()) == "Silent" and len(describe(ValueError("x" * 10_000))) == 300


def test_a_round_that_fails_again_and_again_is_logged_once_and_the_next_one_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    counter = Counter("task")
    errors = TaskErrors(counter)
    for _ in range(3):
        with errors.contained("backoff"):
            raise KeyError("gone")
    assert counter.value("backoff") == 3 and len(caplog.records) == 1
    with errors.contained("backoff"):
        pass
    with errors.contained("backoff"):
        raise KeyError("gone")
    assert len(caplog.records) == 2, "it had recovered in between"


class _Table(MetricTable):
    good = gauge(ALPHA, "Read.", prefix="t_")
    broken = gauge(ALPHA, "Not read.", prefix="t_")
    huge = gauge(ALPHA, "Beyond a float.", prefix="t_")


def test_a_metric_that_cannot_be_read_is_left_out_of_the_page(caplog: pytest.LogCaptureFixture) -> None:
    table = _Table()
    table.good.set(1)
    table.huge.set(10**400)

    def fail() -> dict[tuple[str, ...], float]:
        raise ZeroDivisionError

    table.broken.read_from(fail)
    with caplog.at_level(logging.ERROR):
        pages = [render("", table)[0].decode() for _ in range(2)]
    assert "t_good 1.0" in pages[1] and "t_huge +Inf" in pages[1] and "t_broken" not in pages[1]
    assert len(caplog.records) == 1 and "t_broken" in caplog.records[0].getMessage()
