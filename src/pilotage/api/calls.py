"""Asynchronous API calls: every write to the API server is one of these objects.

A call knows its object (by which calls are serialised), its lane (so that status never starves binding), its
relevance (a more relevant call makes a pending less relevant one pointless) and how to perform itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import IntEnum, StrEnum
from typing import ClassVar, Protocol

from pilotage.model.kinds import KindInfo


class Lane(StrEnum):
    """Calls of different lanes do not wait for each other."""

    BIND = "bind"
    EVICT = "evict"
    VOLUME = "volume"
    STATUS = "status"
    EVENT = "event"


class Relevance(IntEnum):
    """Which call wins when two are meant for the same object."""

    EVENT = 0
    STATUS = 1
    BINDING = 2
    DELETION = 3


class ApiWriter(Protocol):
    """What a call needs of the API server; implemented by `pilotage.kube.client.KubeClient`."""

    async def bind(self, namespace: str, pod: str, uid: str, node: str) -> None: ...
    async def create(self, kind: KindInfo, namespace: str, body: bytes) -> bytes: ...
    async def update(
        self, kind: KindInfo, namespace: str, name: str, body: bytes, *, subresource: str = ...
    ) -> bytes: ...
    async def patch(
        self,
        kind: KindInfo,
        namespace: str,
        name: str,
        body: bytes,
        *,
        content_type: str = ...,
        subresource: str = ...,
    ) -> bytes: ...
    async def delete(self, kind: KindInfo, namespace: str, name: str, options: bytes | None = ...) -> bytes: ...


class ApiCall(ABC):
    """One write. Subclasses are small and hold data only."""

    __slots__ = ()

    kind: ClassVar[str]
    lane: ClassVar[Lane]
    relevance: ClassVar[Relevance]

    @property
    @abstractmethod
    def object_key(self) -> str:
        """What the call writes to, e.g. the UID of the pod: calls with the same key never overlap."""

    @abstractmethod
    async def perform(self, writer: ApiWriter) -> None:
        """Do it; raise what went wrong."""

    def merged_with(self, newer: ApiCall) -> ApiCall:
        """What to send when `newer`, of the same kind and for the same object, arrives before this one was sent."""
        return newer


def is_not_found(error: Exception) -> bool:
    """Did the API server say that there is no such object?"""
    return getattr(error, "code", None) == 404


def is_conflict(error: Exception) -> bool:
    """Did the API server say that the object has changed meanwhile?"""
    return getattr(error, "code", None) == 409
