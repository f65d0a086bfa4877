"""`check_plugin`: does a plugin meet the requirements that the framework builds on? Tried out on random clusters."""

from pilotage.testing.plugin_check.check import CHECKS, DEFAULT_WORLDS, PluginCheckFailed, check_plugin

__all__ = ["CHECKS", "DEFAULT_WORLDS", "PluginCheckFailed", "check_plugin"]
