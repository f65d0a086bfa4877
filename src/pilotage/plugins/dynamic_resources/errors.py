"""Why an allocation could not even be tried, or a selector not be evaluated."""

from __future__ import annotations


class AllocationError(Exception):
    """A claim that cannot be dealt with: the whole attempt ends, and the pod is retried after a while."""


class NodeAllocationError(Exception):
    """What is wrong concerns one node only, which is then rejected."""


class SelectorError(Exception):
    """A selector that fails on a device."""


class SelectorCompileError(SelectorError):
    """A selector that fails on every device, because it is no expression."""
