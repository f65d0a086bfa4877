"""What `explain` knows about a pod, as data. Text, YAML and JSON are renderings of this."""

from __future__ import annotations

from typing import Any

import msgspec


class RejectionGroup(msgspec.Struct, frozen=True, rename="camel"):
    """Nodes that one plugin rejects for one reason."""

    plugin: str
    code: str
    message: str
    nodes: int
    examples: tuple[str, ...]
    preemption_may_help: bool


class LackDetail(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is behind a lack: a rule, with some of the objects (such as devices) that it rejected and their number."""

    code: str
    message: str
    objects: tuple[str, ...] = ()
    count: int = 0


class Lack(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One thing that a node lacks for the pod."""

    plugin: str
    message: str
    need: float | None = None
    have: float | None = None
    detail: str = ""
    behind: tuple[LackDetail, ...] = ()


class NearNode(msgspec.Struct, frozen=True, rename="camel"):
    """A node that is close to fitting, with everything that it lacks."""

    node: str
    lacks: tuple[Lack, ...]


class ScoredNode(msgspec.Struct, frozen=True, rename="camel"):
    """A feasible node with its score, plugin by plugin (weighted)."""

    node: str
    total: int
    plugins: dict[str, int]
    place: int
    """1 is the best."""


class Advice(msgspec.Struct, frozen=True, rename="camel"):
    """A single change after which the pod fits; it was tried out."""

    change: str
    node: str
    """Where it fits then; "" if that is a new node."""
    size: float
    """Smaller changes come first."""


class RetryEvent(msgspec.Struct, frozen=True, rename="camel"):
    """An event after which the pod is tried again (if the plugin's hint says so)."""

    plugin: str
    resource: str
    actions: tuple[str, ...]


class OthersWaiting(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Other pods that wait for the same reason."""

    pods: int
    of_workload: int = 0
    """How many of them are pods of the same workload."""
    workload: str = ""
    plugins: tuple[str, ...] = ()
    """The plugins that they wait for, as far as a scheduler could be asked."""


class Report(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Everything about one pod."""

    pod: str
    answer: str
    fits: bool
    scheduler: str
    nodes: int
    message: str = ""
    assigned_to: str = ""
    gated_by: tuple[str, ...] = ()
    error: str = ""
    rejections: tuple[RejectionGroup, ...] = ()
    nearest: tuple[NearNode, ...] = ()
    """Of a pod that fits: only the node that was asked about, if it does not fit there."""
    best: tuple[ScoredNode, ...] = ()
    """The best nodes, and the node that was asked about if the pod fits there."""
    feasible: int = 0
    tied: int = 0
    would_fit_if: tuple[Advice, ...] = ()
    preemption: str = ""
    retried_after: tuple[RetryEvent, ...] = ()
    queue: dict[str, Any] = {}
    held_by: tuple[str, ...] = ()
    """Permit plugins that hold the pod on its node."""
    refused: tuple[RejectionGroup, ...] = ()
    """By extenders, in the last attempt; `plugin` is the address of the extender."""
    others: OthersWaiting | None = None
    unserved: tuple[str, ...] = ()
    """What the pod asks for and no plugin serves."""
    skipped: tuple[str, ...] = ()
    """Objects that could not be taken in and may matter to the pod."""
