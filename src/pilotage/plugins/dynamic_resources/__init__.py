"""DynamicResources: devices for pods, claimed by ResourceClaims and allocated from ResourceSlices."""

from pilotage.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
