"""Leader election as one candidate sees it in a Lease: a pure state machine.

    observe(lease)  what the server has          bid()      the lease to write, None while another one holds it
    granted(...)    the server took our bid      is_leading until `renew_deadline` after the last bid that was taken

Clocks of different machines are not compared: a lease has run out when *we* have seen the same content for its whole
duration, by our own monotonic clock. The holder counts from before it asked, and only up to the renew deadline, which
is shorter than the lease: it has stopped before anyone else can think that the lease has run out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from pilotage.clock import rfc3339_micro
from pilotage.model.coordination import LeaseSpec
from pilotage.model.names import event_name

_RELEASED_SECONDS: Final = 1
"""What a released lease says: client-go reads it as "free at once"."""

_LONGEST_INSTANCE: Final = 128

_spec = msgspec.json.Decoder(LeaseSpec)


class ElectionTiming(Struct, frozen=True):
    """The defaults are kube-scheduler's."""

    lease_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0


class LeaseName(Struct, frozen=True):
    """Where the lease is."""

    namespace: str = "kube-system"
    name: str = "kube-scheduler"


class Election:
    """The view of one candidate; `identity` must be no one else's."""

    def __init__(
        self,
        identity: str,
        lease: LeaseName,
        timing: ElectionTiming,
        on_renewal: Callable[[float | None], None] = lambda renewed_at: None,
    ) -> None:
        """`on_renewal` gets every new `renewed_at`, at once."""
        self.identity = identity
        self.lease = lease
        self.timing = timing
        self._document: Mapping[str, Any] | None = None
        self._spec = LeaseSpec()
        self._observed_at = 0.0
        self._renewed_at: float | None = None
        self._on_renewal = on_renewal

    @property
    def holder(self) -> str:
        """The holder of the lease, as last seen; "" if there is none."""
        return self._spec.holder_identity or ""

    @property
    def resource_version(self) -> str:
        """The version of the lease as last seen; "" if there was none."""
        metadata = (self._document or {}).get("metadata") or {}
        return str(metadata.get("resourceVersion", ""))

    @property
    def renewed_at(self) -> float | None:
        """When the bid was made that makes us the leader; None if none does."""
        return self._renewed_at

    def is_leading(self, now: float) -> bool:
        return self._renewed_at is not None and now < self._renewed_at + self.timing.renew_deadline_seconds

    def seconds_to_deadline(self, now: float) -> float:
        """How long we may act without another renewal."""
        return 0.0 if self._renewed_at is None else self._renewed_at + self.timing.renew_deadline_seconds - now

    def observe(self, document: Mapping[str, Any] | None, now: float) -> None:
        """What the server has; None if there is no lease."""
        spec = LeaseSpec() if document is None else _spec.decode(msgspec.json.encode(document.get("spec") or {}))
        if spec != self._spec:
            self._observed_at = now
        self._document, self._spec = document, spec
        if self.holder != self.identity:
            self._set_renewed_at(None)

    def seconds_to_expiry(self, now: float) -> float:
        """How long another one's lease still holds; 0 if no one else has it."""
        if not self.holder or self.holder == self.identity:
            return 0.0
        return max(0.0, self._observed_at + (self._spec.lease_duration_seconds or 0) - now)

    def bid(self, now: float, wall_time: float) -> dict[str, Any] | None:
        """The lease as it would be ours; None while another one holds it."""
        if self.seconds_to_expiry(now) > 0:
            return None
        is_ours = self.holder == self.identity
        written = rfc3339_micro(wall_time)
        transitions = self._spec.lease_transitions or 0
        is_takeover = self._document is not None and not is_ours
        return self._with_spec(
            holderIdentity=self.identity,
            leaseDurationSeconds=max(1, int(self.timing.lease_seconds)),
            acquireTime=self._spec.acquire_time if is_ours and self._spec.acquire_time else written,
            renewTime=written,
            leaseTransitions=transitions + 1 if is_takeover else transitions,
        )

    def granted(self, document: Mapping[str, Any], asked_at: float) -> None:
        """The server took a bid that was made at `asked_at`."""
        self.observe(document, asked_at)
        self._set_renewed_at(asked_at)

    def step_down(self) -> None:
        """Lead no more."""
        self._set_renewed_at(None)

    def given_back(self, wall_time: float) -> dict[str, Any] | None:
        """The lease that lets others in at once; None if it is not ours to give away."""
        if self.holder != self.identity:
            return None
        written = rfc3339_micro(wall_time)
        return self._with_spec(
            holderIdentity="",
            leaseDurationSeconds=_RELEASED_SECONDS,
            acquireTime=written,
            renewTime=written,
            leaseTransitions=self._spec.lease_transitions or 0,
        )

    def event(self, what: str, reporter: str, wall_time: float) -> dict[str, Any]:
        """An Event that says what became of us, as kube-scheduler words it."""
        metadata = (self._document or {}).get("metadata", {})
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "name": event_name(self.lease.name, f"{int(wall_time * 1e9):x}"),
                "namespace": self.lease.namespace,
            },
            "eventTime": rfc3339_micro(wall_time),
            "reportingController": reporter,
            "reportingInstance": self.identity[:_LONGEST_INSTANCE],
            "action": "LeaderElection",
            "reason": "LeaderElection",
            "type": "Normal",
            "note": f"{self.identity} {what}",
            "regarding": {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "namespace": self.lease.namespace,
                "name": self.lease.name,
                "uid": metadata.get("uid", ""),
                "resourceVersion": metadata.get("resourceVersion", ""),
            },
        }

    def _set_renewed_at(self, at: float | None) -> None:
        self._renewed_at = at
        self._on_renewal(at)

    def _with_spec(self, **spec: Any) -> dict[str, Any]:
        """The document as it was seen (with the version that makes a write conditional) and these fields."""
        if self._document is None:
            metadata: Any = {"name": self.lease.name, "namespace": self.lease.namespace}
            return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        return {**self._document, "spec": {**(self._document.get("spec") or {}), **spec}}

    def check(self) -> None:
        """Verify the invariants; for tests."""
        if self._renewed_at is not None:
            assert self._document is not None, "who leads has seen the lease"
