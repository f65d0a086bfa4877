"""Which resource names scheduling knows."""

from __future__ import annotations

from pilotage.model.names import is_extended_resource

NATIVE = ("cpu", "memory", "ephemeral-storage")
_SCALAR_PREFIXES = ("hugepages-", "attachable-volumes-")


def is_scalar(name: str) -> bool:
    """Counted in whole units, and only if a pod asks for it."""
    return is_extended_resource(name) or name.startswith(_SCALAR_PREFIXES) or "kubernetes.io/" in name


def is_scheduled(name: str) -> bool:
    """Resources of other names are left to the kubelet."""
    return name in NATIVE or is_scalar(name)
