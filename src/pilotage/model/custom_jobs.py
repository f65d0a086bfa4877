"""Jobs of kinds that are installed by their own CustomResourceDefinitions: metadata typed, the rest as it came."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from pilotage.model.codec import Codec
from pilotage.model.kinds import KindInfo, named
from pilotage.model.meta import ApiObject


class CustomJob(ApiObject, frozen=True):
    api_version: str = ""
    kind: str = ""
    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)


@cache
def custom_kind(group: str, version: str, kind: str) -> KindInfo:
    """How a kind is read and where it lives. Its plural follows from its name, as Kubernetes itself guesses it."""
    api_version = f"{group}/{version}"

    def finish(wire: ApiObject) -> ApiObject:
        assert isinstance(wire, CustomJob)
        # Items of a list need not say what they are.
        return replace(named(wire), api_version=api_version, kind=kind)

    return KindInfo(group, version, plural_of(kind), kind, True, Codec(kind, CustomJob, finish))


def kind_of_job(job: CustomJob) -> KindInfo:
    group, _, version = job.api_version.rpartition("/")
    return custom_kind(group, version, job.kind)


def plural_of(kind: str) -> str:
    name = kind.lower()
    if name.endswith("s"):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
