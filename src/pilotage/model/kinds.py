"""All kinds that scheduling reads: where they live in the API and how they are decoded.

`KINDS` is keyed by the resource name as it stands in the URL ("pods", "resourceclaims").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pilotage.model.codec import Bookmark, Codec, ListPage, StatusError, WatchEvent
from pilotage.model.meta import ApiObject
from pilotage.model.node import Node
from pilotage.model.pod import POD_CODEC

__all__ = ["KINDS", "Bookmark", "KindInfo", "ListPage", "StatusError", "WatchEvent", "kind_of"]


@dataclass(frozen=True, slots=True)
class KindInfo:
    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    codec: Codec[Any]

    @property
    def api_version(self) -> str:
        """ "v1" or "apps/v1"."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def decode(self, data: bytes) -> Any:
        """One object; DecodeError if it is none of this kind."""
        return self.codec.decode(data)

    def decode_list(self, data: bytes) -> ListPage:
        """One page of a list; objects that do not decode are in `errors`."""
        return self.codec.decode_list(data)

    def decode_events(self, data: bytes) -> list[WatchEvent]:
        """Complete lines of a watch; an object that does not decode is a DecodeError in its event's place."""
        return self.codec.decode_events(data)

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """The URL path of the collection (in all namespaces or one) or of one object."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}{scope}/{self.plural}" + (f"/{name}" if name else "")


def kind_of(kind: str) -> KindInfo | None:
    """The entry for a kind's name, such as "Pod"."""
    return _BY_KIND.get(kind)


def _same(wire: Any) -> Any:
    return wire


def _kind(group_version: str, plural: str, struct: type[ApiObject], *, namespaced: bool) -> KindInfo:
    group, _, version = group_version.rpartition("/")
    return KindInfo(group, version, plural, struct.__name__, namespaced, Codec(struct.__name__, struct, _same))


_TABLE = [
    KindInfo("", "v1", "pods", "Pod", True, POD_CODEC),
    _kind("v1", "nodes", Node, namespaced=False),
]

KINDS: dict[str, KindInfo] = {info.plural: info for info in _TABLE}
_BY_KIND = {info.kind: info for info in _TABLE}
