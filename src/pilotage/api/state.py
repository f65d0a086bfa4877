"""CycleState: what the plugins pass on to each other in one attempt for a pod.

Keys are typed: `COUNTS = StateKey[Counts]("MyPlugin/counts")` and then `state[COUNTS]` is known to be `Counts`.
A dry run works on a clone. Values that change after they were written offer `clone()`; all others are shared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from pilotage.api.budget import UNLIMITED, Budget

T = TypeVar("T")


@runtime_checkable
class Clonable(Protocol):
    def clone(self) -> Any:
        """An independent copy for a dry run."""


class CallTimer(Protocol):
    """Measures the calls of plugins in one cycle; for the framework."""

    def timed(self, plugin: str, method: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, which looks at the clock before and after."""


class StateKey(Generic[T]):
    """A name in the cycle state together with the type of its value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"StateKey({self.name!r})"


class CycleState:
    """A key/value store that lives as long as one attempt to schedule one pod."""

    __slots__ = ("_values", "budget", "skip_filter", "skip_prebind", "skip_score", "timer")

    def __init__(self, budget: Budget = UNLIMITED) -> None:
        self._values: dict[str, Any] = {}
        self.budget = budget
        """Long loops ask it on their way: `state.budget.spend()`."""
        self.timer: CallTimer | None = None
        """Set while a cycle is measured; for the framework."""
        self.skip_filter: set[str] = set()
        self.skip_score: set[str] = set()
        self.skip_prebind: set[str] = set()

    def __setitem__(self, key: StateKey[T], value: T) -> None:
        self._values[key.name] = value

    def __getitem__(self, key: StateKey[T]) -> T:
        value: T = self._values[key.name]
        return value

    def get(self, key: StateKey[T]) -> T | None:
        return self._values.get(key.name)

    def __contains__(self, key: StateKey[Any]) -> bool:
        return key.name in self._values

    def clone(self) -> CycleState:
        """A state for a dry run: clonable values are copied, the rest is shared."""
        copy = CycleState(self.budget)
        copy._values = {
            name: value.clone() if isinstance(value, Clonable) else value for name, value in self._values.items()
        }
        copy.timer = self.timer
        copy.skip_filter = self.skip_filter
        copy.skip_score = self.skip_score
        copy.skip_prebind = self.skip_prebind
        return copy
