"""What goes wrong in plugins and in putting profiles together."""

from __future__ import annotations


class PluginError(Exception):
    """A plugin raised, or answered what it must not: the pod is retried, the process lives."""

    def __init__(self, plugin: str, point: str, message: str) -> None:
        super().__init__(message)
        self.plugin = plugin
        self.point = point


class ProfileError(ValueError):
    """A profile that cannot be built; the text names profile and plugin and the way out."""
