"""Tasks that sets iterate over in the same order in every run.

asyncio keeps tasks in sets (those of a TaskGroup that is ended, those that `wait` waits for), and the order of a set is
that of the hashes: of memory addresses, unless a task has a number.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from itertools import count
from typing import Any


class NumberedTask(asyncio.Task[Any]):
    """A task whose hash is its number."""

    def __init__(self, work: Coroutine[Any, Any, Any], number: int, **options: Any) -> None:
        self._number = number
        super().__init__(work, **options)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other

    @classmethod
    def factory(cls) -> Any:
        """For `loop.set_task_factory`."""
        numbers = count()

        def make(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any) -> NumberedTask:
            return cls(work, next(numbers), loop=loop, **options)

        return make
