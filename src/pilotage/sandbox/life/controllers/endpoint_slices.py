"""Which endpoints belong into which EndpointSlice: the decision, without any effects.

Slices hold up to a hundred endpoints that have the same ports. An endpoint that is in a slice stays there, so that a
pod that comes or goes changes one slice of a large service and not all of them. A service without endpoints has one
empty slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

Object: TypeAlias = dict[str, Any]

MOST_PER_SLICE: Final = 100


class PortGroup(NamedTuple):
    """Endpoints that have the same ports."""

    ports: Sequence[Object]
    endpoints: Sequence[Object]


@dataclass(slots=True)
class SliceChanges:
    create: list[PortGroup] = field(default_factory=list)
    update: list[Object] = field(default_factory=list)
    """Slices as they should be."""
    delete: list[Object] = field(default_factory=list)


_NONE: Final = PortGroup((), ())


def plan_slices(existing: Sequence[Object], groups: Sequence[PortGroup]) -> SliceChanges:
    changes = SliceChanges()
    wanted = {ports_key(group.ports): group for group in groups if group.endpoints} or {ports_key(()): _NONE}
    waiting = {key: {_identity(one): one for one in group.endpoints} for key, group in wanted.items()}
    kept: list[tuple[Object, list[Object]]] = []
    for known in existing:
        left = waiting.get(key := ports_key(known.get("ports") or ()), {})
        found = [left.pop(name) for one in known.get("endpoints") or () if (name := _identity(one)) in left]
        # Of empty slices one is enough, and only if there is nothing else to say.
        if found or (wanted.get(key) is _NONE and not kept):
            kept.append((known, found))
        else:
            changes.delete.append(known)
    for known, found in kept:
        left = waiting[ports_key(known.get("ports") or ())]
        while left and len(found) < MOST_PER_SLICE:
            found.append(left.pop(next(iter(left))))
        if found != (known.get("endpoints") or []):
            changes.update.append({**known, "endpoints": found})
    for key, group in wanted.items():
        rest = list(waiting[key].values())
        for start in range(0, len(rest), MOST_PER_SLICE):
            changes.create.append(PortGroup(group.ports, rest[start : start + MOST_PER_SLICE]))
    if not kept and not changes.create:
        changes.create.append(_NONE)
    return changes


def ports_key(ports: Sequence[Object]) -> bytes:
    ordered = sorted(ports, key=lambda port: (port.get("name") or "", port.get("port") or 0))
    return msgspec.json.encode(ordered, order="deterministic")


def _identity(endpoint: Object) -> str:
    return str((endpoint.get("targetRef") or {}).get("uid") or endpoint.get("addresses"))
