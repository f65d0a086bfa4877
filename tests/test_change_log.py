"""Who asks the log later is told what was touched since, or that it was too long ago."""

from __future__ import annotations

from pilotage.change_log import ChangeLog


def test_what_was_touched_since_the_mark_is_named_once_in_order() -> None:
    log = ChangeLog[str]()
    log.touch("before")
    mark = log.mark
    assert log.changed_since(mark) == []
    for item in ("c", "a", "c"):
        log.touch(item)
    assert log.changed_since(mark) == ["c", "a"]
    assert log.changed_since(log.mark) == []


def test_a_mark_from_before_the_log_was_cut_says_so() -> None:
    log = ChangeLog[int](limit=8)
    old = log.mark
    for number in range(9):
        log.touch(number)
    young = log.mark
    log.touch(100)
    assert log.changed_since(old) is None
    assert log.changed_since(young) == [100]
