"""Every kind of call and its relevance, as far as they have been used: two types must not share a kind.

Plugins bring calls of their own; the first call of a kind registers its type. Calls are merged by kind, and metrics are
counted by it, so that a second type of the same kind is a mistake that would show much later.
"""

from __future__ import annotations

from pilotage.api.calls import ApiCall


class CallTypes:
    """Types by kind."""

    def __init__(self) -> None:
        self._by_kind: dict[str, type[ApiCall]] = {}

    def check(self, call: ApiCall) -> None:
        """Register the type of a call; TypeError if another type has its kind, or if it is not complete."""
        known = self._by_kind.get(call.kind)
        if known is not type(call):
            self._register(type(call), known)

    def relevances(self) -> dict[str, int]:
        return {kind: type_.relevance for kind, type_ in self._by_kind.items()}

    def _register(self, type_: type[ApiCall], known: type[ApiCall] | None) -> None:
        name = f"{type_.__module__}.{type_.__qualname__}"
        if known is not None:
            other = f"{known.__module__}.{known.__qualname__}"
            raise TypeError(f'{name}: calls of the kind "{type_.kind}" are those of {other}; choose another kind')
        if not isinstance(type_.relevance, int):
            raise TypeError(f"{name}: relevance must be a number, such as Relevance.STATUS")
        self._by_kind[type_.kind] = type_
