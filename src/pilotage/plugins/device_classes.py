"""Extended resources that are served by devices: a DeviceClass may stand behind a resource name.

A class names the resource in its spec, or is asked for under an implicit name made of its own. Where several classes
name the same resource the newest one counts, then the alphabetically first; the others lose their implicit name too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from pilotage.api import ClusterIndex
from pilotage.model import PodSpec, pod_requests
from pilotage.model.names import is_extended_resource
from pilotage.model.resource import DeviceClass

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"


def may_be_backed(name: str) -> bool:
    """Whether a DeviceClass could stand behind this resource name."""
    return is_extended_resource(name) or name.startswith(IMPLICIT_PREFIX)


def extended_requests(spec: PodSpec) -> Mapping[str, int]:
    """The resources that the pod requests and that a DeviceClass could stand behind; worked out once per spec."""
    known: Mapping[str, int] | None = spec.memo.get(extended_requests)
    if known is None:
        requests = pod_requests(spec).items()
        known = {name: amount for name, amount in requests if amount > 0 and may_be_backed(name)}
        spec.memo[extended_requests] = known
    return known


class DeviceClassIndex(ClusterIndex):
    """DeviceClasses by the resource names that they stand behind."""

    kinds = frozenset({"DeviceClass"})

    def __init__(self) -> None:
        self._classes: dict[str, DeviceClass] = {}
        self._by_resource: dict[str, str] | None = None
        self.version: Hashable = 0
        """Changes whenever a class came, went or changed."""

    def class_for(self, resource: str) -> str | None:
        """The name of the class behind a resource; None if there is none."""
        if self._by_resource is None:
            self._by_resource = classes_by_resource(self._classes.values())
        return self._by_resource.get(resource)

    def object_put(self, kind: str, old: Any | None, new: DeviceClass) -> None:
        self._classes[new.name] = new
        self._changed()

    def object_removed(self, kind: str, obj: DeviceClass) -> None:
        self._classes.pop(obj.name, None)
        self._changed()

    def _changed(self) -> None:
        self._by_resource = None
        self.version = object()


def classes_by_resource(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """Resource name -> name of the class that stands behind it."""
    found: dict[str, str] = {}
    # The newest first, equally old ones by name: the first that names a resource has it.
    by_name = sorted(classes, key=lambda cls: cls.name)
    for cls in sorted(by_name, key=lambda cls: cls.metadata.creation_timestamp or "", reverse=True):
        named = cls.spec.extended_resource_name
        if named is not None and named in found:
            continue
        if named is not None:
            found[named] = cls.name
        found[IMPLICIT_PREFIX + cls.name] = cls.name
    return found
