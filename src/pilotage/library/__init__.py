"""Pilotage in programs of your own: a scheduler with your plugins, and the framework without a scheduler."""

from pilotage.library.framework import Answer, Framework
from pilotage.library.scheduler import Scheduler
from pilotage.serve.endpoints import EndpointOptions

__all__ = ["Answer", "EndpointOptions", "Framework", "Scheduler"]
