"""Our answers to hint and prehint cases: is a pod worth another attempt after a change, and whom can it concern?"""

from __future__ import annotations

from typing import Any

import msgspec

from pilotage.api.events import Action, ClusterEvent, Hint, Resource
from pilotage.api.plugin import Affected, Plugin, Registration
from pilotage.assembly import SchedulerOptions, build_profiles
from pilotage.clock import SystemClock
from pilotage.cluster.changes import node_events, pod_events
from pilotage.conformance.cases import ConformanceCase, Object
from pilotage.conformance.world import LoadedCase, cluster_of
from pilotage.cycle.handle import FrameworkHandle
from pilotage.framework.profile import name_of
from pilotage.model import Node, Pod, kind_of
from pilotage.rng import seeded

Answer = dict[str, Any]

_BY_KIND = {resource.value.rpartition("/")[2]: resource for resource in Resource}


def answer_hint(world: LoadedCase, case: ConformanceCase) -> Answer:
    """The events of the change, whether the plugin listens to any of them, and what its hints say."""
    old, new = _decoded(case.event["resource"], case.old_object), _decoded(case.event["resource"], case.new_object)
    events = _events(case, old, new, world.pod)
    plugin = next(p for p in world.engine.profile.plugins if name_of(p) == case.plugin)
    listening = [(event, found) for event in events for found in _covering(plugin, event)]
    answers = [_ask(registration, world.pod, old, new) for _, registration in listening]
    says_queue = any(answer is not Hint.SKIP for answer in answers)
    return {
        "events": sorted(f"{event.resource}/{event.action_name}" for event in events),
        "registered": bool(listening),
        "hint": Hint.QUEUE.value if says_queue else Hint.SKIP.value,
        "error": any(answer is None for answer in answers),
    }


def _decoded(kind_name: str, raw: Object | None) -> Any:
    kind = kind_of(kind_name)
    if raw is None or kind is None:
        return None
    return kind.decode(msgspec.json.encode(raw))


def _events(case: ConformanceCase, old: Any, new: Any, waiting: Pod) -> list[ClusterEvent]:
    if isinstance(new, Node) and isinstance(old, Node):
        return list(node_events(old, new))
    if isinstance(new or old, Pod):
        return _pod_events(old, new, waiting)
    return [event_of(case)]


def event_of(case: ConformanceCase) -> ClusterEvent:
    """The event of a case about an object that is neither node nor pod."""
    action = {"Add": Action.ADD, "Update": Action.UPDATE, "Delete": Action.DELETE}[case.event["action"]]
    return ClusterEvent(_BY_KIND[case.event["resource"]], action)


def _pod_events(old: Pod | None, new: Pod | None, waiting: Pod) -> list[ClusterEvent]:
    subject = new or old
    assert subject is not None
    if subject.node_name or (new is None and subject.status.nominated_node_name):
        resource = Resource.ASSIGNED_POD
    else:
        resource = Resource.TARGET_POD if subject.uid == waiting.uid else Resource.UNSCHEDULED_POD
    if old is not None and new is not None:
        return pod_events(old, new, resource)
    return [ClusterEvent(resource, Action.DELETE if new is None else Action.ADD)]


def _covering(plugin: Plugin, event: ClusterEvent) -> list[Registration]:
    return [registration for registration in plugin.registrations() if registration.event.covers(event)]


def _ask(registration: Registration, pod: Pod, old: Any, new: Any) -> Hint | None:
    """None stands for a hint that failed."""
    if registration.hint is None:
        return Hint.QUEUE
    try:
        return registration.hint(pod, old, new)
    except Exception:
        return None


def answer_prehint(case: ConformanceCase, options: SchedulerOptions) -> Answer:
    """What the plugin's narrowing methods for this event say together."""
    handle = FrameworkHandle(cluster_of(case), SystemClock(), seeded(0))
    profile = next(iter(build_profiles(options, handle).values()))
    plugin = next(plugin for plugin in profile.plugins if name_of(plugin) == case.plugin)
    resource = case.event["resource"]
    old, new = _decoded(resource, case.old_object), _decoded(resource, case.new_object)
    found = [affected for registration in plugin.registrations() for affected in _asked(registration, case, old, new)]
    if any(affected.keys is None for affected in found):
        return {"allPods": True, "pods": []}
    return {"allPods": False, "pods": sorted({key for affected in found for key in affected.keys or ()})}


def _asked(registration: Registration, case: ConformanceCase, old: Any, new: Any) -> list[Affected]:
    event = event_of(case)
    if not registration.event.covers(event):
        return []
    asked = [narrowing.narrow(old, new) for narrowing in registration.narrowings if narrowing.event.covers(event)]
    return asked or [Affected.all()]
