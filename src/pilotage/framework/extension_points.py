"""The extension points by the names that configuration files give them, and which classes serve each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilotage.api import points
from pilotage.config.kinds import POINTS

SERVED_BY: Final[Mapping[str, tuple[type, ...]]] = {
    "preEnqueue": (points.PreEnqueue,),
    "queueSort": (points.QueueSort,),
    "preFilter": (points.PreFilter,),
    "filter": (points.Filter, points.VectorFilter),
    "postFilter": (points.PostFilter,),
    "preScore": (points.PreScore,),
    "score": (points.Score, points.VectorScore),
    "reserve": (points.Reserve,),
    "permit": (points.Permit,),
    "preBind": (points.PreBind,),
    "bind": (points.Bind,),
    "postBind": (points.PostBind,),
    "placementGenerate": (points.PlacementGenerate,),
    "placementScore": (points.PlacementScore, points.VectorPlacementScore),
    "podGroupPostFilter": (points.PodGroupPostFilter,),
}
"""In the order in which a pod meets them; those of pod groups at the end."""

SPECIFIC_POINTS: Final = tuple(point for point in POINTS if point != "multiPoint")


def title(point: str) -> str:
    """`preFilter` as it is written in sentences: PreFilter."""
    return point[:1].upper() + point[1:]


def serves(cls: type, point: str) -> bool:
    return issubclass(cls, SERVED_BY.get(point, ()))
