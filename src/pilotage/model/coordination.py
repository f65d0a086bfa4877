"""Objects of the control plane itself: the lease that elects a leader, and events that people read."""

from __future__ import annotations

from pilotage.model.meta import ApiObject, ObjectReference, Shape


class LeaseSpec(Shape, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(ApiObject, frozen=True):
    spec: LeaseSpec = LeaseSpec()


class EventSeries(Shape, frozen=True):
    count: int = 0
    last_observed_time: str | None = None


class Event(ApiObject, frozen=True):
    """events.k8s.io/v1"""

    event_time: str | None = None
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    regarding: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    note: str = ""
    type: str = ""
