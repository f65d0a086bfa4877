"""The log of changes says when it does not reach back far enough."""

from __future__ import annotations

from pilotage.plugins.volume_binding import change_log
from pilotage.plugins.volume_binding.change_log import ChangeLog


def test_the_latest_changes_are_known() -> None:
    log = ChangeLog()
    log.note([("zone", "a")])
    mark = log.mark
    log.note([("zone", "b"), ("zone", "c")])
    assert log.reaches(mark)
    assert sorted(log.since(mark)) == [("zone", "b"), ("zone", "c")]
    assert list(log.since(log.mark)) == []


def test_what_is_forgotten_is_not_passed_over_in_silence() -> None:
    log = ChangeLog()
    log.note([("host", str(number)) for number in range(change_log._KEPT + 1)])
    assert not log.reaches(0)
    assert log.reaches(1)
