"""NodeVolumeLimits: how many volumes of a CSI driver a node can attach."""

from pilotage.plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
