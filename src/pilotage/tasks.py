"""Errors out of task groups as they went in.

`asyncio.TaskGroup` wraps whatever ends it in an ExceptionGroup, also the one error that its own body raised. Callers
who catch by type need that error itself:

    with sole_error():
        async with asyncio.TaskGroup() as tasks:
            ...

Several different errors stay a group: none of them may hide the others. Work of which the first error says enough is
done `side_by_side`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


async def side_by_side(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What each comes to, in order; raises the first error, and ends the others."""
    try:
        async with asyncio.TaskGroup() as tasks:
            doing = [tasks.create_task(work) for work in works]
    except* Exception as group:
        first = next(_leaves(group))
        raise first from first.__cause__
    return [done.result() for done in doing]


@contextmanager
def sole_error() -> Iterator[None]:
    """Raise the only error inside an exception group instead of the group."""
    try:
        yield
    except BaseExceptionGroup as group:
        leaves = list(_leaves(group))
        if len(leaves) != 1:
            raise
        # Its own traceback and cause say everything; the group around it says nothing more.
        raise leaves[0] from leaves[0].__cause__


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
