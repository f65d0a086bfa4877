from __future__ import annotations

import asyncio
import os
import signal

import pytest

from pilotage.cli.errors import CommandError, ExitCode
from pilotage.cli.event_loop import run, until_interrupted
from pilotage.kube.errors import KubeconfigError


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_work_is_cancelled_in_order_by_a_signal(number: signal.Signals) -> None:
    told: list[str] = []

    async def work() -> None:
        os.kill(os.getpid(), number)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            told.append("cleaned up")

    assert run(until_interrupted(work())) is False
    assert told == ["cleaned up"]


def test_work_that_ends_by_itself_ends_the_command() -> None:
    async def work() -> None:
        pass

    assert run(until_interrupted(work())) is True


def test_an_error_of_the_work_comes_out_as_it_is() -> None:
    async def work() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        run(until_interrupted(work()))


def test_signals_mean_what_they_meant_before_when_it_is_over() -> None:
    before = signal.getsignal(signal.SIGTERM)

    async def work() -> None:
        pass

    run(until_interrupted(work()))
    assert signal.getsignal(signal.SIGTERM) == before


def test_certificates_that_cannot_be_used_are_wrong_input() -> None:
    """They show only when the first connection is made, which is within the work."""

    async def work() -> None:
        raise KubeconfigError("certificate-authority: no usable PEM certificate")

    with pytest.raises(CommandError) as error:
        run(until_interrupted(work()))
    assert error.value.code == ExitCode.BAD_INPUT and error.value.problems == (
        "certificate-authority: no usable PEM certificate",
    )
