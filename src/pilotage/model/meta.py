"""What all objects have in common: metadata, conditions, references, and the base classes of the structs.

`Shape` is the base of everything decoded from JSON: camelCase on the wire, unknown fields ignored, immutable, not
tracked by the garbage collector (decoded objects are trees and cannot form cycles). `ApiObject` is the base of all
kinds except Pod, which is flat to save memory (see `pod`).
"""

from __future__ import annotations

import msgspec

IntOrString = int | str


class Shape(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A value of the Kubernetes API in the JSON shape."""


class OwnerReference(Shape, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Shape, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    generate_name: str = ""

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if one does."""
        return controller_of(self.owner_references)


class ApiObject(Shape, frozen=True):
    """Base of the kinds: metadata with short ways to what everybody asks for."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def key(self) -> str:
        """ "namespace/name", or "name" for a cluster-scoped object."""
        metadata = self.metadata
        return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.annotations

    @property
    def resource_version(self) -> str:
        return self.metadata.resource_version


class Condition(Shape, frozen=True):
    """A condition without its times: equal conditions of many pods are one object."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0


class TimedCondition(Condition, frozen=True):
    last_transition_time: str | None = None


class LocalReference(Shape, frozen=True):
    """A reference to an object whose namespace is given by the context."""

    name: str = ""


class TypedReference(Shape, frozen=True):
    """A reference by group, kind and name."""

    api_group: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""


class ObjectReference(Shape, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class Status(Shape, frozen=True):
    """metav1.Status: how the API server says that something failed."""

    status: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""


def controller_of(owners: tuple[OwnerReference, ...]) -> OwnerReference | None:
    """The owner marked as controller, if there is one."""
    for owner in owners:
        if owner.controller:
            return owner
    return None
