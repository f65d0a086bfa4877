from __future__ import annotations

import os

from pilotage.supervise.shared_state import CurrentWork, SharedState, Work
from pilotage.testing import VirtualClock, pod


def test_one_process_reads_what_the_other_has_written() -> None:
    state = SharedState()
    child = os.fork()
    if not child:
        state.set_renewed_at(12.5)
        state.beat(3.25)
        state.set_work(b"ns\0p\0u\0Fit")
        os._exit(0)
    os.waitpid(child, 0)
    assert (state.renewed_at, state.alive_at) == (12.5, 3.25)
    assert state.work == Work("ns", "p", "u", "Fit")


def test_nothing_is_known_at_the_beginning() -> None:
    state = SharedState()
    assert (state.renewed_at, state.alive_at, state.slow_paths, state.work) == (None, None, 0, None)


def test_lease_that_is_given_up_is_renewed_never() -> None:
    state = SharedState()
    state.set_renewed_at(7.0)
    state.set_renewed_at(None)
    assert state.renewed_at is None


def test_current_work_is_the_pod_of_the_cycle_and_a_sign_of_life() -> None:
    clock, state = VirtualClock(), SharedState()
    work = CurrentWork(state, clock)
    made = pod("p").build()
    work.cycle_began(made)
    assert state.work == Work(made.namespace, "p", made.uid) and state.alive_at == clock.monotonic()
    work.idle()
    assert state.work is None


def test_text_that_is_too_long_is_cut() -> None:
    state = SharedState()
    state.set_work(b"ns\0p\0u\0" + b"x" * 100_000)
    found = state.work
    assert found is not None and found.uid == "u" and 3_000 < len(found.plugin) < 4_096


def test_text_that_is_being_written_is_not_read() -> None:
    state = SharedState()
    state.set_work(b"ns\0p\0u")
    state._numbers[3] += 1.0
    assert state.work is None
