"""The scheduler as a child process: forked before there is an event loop or a thread, watched, ended.

The parent supervises and the child schedules, not the other way round: the first process of a container cannot be
killed from inside of it, and its end is the end of all others.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from pilotage.supervise.shared_state import SharedState

_STACK_SIGNAL: Final = signal.SIGUSR1
DUMP_SIGNAL: Final = signal.SIGUSR2
"""Queue and cache into the log; kube-scheduler's signal for it."""
_MOST_STACK_BYTES: Final = 1 << 16
_PR_SET_PDEATHSIG: Final = 1


class OwnEnd(Struct, frozen=True):
    """What the child has of its parent."""

    socket: socket.socket
    state: SharedState


class SupervisedScheduler:
    """The child, as its parent sees it."""

    def __init__(self, pid: int, end: socket.socket, state: SharedState, stack: int) -> None:
        self.pid = pid
        self.socket = end
        self.state = state
        self._stack = stack
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code, the negative number of the signal that ended it, None while it runs."""
        if self._code is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def terminate(self) -> None:
        """Let it come to an orderly end."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def ask_for_stack(self) -> None:
        """Whatever it does, also within C code; `stack` has it soon after."""
        self._send(_STACK_SIGNAL)

    def dump_state(self) -> None:
        """Between two cycles, into its log."""
        self._send(DUMP_SIGNAL)

    def stack(self) -> str:
        """What has arrived, the innermost call first; "" if nothing has."""
        with contextlib.suppress(BlockingIOError):
            return os.read(self._stack, _MOST_STACK_BYTES).decode("utf-8", "replace")
        return ""

    def _send(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def start(work: Callable[[OwnEnd], int]) -> SupervisedScheduler:
    """Do `work` in a child process, whose exit code is what it returns. Call it before anything runs."""
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    state, parent = SharedState(), os.getpid()
    # What is buffered would be written by both.
    sys.stdout.flush()
    sys.stderr.flush()
    # What is there now stays: collecting it would only make copies of pages that both can share.
    gc.collect()
    gc.freeze()
    pid = os.fork()
    if pid:
        theirs.close()
        os.close(writing)
        return SupervisedScheduler(pid, ours, state, reading)
    code = 1
    try:
        ours.close()
        os.close(reading)
        _end_with(parent)
        # Ctrl-C reaches the whole group; the parent is the one that acts on it.
        signal.signal(signal.SIGINT, lambda number, frame: None)
        faulthandler.register(_STACK_SIGNAL, file=writing, all_threads=True)
        code = work(OwnEnd(theirs, state))
    finally:
        # Not further up: whatever called us is the parent's business.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _end_with(parent: int) -> None:
    """Let the kernel kill us when the parent is gone, however stuck we are; elsewhere the end of the socket does."""
    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
