"""PreBind: write what was reserved, then wait until the volume controller has bound every claim.

The controller answers by binding a claim, or by taking the selected node (or the claim) off again when it cannot be
done; then the pod is scheduled anew.
"""

from __future__ import annotations

import asyncio
from asyncio import Event
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from msgspec import Struct

from pilotage.api import ClusterIndex, Handle
from pilotage.calls.volumes import ProvisioningOrder, VolumeReservation
from pilotage.model import Node, Pod
from pilotage.model.storage import PersistentVolume, PersistentVolumeClaim
from pilotage.plugins.volume_binding.claims import VolumeError
from pilotage.plugins.volume_binding.finding import SELECTED_NODE, volume_reaches
from pilotage.plugins.volume_binding.matching import is_bound
from pilotage.plugins.volume_binding.reservation import AssumedVolumes
from pilotage.tasks import sole_error


class VolumeChanges(ClusterIndex):
    kinds = frozenset({"PersistentVolume", "PersistentVolumeClaim"})
    keeps_more = True

    def __init__(self) -> None:
        self._waiting: dict[str, dict[Event, None]] = {}
        """Claim ("namespace/name") -> the events of those who wait for it."""

    @contextmanager
    def of(self, claim_keys: Iterable[str]) -> Iterator[Event]:
        """An event that is set when these claims change, or volumes that name them; changes of status do not count."""
        changed, keys = Event(), list(claim_keys)
        for key in keys:
            self._waiting.setdefault(key, {})[changed] = None
        try:
            yield changed
        finally:
            for key in keys:
                events = self._waiting[key]
                events.pop(changed, None)
                if not events:
                    del self._waiting[key]

    def object_put(self, kind: str, old: Any | None, new: Any) -> None:
        # Whether a claim is bound stands in spec and annotations; half of the changes are of the status only.
        if old is None or old.spec != new.spec or old.annotations != new.annotations:
            self._notify(kind, new)

    def object_removed(self, kind: str, obj: Any) -> None:
        self._notify(kind, obj)

    def _notify(self, kind: str, obj: Any) -> None:
        if not self._waiting:
            return
        key = obj.key
        if kind == "PersistentVolume":
            reference = obj.spec.claim_ref
            key = "" if reference is None else f"{reference.namespace}/{reference.name}"
        for changed in self._waiting.get(key, ()):
            changed.set()


_LOOK_EVERY_SECONDS: Final = 1.0


class _Version(Struct, frozen=True):
    """What we wrote, so that older news of the object differ from an answer to it."""

    before: str
    written: str
    """ "" if another call wrote for us."""

    def is_older(self, known: str) -> bool:
        """Whether this version of the object is from before our write."""
        if not self.written:
            return known == self.before
        if known.isdigit() and self.written.isdigit():
            return int(known) < int(self.written)
        return known == self.before


