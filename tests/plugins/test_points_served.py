"""A configuration may name a default plugin at every point at which kube-scheduler's plugin of that name serves."""

from __future__ import annotations

import pytest

from pilotage.framework.extension_points import SERVED_BY
from pilotage.plugins import DEFAULT_PLUGINS

SERVED = {
    "SchedulingGates": {"preEnqueue"},
    "PrioritySort": {"queueSort"},
    "NodeName": {"preFilter", "filter"},
    "NodeUnschedulable": {"preFilter", "filter"},
    "TaintToleration": {"preFilter", "filter", "preScore", "score"},
    "NodeAffinity": {"preFilter", "filter", "preScore", "score"},
    "NodePorts": {"preFilter", "filter"},
    "NodeResourcesFit": {"preFilter", "filter", "preScore", "score", "placementScore"},
    "NodeResourcesBalancedAllocation": {"preScore", "score"},
    "ImageLocality": {"score"},
    "VolumeRestrictions": {"preFilter", "filter"},
    "NodeVolumeLimits": {"preFilter", "filter"},
    "VolumeBinding": {"preFilter", "filter", "preScore", "score", "reserve", "preBind"},
    "VolumeZone": {"preFilter", "filter"},
    "PodTopologySpread": {"preFilter", "filter", "preScore", "score"},
    "InterPodAffinity": {"preFilter", "filter", "preScore", "score"},
    "DynamicResources": {
        *("preEnqueue", "preFilter", "filter", "postFilter", "podGroupPostFilter", "score", "reserve", "preBind")
    },
    "DefaultPreemption": {"preEnqueue", "postFilter", "podGroupPostFilter"},
    "DefaultBinder": {"bind"},
    "NodeDeclaredFeatures": {"preFilter", "filter"},
    "GangScheduling": {"preEnqueue", "permit"},
    "TopologyPlacementGenerator": {"placementGenerate"},
    "PodGroupPodsCount": {"placementScore"},
}


@pytest.mark.parametrize("plugin", [cls for cls, _ in DEFAULT_PLUGINS], ids=lambda cls: cls.plugin_name())
def test_serves_the_points_of_its_namesake(plugin: type) -> None:
    served = {point for point, classes in SERVED_BY.items() if issubclass(plugin, classes)}
    assert served == SERVED[plugin.plugin_name()]
