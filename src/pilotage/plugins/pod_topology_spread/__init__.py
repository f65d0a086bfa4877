"""PodTopologySpread: keep the pods of a workload evenly spread over zones, hosts or any other topology domain."""

from pilotage.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
