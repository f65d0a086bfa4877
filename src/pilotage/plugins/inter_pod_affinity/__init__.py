"""InterPodAffinity: pods that must, must not, or would rather (not) run close to certain other pods."""

from pilotage.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
