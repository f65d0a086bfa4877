"""What plugin authors test with: builders, a clock whose time moves on command, a handle that records, check_plugin."""

from pilotage.testing.builders import NodeBuilder, PodBuilder, node, pod
from pilotage.testing.fake_handle import FakeHandle
from pilotage.testing.plugin_check import PluginCheckFailed, check_plugin
from pilotage.testing.views import node_view
from pilotage.testing.virtual_clock import VirtualClock

__all__ = [
    "FakeHandle",
    "NodeBuilder",
    "PluginCheckFailed",
    "PodBuilder",
    "VirtualClock",
    "check_plugin",
    "node",
    "node_view",
    "pod",
]
