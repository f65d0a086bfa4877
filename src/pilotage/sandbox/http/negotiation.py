"""In what form a client wants its answer: the object, a table of it, or its metadata only.

kubectl asks for tables and falls back to objects; controllers ask for metadata only. Protobuf is not spoken: a client
that also takes JSON gets JSON, one that takes nothing else gets 406.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Final

from pilotage.sandbox.errors import not_acceptable


class View(Enum):
    OBJECT = "object"
    TABLE = "table"
    METADATA = "metadata"


_PLAIN: Final = frozenset({"application/json", "application/*", "*/*"})
_VERSIONS: Final = frozenset({"v1", "v1beta1"})
_DISCOVERY: Final = {"g": "apidiscovery.k8s.io", "v": "v2", "as": "APIGroupDiscoveryList"}


@lru_cache(maxsize=256)
def view_for(accept: str, *, plain_only: bool = False) -> View:
    """The first form in the Accept header that can be given; ApiError 406 when none can."""
    if not accept:
        return View.OBJECT
    for media_type, parameters in _entries(accept):
        if media_type not in _PLAIN:
            continue
        wanted = parameters.get("as")
        if wanted is None:
            return View.OBJECT
        if not plain_only and parameters.get("g") == "meta.k8s.io" and parameters.get("v") in _VERSIONS:
            if wanted == "Table":
                return View.TABLE
            if wanted.startswith("PartialObjectMetadata"):
                return View.METADATA
    table = [] if plain_only else ["application/json;as=Table;v=v1;g=meta.k8s.io"]
    raise not_acceptable(["application/json", *table])


@lru_cache(maxsize=64)
def wants_aggregated_discovery(accept: str) -> bool:
    """Whether one document with all groups is understood (and asked for before plain JSON)."""
    for media_type, parameters in _entries(accept):
        if media_type in _PLAIN:
            return all(parameters.get(name) == value for name, value in _DISCOVERY.items())
    return False


def _entries(accept: str) -> list[tuple[str, dict[str, str]]]:
    entries = []
    for entry in accept.split(","):
        media_type, *parameters = entry.split(";")
        pairs = (parameter.strip().partition("=") for parameter in parameters)
        entries.append((media_type.strip().lower(), {name: value for name, _, value in pairs}))
    return entries