class VolumeBinder:
    """The writes and the wait of one pod."""

    def __init__(self, handle: Handle, pod: Pod, node_name: str, reservation: AssumedVolumes) -> None:
        self._handle = handle
        self._pod = pod
        self._node_name = node_name
        self._reservation = reservation
        self._versions: dict[str, _Version] = {}
        """By UID of the object that was written."""

    async def bind(self, timeout_seconds: float) -> None:
        """Returns when every claim is bound; VolumeError if it cannot be, or not in time."""
        await self._write()
        clock, reservation = self._handle.clock, self._reservation
        deadline = clock.monotonic() + timeout_seconds
        claims = [b.claim.key for b in reservation.bindings] + [o.claim.key for o in reservation.orders]
        with self._handle.index(VolumeChanges).of(claims) as changed, sole_error():
            async with asyncio.TaskGroup() as tasks:
                timer = tasks.create_task(self._set_at_times(changed, deadline), name="wait for volumes")
                try:
                    await self._bound(changed, deadline, timeout_seconds)
                finally:
                    timer.cancel()

    async def _bound(self, changed: asyncio.Event, deadline: float, timeout_seconds: float) -> None:
        while not self._is_done():
            if self._handle.clock.monotonic() >= deadline:
                raise VolumeError(f"binding volumes: not bound after {timeout_seconds:g} seconds")
            await changed.wait()
            changed.clear()

    async def _set_at_times(self, changed: asyncio.Event, deadline: float) -> None:
        """Not all that matters stands in claims and volumes: nodes and pods may go, and time passes."""
        clock = self._handle.clock
        while True:
            await clock.sleep(max(0.0, min(_LOOK_EVERY_SECONDS, deadline - clock.monotonic())))
            changed.set()

    async def _write(self) -> None:
        for binding in self._reservation.bindings:
            if binding.is_new:
                volume = binding.volume
                reservation = VolumeReservation(volume)
                await self._handle.perform(reservation)
                self._versions[volume.uid] = _Version(volume.resource_version, reservation.written_version)
        for order in self._reservation.orders:
            if order.is_new:
                claim = order.claim
                call = ProvisioningOrder(claim, self._node_name)
                await self._handle.perform(call)
                self._versions[claim.uid] = _Version(claim.resource_version, call.written_version)

    def _is_done(self) -> bool:
        """Whether all claims are bound. VolumeError if one of them cannot be any more."""
        node: Node | None = self._handle.objects("Node").get(self._node_name)
        if node is None:
            raise VolumeError(f'binding volumes: failed to get node "{self._node_name}": node not found')
        known: Pod | None = self._handle.objects("Pod").get(self._pod.key)
        if known is None or known.uid != self._pod.uid:
            raise VolumeError(f'binding volumes: pod does not exist any more: pod "{self._pod.name}" not found')
        # No claim is looked at before those ahead of it are done; a failure further on is seen later.
        return all(
            self._is_reserved(node, binding.volume.name, binding.claim) for binding in self._reservation.bindings
        ) and all(self._is_provisioned(node, order.claim) for order in self._reservation.orders)

    def _is_reserved(self, node: Node, volume_name: str, claim: PersistentVolumeClaim) -> bool:
        volume: PersistentVolume | None = self._handle.objects("PersistentVolume").get(volume_name)
        current = self._claim(claim)
        if volume is None:
            raise VolumeError(f'binding volumes: failed to check binding: persistentvolume "{volume_name}" not found')
        if self._is_old(volume):
            return False
        self._check_reach(volume, node)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise VolumeError(f'binding volumes: ClaimRef got reset for pv "{volume_name}"')
        return is_bound(current)

    def _is_provisioned(self, node: Node, claim: PersistentVolumeClaim) -> bool:
        current = self._claim(claim)
        if self._is_old(current):
            return False
        if not current.annotations:
            raise VolumeError(f'binding volumes: selectedNode annotation reset for PVC "{claim.name}"')
        if current.annotations.get(SELECTED_NODE, "") != self._node_name:
            raise VolumeError(f'binding volumes: provisioning failed for PVC "{claim.name}"')
        if current.spec.volume_name:
            volume: PersistentVolume | None = self._handle.objects("PersistentVolume").get(current.spec.volume_name)
            if volume is None:
                # News of the claim may overtake those of its volume.
                return False
            self._check_reach(volume, node)
        return is_bound(current)

    def _claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        current: PersistentVolumeClaim | None = self._handle.objects("PersistentVolumeClaim").get(claim.key)
        if current is None:
            text = f'binding volumes: failed to check provisioning pvc: persistentvolumeclaim "{claim.name}" not found'
            raise VolumeError(text)
        return current

    def _is_old(self, obj: PersistentVolume | PersistentVolumeClaim) -> bool:
        version = self._versions.get(obj.uid)
        return version is not None and version.is_older(obj.resource_version)

    def _check_reach(self, volume: PersistentVolume, node: Node) -> None:
        try:
            reaches = volume_reaches(self._handle, volume, node.name, node.labels)
        except VolumeError as error:
            raise VolumeError(f"binding volumes: failed to translate pv to csi: {error}") from error
        if not reaches:
            text = f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}": no matching NodeSelectorTerms'
            raise VolumeError(f"binding volumes: {text}")
