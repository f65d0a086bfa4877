from __future__ import annotations

from pilotage.supervise.supervisor import Silence


def looks(silence: Silence, alive_at: float | None, begin: float, seconds: float, step: float = 0.25) -> float:
    for number in range(int(seconds / step)):
        silence.look(alive_at, begin + number * step)
    return silence.seconds


def test_silence_is_counted_from_the_last_sign_of_life() -> None:
    silence = Silence()
    assert looks(silence, 1.0, 100.0, 10.0) == 9.75
    assert silence.look(2.0, 111.0) == 0.0
    assert silence.look(2.0, 111.5) == 0.5


def test_who_has_not_begun_is_not_silent() -> None:
    assert looks(Silence(), None, 0.0, 100.0) == 0.0


def test_time_in_which_the_watcher_slept_itself_does_not_count() -> None:
    """A machine that was suspended for an hour has two processes that have not moved."""
    silence = Silence()
    looks(silence, 1.0, 0.0, 2.0)
    assert silence.look(1.0, 3600.0) < 3.0
