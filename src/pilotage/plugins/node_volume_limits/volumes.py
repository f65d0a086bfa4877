"""Which volumes a pod makes a node attach, by driver and handle.

A claim without a volume counts for the driver of its storage class, under a handle of its own. Volumes of in-tree
plugins count for their CSI driver where the node has made the move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pilotage.model import Pod
from pilotage.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from pilotage.model.volumes import Volume
from pilotage.plugins.in_tree_volumes import (
    CannotTranslate,
    InTreePlugin,
    inline_handle,
    plugin_named,
    plugin_of,
    volume_handle,
)
from pilotage.plugins.pod_volumes import class_name_of, not_created_for

Objects = Callable[[str], Mapping[str, Any]]
"""Objects of a kind by key."""
IsMigrated = Callable[[InTreePlugin], bool]
Volumes = dict[str, str]
"""Driver and handle -> driver: volumes that several pods share count once."""

_NO_HANDLE_YET: Final = "unbound"


class ClaimMissing(Exception):
    """A claim of the pod does not exist; the text is kube-scheduler's."""


class CannotCount(Exception):
    """A volume that cannot be understood, of the pod or of one on the node: the attempt fails, as upstream."""


def has_attachable_volumes(pod: Pod) -> bool:
    return bool(pod.spec.volumes) and any(
        volume.persistent_volume_claim is not None or volume.ephemeral is not None or plugin_of(volume) is not None
        for volume in pod.spec.volumes
    )


def attached_by(pod: Pod, objects: Objects, is_migrated: IsMigrated, *, is_new: bool) -> Volumes:
    """The volumes of a pod; a claim that is missing is an error for a new pod, and does not count for any other."""
    found: Volumes = {}
    claims = objects("PersistentVolumeClaim")
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            name = f"{pod.name}-{volume.name}"
        else:
            driver, handle = _of_inline(volume, is_migrated)
            if driver:
                found[f"{driver}/{handle}"] = driver
            continue
        claim: PersistentVolumeClaim | None = claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            if is_new:
                raise ClaimMissing(f'looking up PVC {pod.namespace}/{name}: persistentvolumeclaim "{name}" not found')
            continue
        problem = not_created_for(pod, claim) if volume.ephemeral is not None else None
        if problem is not None:
            raise CannotCount(problem)
        driver, handle = _of_claim(claim, objects, is_migrated)
        if driver and handle:
            found[f"{driver}/{handle}"] = driver
    return found


def plugins_in(pod: Pod, objects: Objects) -> Iterator[InTreePlugin]:
    """The in-tree plugins that the pod's volumes belong to: what it attaches depends on the node's view of them."""
    asked: dict[InTreePlugin, None] = {}

    def note(plugin: InTreePlugin) -> bool:
        asked[plugin] = None
        return False

    attached_by(pod, objects, note, is_new=False)
    yield from asked


def _of_inline(volume: Volume, is_migrated: IsMigrated) -> tuple[str, str]:
    """Driver and handle of a volume that the pod itself describes; ("", "") if no CSI driver attaches it."""
    plugin = plugin_of(volume)
    if plugin is None or not is_migrated(plugin):
        return "", ""
    try:
        return plugin.driver, inline_handle(volume)
    except CannotTranslate as error:
        raise CannotCount(f"converting volume({volume.name}) from inline to csi: {error}") from error


def _of_volume(volume: PersistentVolume, is_migrated: IsMigrated) -> tuple[str, str]:
    """Driver and handle of a PersistentVolume; ("", "") if no CSI driver attaches it, or can."""
    if volume.spec.csi is not None:
        return volume.spec.csi.driver, volume.spec.csi.volume_handle
    plugin = plugin_of(volume.spec)
    if plugin is None or not is_migrated(plugin):
        return "", ""
    try:
        return plugin.driver, volume_handle(volume)
    except CannotTranslate:
        return "", ""


def _of_claim(claim: PersistentVolumeClaim, objects: Objects, is_migrated: IsMigrated) -> tuple[str, str]:
    name = claim.spec.volume_name
    volume: PersistentVolume | None = objects("PersistentVolume").get(name) if name else None
    if volume is not None:
        return _of_volume(volume, is_migrated)
    storage_class: StorageClass | None = objects("StorageClass").get(class_name_of(claim))
    if storage_class is None:
        return "", ""
    handle = f"{_NO_HANDLE_YET}-{claim.key}"
    plugin = plugin_named(storage_class.provisioner)
    if plugin is None:
        return storage_class.provisioner, handle
    return (plugin.driver, handle) if is_migrated(plugin) else ("", "")
