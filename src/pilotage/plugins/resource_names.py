"""Which resource names scheduling knows, and which of them are extended resources."""

from __future__ import annotations

NATIVE = ("cpu", "memory", "ephemeral-storage")
_SCALAR_PREFIXES = ("hugepages-", "attachable-volumes-")


def is_extended(name: str) -> bool:
    """A resource that somebody else than Kubernetes defined, such as `example.com/gpu`."""
    prefix, slash, _ = name.partition("/")
    return bool(slash) and not prefix.endswith("kubernetes.io") and not name.startswith("requests.")


def is_scalar(name: str) -> bool:
    """Counted in whole units, and only if a pod asks for it."""
    return is_extended(name) or name.startswith(_SCALAR_PREFIXES) or "kubernetes.io/" in name


def is_scheduled(name: str) -> bool:
    """Resources of other names are left to the kubelet."""
    return name in NATIVE or is_scalar(name)
