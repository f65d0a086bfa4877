"""A mapping of strings that is shared by many objects and therefore must not change.

Labels of 100,000 pods come in a few hundred variants. One `FrozenMap` per variant is kept and shared; it is a dict
(so it decodes, encodes and reads at full speed) that refuses to be written and can be a key of other mappings.
"""

from __future__ import annotations

from typing import Any, NoReturn


class FrozenMap(dict[str, str]):
    __slots__ = ("__weakref__", "_hash")

    def __hash__(self) -> int:  # type: ignore[override]
        try:
            return self._hash
        except AttributeError:
            self._hash: int = hash(frozenset(self.items()))
            return self._hash

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("labels and annotations are shared by many pods and can not be changed; make a dict of them")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> FrozenMap:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenMap:
        return self

    def __reduce__(self) -> tuple[type[FrozenMap], tuple[dict[str, str]]]:
        return FrozenMap, (dict(self),)


EMPTY_MAP = FrozenMap()
