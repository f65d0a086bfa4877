"""Pilotage in programs of your own: a scheduler with your plugins, and the framework without a scheduler."""

from pilotage.config.problems import ConfigError
from pilotage.library.framework import Answer, Framework
from pilotage.library.scheduler import Scheduler
from pilotage.serve.endpoints import EndpointOptions
from pilotage.serve.service import LeadershipLost

__all__ = ["Answer", "ConfigError", "EndpointOptions", "Framework", "LeadershipLost", "Scheduler"]
