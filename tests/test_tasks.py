from __future__ import annotations

import asyncio

import pytest

from pilotage.tasks import sole_error


async def _fail(error: Exception) -> None:
    raise error


async def test_the_only_error_of_nested_groups_comes_out_as_it_is() -> None:
    wrong = ValueError("wrong")
    wrong.__cause__ = KeyError("cause")
    with pytest.raises(ValueError) as caught, sole_error():
        async with asyncio.TaskGroup(), asyncio.TaskGroup() as inner:
            inner.create_task(_fail(wrong))
    assert caught.value is wrong
    assert isinstance(caught.value.__cause__, KeyError)


async def test_an_error_of_the_body_comes_out_as_it_is() -> None:
    with pytest.raises(LookupError), sole_error():
        async with asyncio.TaskGroup():
            raise LookupError


async def test_several_errors_stay_a_group() -> None:
    with pytest.raises(ExceptionGroup) as caught, sole_error():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_fail(ValueError()))
            tasks.create_task(_fail(KeyError()))
    assert len(caught.value.exceptions) == 2
