"""An audit of hints: reject pods, let something happen that helps, and see if a hint requeues them.

A pod that the plugin rejected waits until one of the plugin's hints says Queue. So whatever makes it fit must be an
event that the plugin registered for, and a hint of it must say Queue then: otherwise the pod waits for minutes although
there is a place for it. With pure hints one answer may hold for many pods: it must be what each of them would get.
"""

from __future__ import annotations

from collections.abc import Iterator

from pilotage.api import points
from pilotage.api.events import ClusterEvent, Hint
from pilotage.api.plugin import HintFunction, Plugin, Registration
from pilotage.model import Pod
from pilotage.model.pod_stand_in import stand_in
from pilotage.testing.builders import PodBuilder
from pilotage.testing.plugin_check.answers import Asked
from pilotage.testing.plugin_check.world import Happening, RandomCluster

_CHANGES_PER_POD = 8


def missed_chances(world: RandomCluster, pod: PodBuilder) -> Iterator[list[str]]:
    """What happened, and what the hints said of it, for each change after which the pod fits and no hint says so."""
    registrations = world.plugin.registrations()
    if not registrations and type(world.plugin).registrations is Plugin.registrations:
        return  # it hears of every event, which cannot be wrong
    rejected = why_rejected(world, pod.build())
    for _ in range(_CHANGES_PER_POD):
        if not rejected:
            return
        if world.chance(0.25):
            pod, happening = world.pod_happens(pod)
        else:
            happening = world.something_happens()
        still = why_rejected(world, pod.build())
        if not still and happening.events:
            yield from _missed(happening, registrations, rejected, pod)
        rejected = still


def wrongly_shared(world: RandomCluster, pod: PodBuilder) -> Iterator[list[str]]:
    """What a hint said for a class of pods, and what it says of one of them, where that differs."""
    if not world.plugin.pure_hints:
        return
    happening, twins = world.something_happens(), world.twins(pod)
    for registration in world.plugin.registrations():
        if registration.hint is None or not any(registration.event.covers(event) for event in happening.events):
            continue
        shared = _said_for_all(registration.hint, pod.build(), happening)
        for twin in [pod, *twins] if shared is not None else ():
            own = registration.hint(twin.build(), happening.old, happening.new)
            if own is not shared:
                where = f"{_name(registration)} looked at nothing but namespace, spec and labels, and said {shared}"
                way_out = (
                    "hints that keep count of their calls or compare pods by `is` are not pure: pure_hints = False"
                )
                yield [f"then: {happening.what}", where, f"of this pod it says {own}: {twin.json()}", way_out]


def _said_for_all(hint: HintFunction, example: Pod, happening: Happening) -> Hint | None:
    """As the queue asks for a class of pods; None if it would ask for each pod instead."""
    alike = stand_in(example)
    try:
        answer = hint(alike, happening.old, happening.new)
    except AttributeError:
        return None
    return None if alike.noted else answer


def why_rejected(world: RandomCluster, pod: Pod) -> str:
    """Why the plugin alone keeps the pod from running; "" if it does not."""
    plugin = world.plugin
    if isinstance(plugin, points.PreEnqueue) and plugin.pre_enqueue(pod) is not None:
        return "PreEnqueue gates it"
    if not isinstance(plugin, points.PreFilter | points.Filter | points.VectorFilter):
        return ""
    return "" if Asked(plugin, world.cluster.nodes, pod).fits_somewhere() else "it fits on no node"


def _missed(
    happening: Happening, registrations: list[Registration], rejected: str, pod: PodBuilder
) -> Iterator[list[str]]:
    built, said = pod.build(), []
    for event in happening.events:
        for registration in registrations:
            if not registration.event.covers(event):
                continue
            if _says_queue(registration, event, built, happening):
                return
            said.append(f"{_name(registration)} says QueueSkip to {event.label}")
    asked = said or [f"it did not register for {_labels(happening.events)}"]
    yield [f"pod {pod.json()}", f"before: {rejected}", f"then: {happening.what}", "now: it fits", *asked]


def _says_queue(registration: Registration, event: ClusterEvent, pod: Pod, happening: Happening) -> bool:
    old, new = happening.old, happening.new
    named = [narrowing.narrow(old, new).keys for narrowing in registration.narrowings if narrowing.event.covers(event)]
    if named and not any(keys is None or pod.key in keys for keys in named):
        return False
    return registration.hint is None or registration.hint(pod, old, new) is Hint.QUEUE


def _name(registration: Registration) -> str:
    return getattr(registration.hint, "__name__", "its registration")


def _labels(events: tuple[ClusterEvent, ...]) -> str:
    return " or ".join(event.label for event in events)
