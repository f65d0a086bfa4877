"""Pilotage in programs of your own: a scheduler with your plugins, and the framework without a scheduler."""

from pilotage.library.framework import Answer, Framework
from pilotage.library.scheduler import Scheduler

__all__ = ["Answer", "Framework", "Scheduler"]
