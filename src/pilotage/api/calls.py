"""Asynchronous API calls: every write to the API server is one of these objects.

A call knows its object (calls for one object never overlap), its lane (so that status never starves binding), its
relevance (a more relevant call makes a pending less relevant one pointless) and how to perform itself. What it may
know besides, so that less is sent and nothing is sent twice:

    merged_with    what to send if another call of its kind comes before it was sent
    rebase         what the API server has now; what is so already need not be written
    is_pointless   nothing is left to be written
    applied_to     what the object will look like, for those who read it before the API server has it
    follow         the call before it has just been done: do not repeat it
    look           after an answer was lost: has it happened?

Each submitted call gets exactly one `Outcome`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import Any, ClassVar, Protocol, TypeAlias

from msgspec import Struct

from pilotage.model.kinds import KindInfo


class Lane(StrEnum):
    """Calls of different lanes do not wait for each other. The order is that in which a client-side limit is shared."""

    BIND = "bind"
    EVICT = "evict"
    VOLUME = "volume"
    STATUS = "status"
    EVENT = "event"


class Relevance(IntEnum):
    """Which call wins when two are meant for the same object. Any other number may stand between them."""

    EVENT = 0
    STATUS = 10
    BINDING = 20
    DELETION = 30


class Ending(StrEnum):
    """How a submitted call can end."""

    DONE = "done"
    SKIPPED = "skipped"
    OVERWRITTEN = "overwritten"
    FAILED = "failed"


class Why(StrEnum):
    """Why a call was not sent, or not as it was."""

    NO_EFFECT = "the object is so already"
    LESS_RELEVANT = "a more relevant call for the object is under way"
    MORE_RELEVANT_CAME = "a more relevant call for the object came"
    NEWER_CAME = "a newer call of its kind took its place"
    OBJECT_GONE = "the object is gone"


class CallSkipped(Exception):
    """The call was not sent, because it had become pointless."""


class CallOverwritten(Exception):
    """The call was not sent, because another one for the same object took its place."""


class CallExpired(Exception):
    """The call waited too long for its turn."""


class CallDropped(Exception):
    """The scheduler ended before the call could be sent."""


class ObjectChanged(Exception):
    """The object is not any more the one that the call was meant for."""

    code = 409


class Outcome(Struct, frozen=True):
    """What became of a submitted call."""

    ending: Ending
    why: Why | None = None
    error: Exception | None = None

    @property
    def is_as_wanted(self) -> bool:
        """The API server has what the call would write: it was done, or was so already."""
        return self.ending is Ending.DONE or self.why is Why.NO_EFFECT

    def raise_if_not_as_wanted(self, call: ApiCall) -> None:
        if self.is_as_wanted:
            return
        if self.error is not None:
            raise self.error
        text = f"{call.kind} of {call.object_key}: {self.why}"
        raise CallOverwritten(text) if self.ending is Ending.OVERWRITTEN else CallSkipped(text)


OnOutcome: TypeAlias = Callable[[Outcome], None]
"""Called exactly once, from the event loop. It may submit calls; it must not raise."""


class ObjectReference(Struct, frozen=True):
    """An object that an Event is about, where the object itself is not at hand."""

    api_version: str
    kind: str
    namespace: str
    """"" for an object without a namespace."""
    name: str
    uid: str = ""
    resource_version: str = ""


class Seen(Struct, frozen=True):
    """What looking at the object says about a call whose answer was lost."""

    has_happened: bool | None
    """None if that is unknown."""
    object: Any = None
    """The object as the API server has it, if it was read: others may see it, before the watch brings it."""


class NewObject(Struct, frozen=True):
    """An object that is to be created, encoded."""

    kind: KindInfo
    namespace: str
    body: bytes


class ApiWriter(Protocol):
    """What a call needs of the API server; implemented by `pilotage.kube.client.KubeClient`."""

    async def get(self, kind: KindInfo, namespace: str, name: str) -> bytes: ...
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
    """One write. Subclasses are small, hold data only, and name their kind, lane and relevance.

    Everything but `perform` and `object_key` may be left as it is; the call is then sent as often as it is submitted,
    and fails when its answer is lost. All methods but `perform` and `look` are called while nothing else runs: they
    must be quick, and must not submit calls.
    """

    __slots__ = ()

    kind: ClassVar[str]
    """The name in metrics and reports, such as `pod_binding`; calls of one kind are merged."""
    lane: ClassVar[Lane]
    relevance: ClassVar[int]

    is_repeatable: ClassVar[bool] = False
    """Sending it twice does no harm: it is sent again if an answer was lost and `look` cannot decide."""
    retries_conflicts: ClassVar[bool] = False
    """The call says what it changes and is right for any version of the object: after a 409 it is sent again."""
    settles_doubt: ClassVar[bool] = False
    """If an answer was lost, `look` comes before any other call for the object, more relevant ones too: what the others
    do, and who counts on what, depends on whether this one took effect."""
    joins: ClassVar[bool] = False
    """Calls of this kind for one object do not take each other's place: what they want is put together, and each is
    gets the outcome of its own part. See `still_wants`, `admits` and `failure_of`."""

    @property
    @abstractmethod
    def object_key(self) -> str:
        """What the call writes to: the UID of the object, if it exists. Calls with the same key never overlap."""

    def creation(self) -> NewObject | None:
        """What the call creates, if that is all that it does. A lane may then send several such calls in one piece, one
        answered after the other; `perform` is for those that are sent alone, as all later tries are."""
        return None

    @property
    def goes_first(self) -> bool:
        """Whether it is sent before all calls of its lane that wait: it completes what others have begun."""
        return False

    @abstractmethod
    async def perform(self, writer: ApiWriter) -> str | None:
        """Do it; raise what went wrong. Returns the resource version of the object after it, if it is known."""

    def merged_with(self, newer: ApiCall) -> ApiCall:
        """What to send when `newer`, of the same kind and for the same object, arrives before this one was sent.

        A call that compares with what the API server has must keep what this call knows of it: the newer one was made
        from an object that shows this one's change already.
        """
        return newer

    def still_wants(self, part: ApiCall) -> bool:
        """Whether this call, made by merging, still does what `part`, one of its parts, was submitted for.

        A part that is wanted no more ends as superseded: a newer call took its place.
        """
        return self.joins

    def admits(self, newer: ApiCall) -> bool:
        """While this call is in flight: will what `newer` wants be so when it is done? Then both have one outcome."""
        return False

    def failure_of(self, part: ApiCall) -> Exception | None:
        """The call was done; what kept it from doing what `part`, one of those that it was made of, wanted?"""
        return None

    def rebase(self, obj: Any) -> None:  # noqa: B027  (a hook, not a duty)
        """The API server has this version of the object now. Also called while the call is in flight."""

    def is_pointless(self) -> bool:
        """Whether everything that the call would write is so already."""
        return False

    def applied_to(self, obj: Any) -> Any:
        """The object (never changed itself) as it will be after the call; `obj` itself if it will be the same."""
        return obj

    def follow(self, done: ApiCall) -> None:  # noqa: B027  (a hook, not a duty)
        """`done`, of the same kind and for the same object, was in flight when this call came, and has been done."""

    async def look(self, writer: ApiWriter) -> Seen:
        """An earlier try got no answer, or one that proves nothing: has it happened? Raise what makes it impossible."""
        return Seen(None)


def is_not_found(error: Exception) -> bool:
    """Whether the API server said that there is no such object."""
    return getattr(error, "code", None) == 404


def is_conflict(error: Exception) -> bool:
    """Whether the API server said that the object has changed meanwhile."""
    return getattr(error, "code", None) == 409
