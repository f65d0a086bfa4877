"""Removal of null fields, which in a built-in object mean the same as absent ones.

People write `creationTimestamp: null` or leave a YAML key empty; the API server forgets such fields when it decodes.
Readers of stored objects rely on that. Most objects hold no null, so the search for one happens on the encoded form,
which is far cheaper than a walk.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

_encode = msgspec.json.Encoder().encode

# Below these keys stand documents of other parties, in which null may mean something.
_FOREIGN: Final = frozenset({"opaque", "fieldsV1"})


def drop_nulls(obj: dict[str, Any]) -> None:
    """Remove every field whose value is null, in place; elements of lists stay."""
    try:
        may_hold_null = b"null" in _encode(obj)
    except (UnicodeEncodeError, RecursionError):
        # No JSON text, but an object from inside the process may hold such strings: storing it will fail, not this.
        may_hold_null = False
    if may_hold_null:
        _drop(obj)


def _drop(value: Any) -> None:
    if isinstance(value, dict):
        for key in [key for key, child in value.items() if child is None]:
            del value[key]
        for key, child in value.items():
            if key not in _FOREIGN:
                _drop(child)
    elif isinstance(value, list):
        for child in value:
            _drop(child)
