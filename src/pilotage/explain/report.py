"""What `explain` knows about a pod or a pod group, as data. Text, YAML and JSON are renderings of this."""

from __future__ import annotations

import msgspec

from pilotage.explain.expected_start import ExpectedStart


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


class Advice(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A single change after which the pod, or the group, fits; it was tried out."""

    code: str
    """What kind of change: the fields below that say more depend on it."""
    change: str
    """The same as a sentence."""
    size: float
    """Smaller changes come first."""
    node: str = ""
    """Where the pod fits then, or the node to change; "" if that is a new node."""
    like: str = ""
    """The node, or the pod, of whose kind there should be more."""
    count: int = 0
    """How many of them."""
    resource: str = ""
    asked: float | None = None
    enough: float | None = None
    taint: str = ""
    labels: dict[str, str] = {}
    above_priority: int | None = None
    min_count: int = 0
    victims: tuple[str, ...] = ()
    """Examples of pods that would be preempted then."""


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


class Victims(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What preemption would do."""

    code: str
    """`WouldEvict`, or why nobody would be evicted: `NeverPreempts`, `NothingHelps`."""
    count: int = 0
    examples: tuple[str, ...] = ()
    node: str = ""
    """Of a single pod: where."""
    budgets_violated: int = 0


class QueuePlace(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What the queue of a running scheduler knows of a pod, or of a group."""

    place: str
    waiting_seconds: float
    attempts: int
    backoff_seconds: float = 0.0
    is_error: bool = False
    """Its last attempt was an error: it waits for time only."""
    last_error: str = ""
    """That error, of a pod."""
    waits_for_time: bool = False
    """A group that was tried: no event wakes it before its time."""
    rejectors: tuple[str, ...] = ()
    gated_by: str = ""
    held_by: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    """Extenders whose answer is waited for."""


class JobQuota(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What workload queueing says of the job to which the pods belong."""

    workload: str
    state: str
    """`pending`, `reserved`, `admitted` ..."""
    cluster_queue: str = ""
    reason: str = ""
    message: str = ""
    position: int | None = None

    @property
    def is_admitted(self) -> bool:
        return self.state in ("admitted", "finished")


class Gate(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Why members are held back before they are tried."""

    plugin: str
    code: str
    message: str
    pods: int
    examples: tuple[str, ...]


class MemberLack(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Members without a place, when all that fit have theirs, and why."""

    pods: int
    examples: tuple[str, ...]
    rejections: tuple[RejectionGroup, ...] = ()
    nearest: tuple[NearNode, ...] = ()
    message: str = ""
    """As kube-scheduler says it."""


class Domain(msgspec.Struct, frozen=True, rename="camel"):
    """One value of the label in which a group must stay."""

    name: str
    nodes: int
    fits: int
    """How many of the members that wait have a place there."""


class MemberPlace(msgspec.Struct, frozen=True, rename="camel"):
    """Where a member would go."""

    pod: str
    node: str


class GroupReport(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Everything about one pod group."""

    pod_group: str
    state: str
    """`Missing`, `NoPods`, `Scheduled`, `Gated`, `Invalid`, `Error`, `Fits`, `Unschedulable`."""
    answer: str
    fits: bool
    exist: int
    """Members that count: those that run and those that wait."""
    run: int
    """Members that have a node."""
    wait: int
    min_count: int = 0
    """Members that must have a place together."""
    policy: str = ""
    """`gang` or `basic`."""
    priority: int = 0
    scheduler: str = ""
    nodes: int = 0
    similar: str = ""
    """Of a group that does not exist: one with nearly the same name."""
    fit_now: int | None = None
    """Members that wait and would have a place now, in the nearest domain if there are many; None: not tried."""
    fits_if_complete: bool | None = None
    """Of a gang that waits for pods: would it fit if the missing ones were there, equal to those that are?"""
    gates: tuple[Gate, ...] = ()
    error: str = ""
    places: tuple[MemberPlace, ...] = ()
    kept: tuple[MemberPlace, ...] = ()
    """Nodes where room is kept for members: they are nominated to them."""
    topology_key: str = ""
    domain: str = ""
    """The one in which it fits, or that is nearest."""
    domains: tuple[Domain, ...] = ()
    """The nearest first."""
    lacks: tuple[MemberLack, ...] = ()
    would_fit_if: tuple[Advice, ...] = ()
    preemption: Victims | None = None
    queue: QueuePlace | None = None
    condition: str = ""
    """The message of its condition."""
    quota: JobQuota | None = None
    expected_start: ExpectedStart | None = None
    """Of one that waits: when the last of its members has a node."""
    skipped: tuple[str, ...] = ()
    """Objects that could not be taken in and may matter to it."""


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
    preemption: Victims | None = None
    retried_after: tuple[RetryEvent, ...] = ()
    queue: QueuePlace | None = None
    held_by: tuple[str, ...] = ()
    """Permit plugins that hold the pod on its node."""
    held_on: str = ""
    rejected_by_extenders: tuple[RejectionGroup, ...] = ()
    """By extenders, in the last attempt; `plugin` is the address of the extender."""
    others: OthersWaiting | None = None
    pod_group: GroupReport | None = None
    """The group of which the pod is a member."""
    quota: JobQuota | None = None
    """Of a pod of a job that is queued."""
    expected_start: ExpectedStart | None = None
    """Of a pod that waits."""
    unserved: tuple[str, ...] = ()
    """What the pod asks for and no plugin serves."""
    skipped: tuple[str, ...] = ()
    """Objects that could not be taken in and may matter to the pod."""
