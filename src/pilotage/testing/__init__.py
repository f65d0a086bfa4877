"""What plugin authors test with: builders of nodes and pods, and a clock whose time moves on command."""

from pilotage.testing.builders import NodeBuilder, PodBuilder, node, pod
from pilotage.testing.virtual_clock import VirtualClock

__all__ = ["NodeBuilder", "PodBuilder", "VirtualClock", "node", "pod"]
