"""DefaultPreemption: a pod that fits nowhere may take the place of pods of lower priority."""

from pilotage.plugins.default_preemption.plugin import DefaultPreemption

__all__ = ["DefaultPreemption"]
