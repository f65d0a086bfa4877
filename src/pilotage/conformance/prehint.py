"""Our answer to a prehint case: which pods can a change concern at all?"""

from __future__ import annotations

from typing import Any

import msgspec

from pilotage.api.plugin import Affected, Registration
from pilotage.assembly import SchedulerOptions, build_profiles
from pilotage.clock import SystemClock
from pilotage.conformance.cases import Case, Object
from pilotage.conformance.hint import event_of
from pilotage.conformance.world import cluster_of
from pilotage.cycle.handle import FrameworkHandle
from pilotage.framework.profile import name_of
from pilotage.model import kind_of
from pilotage.rng import seeded

Answer = dict[str, Any]


def answer_prehint(case: Case, options: SchedulerOptions) -> Answer:
    """What the plugin's narrowing methods for this event say together."""
    handle = FrameworkHandle(cluster_of(case), SystemClock(), seeded(0))
    profile = next(iter(build_profiles(options, handle).values()))
    plugin = next(plugin for plugin in profile.plugins if name_of(plugin) == case.plugin)
    old, new = _decoded(case, case.old_object), _decoded(case, case.new_object)
    found = [affected for registration in plugin.registrations() for affected in _asked(registration, case, old, new)]
    if any(affected.keys is None for affected in found):
        return {"allPods": True, "pods": []}
    return {"allPods": False, "pods": sorted({key for affected in found for key in affected.keys or ()})}


def _asked(registration: Registration, case: Case, old: Any, new: Any) -> list[Affected]:
    event = event_of(case)
    if not registration.event.covers(event):
        return []
    asked = [narrowing.narrow(old, new) for narrowing in registration.narrowings if narrowing.event.covers(event)]
    return asked or [Affected.all()]


def _decoded(case: Case, raw: Object | None) -> Any:
    kind = kind_of(case.event["resource"])
    return None if raw is None or kind is None else kind.decode(msgspec.json.encode(raw))
