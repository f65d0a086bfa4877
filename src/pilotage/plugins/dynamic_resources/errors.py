"""Why an allocation could not even be tried."""

from __future__ import annotations


class AllocationError(Exception):
    """A claim that cannot be dealt with: the whole attempt ends, and the pod is retried after a while."""


class NodeAllocationError(Exception):
    """What is wrong concerns one node only, which is then rejected."""
