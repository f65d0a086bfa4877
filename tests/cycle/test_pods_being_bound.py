"""PreBind of a pod can be cancelled while it runs, and not afterwards."""

from __future__ import annotations

import asyncio

import pytest

from pilotage.cycle.pods_being_bound import PodsInPreBind, PreemptedInPreBind


async def answer(value: str) -> str:
    return value


async def fail() -> str:
    raise ValueError("no disk")


async def for_ever() -> str:
    await asyncio.get_running_loop().create_future()
    return "never"


async def test_what_the_work_returns_is_returned() -> None:
    assert await PodsInPreBind().run("u", answer("done")) == "done"


async def test_what_the_work_raises_is_raised() -> None:
    with pytest.raises(ValueError, match="no disk"):
        await PodsInPreBind().run("u", fail())


async def test_running_work_is_cancelled_with_its_reason() -> None:
    pods = PodsInPreBind()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(_outcome(pods, "u"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert "u" in pods
        assert pods.cancel("u", "preempted by X")
        assert await running == "preempted by X"
    assert "u" not in pods


async def _outcome(pods: PodsInPreBind, uid: str) -> str:
    try:
        return await pods.run(uid, for_ever())
    except PreemptedInPreBind as error:
        return str(error)


async def test_what_is_over_cannot_be_cancelled() -> None:
    pods = PodsInPreBind()
    assert not pods.cancel("u", "too late")
    await pods.run("u", answer("done"))
    assert not pods.cancel("u", "too late")


async def test_cancelling_the_binding_itself_is_no_preemption() -> None:
    pods = PodsInPreBind()
    task = asyncio.ensure_future(pods.run("u", for_ever()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "u" not in pods
