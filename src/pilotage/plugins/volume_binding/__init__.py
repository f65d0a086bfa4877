"""VolumeBinding: a pod goes where its volumes are or can be made, and its claims are bound before it is."""

from pilotage.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
