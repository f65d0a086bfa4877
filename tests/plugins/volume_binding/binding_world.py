"""VolumeBinding on a small cluster with storage."""

from __future__ import annotations

from pilotage.plugins import VolumeBinding
from pilotage.plugins.args import VolumeBindingArgs
from pilotage.plugins.volume_binding.catalog import VolumeCatalog
from pilotage.testing import NodeBuilder
from tests.plugins.volume_world import Object, VolumeWorld

NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


class BindingWorld(VolumeWorld):
    def __init__(self, *nodes: NodeBuilder, args: VolumeBindingArgs | None = None) -> None:
        super().__init__(lambda handle: VolumeBinding(handle, args or VolumeBindingArgs()), *nodes)

    @property
    def catalog(self) -> VolumeCatalog:
        return self.cluster.index(VolumeCatalog)


def with_objects(world: BindingWorld, *objects: Object) -> BindingWorld:
    world.put(*objects)
    return world
