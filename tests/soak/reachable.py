"""How much an object keeps alive: the sizes of all containers that can be reached from it, by who owns them.

    SchedulingQueue._ended            1024
    CallQueue._pending                   0
    LabelTally._rows{}                  40     what is in the values of a dict of the owner

Two such tables, taken before and after something that should leave nothing behind, tell what has stayed.
"""

from __future__ import annotations

import gc
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import BuiltinFunctionType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import msgspec
import numpy as np

_LEAVES = (str, bytes, int, float, complex, type(None), type, ModuleType, FrameType, BuiltinFunctionType)
_LISTS = (list, tuple, set, frozenset, deque)


def container_sizes(roots: Mapping[str, Any], is_outside: Callable[[Any], bool]) -> Counter[str]:
    """Elements by owner, of all that the roots keep alive; what `is_outside` is not looked into."""
    sizes: Counter[str] = Counter()
    waiting = [(name, root) for name, root in roots.items()]
    kept = [root for _, root in waiting]
    """Nothing that was seen may go meanwhile: its identity would be given to another."""
    seen = set(map(id, kept))
    while waiting:
        label, found = waiting.pop()
        if isinstance(found, (*_LISTS, dict)):
            sizes[label] += len(found)
        elif isinstance(found, np.ndarray):
            sizes[label] += found.size
        for name, part in _parts(label, found):
            if id(part) not in seen and not isinstance(part, _LEAVES) and not is_outside(part):
                seen.add(id(part))
                kept.append(part)
                waiting.append((name, part))
    return sizes


def _parts(label: str, found: Any) -> Iterator[tuple[str, Any]]:
    """What an object refers to, and whose it is."""
    if isinstance(found, dict):
        yield from _labelled(f"{label}{{}}", found.values())
        yield from _labelled(f"{label}{{key}}", found)
    elif isinstance(found, _LISTS):
        yield from _labelled(f"{label}[]", found)
    elif isinstance(found, MethodType | FunctionType):
        yield from _labelled(label, gc.get_referents(found))
    else:
        yield from _attributes(found)


def _labelled(label: str, parts: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    # An element of an element of a list within itself would have a name without end.
    short = label if len(label) < 120 else label[:120]
    yield from ((short, part) for part in parts)


def _attributes(found: Any) -> Iterator[tuple[str, Any]]:
    owner = type(found).__qualname__
    names = {name for cls in type(found).__mro__ for name in _slots(cls)}
    names.update(found.__struct_fields__ if isinstance(found, msgspec.Struct) else ())
    named = [getattr(found, name) for name in sorted(names) if hasattr(found, name)]
    yield from ((f"{owner}.{name}", getattr(found, name)) for name in sorted(names) if hasattr(found, name))
    attributes = getattr(found, "__dict__", {})
    if isinstance(attributes, dict):
        yield from ((f"{owner}.{name}", part) for name, part in attributes.items())
    # What C code holds: caches of functions, callbacks of futures, locals of coroutines.
    known = set(map(id, (*named, *attributes.values(), attributes)))
    yield from ((f"{owner}.*", part) for part in gc.get_referents(found) if id(part) not in known)


def _slots(cls: type) -> Iterable[str]:
    slots = cls.__dict__.get("__slots__", ())
    named = (slots,) if isinstance(slots, str) else slots
    return [f"_{cls.__name__.lstrip('_')}{s}" if s.startswith("__") and not s.endswith("__") else s for s in named]
