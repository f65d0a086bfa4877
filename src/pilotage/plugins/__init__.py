"""The default plugins, one per file, under the names that kube-scheduler gives them.

`DEFAULT_PLUGINS` is the list that a profile starts from: order decides which rejection a node is shown with, the number
is the weight of the score.
"""

from pilotage.plugins.default_binder import DefaultBinder
from pilotage.plugins.default_preemption import DefaultPreemption
from pilotage.plugins.dynamic_resources import DynamicResources
from pilotage.plugins.gang_scheduling import GangScheduling
from pilotage.plugins.image_locality import ImageLocality
from pilotage.plugins.inter_pod_affinity import InterPodAffinity
from pilotage.plugins.node_affinity import NodeAffinity
from pilotage.plugins.node_declared_features import NodeDeclaredFeatures
from pilotage.plugins.node_name import NodeName
from pilotage.plugins.node_ports import NodePorts
from pilotage.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from pilotage.plugins.node_resources_fit import NodeResourcesFit
from pilotage.plugins.node_unschedulable import NodeUnschedulable
from pilotage.plugins.node_volume_limits import NodeVolumeLimits
from pilotage.plugins.pod_topology_spread import PodTopologySpread
from pilotage.plugins.priority_sort import PrioritySort
from pilotage.plugins.scheduling_gates import SchedulingGates
from pilotage.plugins.taint_toleration import TaintToleration
from pilotage.plugins.topology_placement import PodGroupPodsCount, TopologyPlacementGenerator
from pilotage.plugins.volume_binding import VolumeBinding
from pilotage.plugins.volume_restrictions import VolumeRestrictions
from pilotage.plugins.volume_zone import VolumeZone

DEFAULT_PLUGINS = (
    (SchedulingGates, 1),
    (PrioritySort, 1),
    (NodeName, 1),
    (NodeUnschedulable, 1),
    (TaintToleration, 3),
    (NodeAffinity, 2),
    (NodePorts, 1),
    (NodeResourcesFit, 1),
    (VolumeRestrictions, 1),
    (NodeVolumeLimits, 1),
    (VolumeBinding, 1),
    (VolumeZone, 1),
    (PodTopologySpread, 2),
    (InterPodAffinity, 2),
    (DynamicResources, 2),
    (DefaultPreemption, 1),
    (NodeResourcesBalancedAllocation, 1),
    (ImageLocality, 1),
    (DefaultBinder, 1),
    (NodeDeclaredFeatures, 1),
    (GangScheduling, 1),
    (TopologyPlacementGenerator, 1),
    (PodGroupPodsCount, 1),
)

NOT_BUILT_YET = ("DeferredPodScheduling",)
"""Plugins of kube-scheduler that configurations may name and that do nothing here yet."""

GATED_PLUGINS = {
    "DynamicResources": "DynamicResourceAllocation",
    "NodeDeclaredFeatures": "NodeDeclaredFeatures",
    "GangScheduling": "GenericWorkload",
    "TopologyPlacementGenerator": "TopologyAwareWorkloadScheduling",
    "PodGroupPodsCount": "TopologyAwareWorkloadScheduling",
}
"""Default plugins that are only on if a feature gate is."""

__all__ = [
    "DEFAULT_PLUGINS",
    "GATED_PLUGINS",
    "NOT_BUILT_YET",
    "DefaultBinder",
    "DefaultPreemption",
    "DynamicResources",
    "GangScheduling",
    "ImageLocality",
    "InterPodAffinity",
    "NodeAffinity",
    "NodeDeclaredFeatures",
    "NodeName",
    "NodePorts",
    "NodeResourcesBalancedAllocation",
    "NodeResourcesFit",
    "NodeUnschedulable",
    "NodeVolumeLimits",
    "PodGroupPodsCount",
    "PodTopologySpread",
    "PrioritySort",
    "SchedulingGates",
    "TaintToleration",
    "TopologyPlacementGenerator",
    "VolumeBinding",
    "VolumeRestrictions",
    "VolumeZone",
]
