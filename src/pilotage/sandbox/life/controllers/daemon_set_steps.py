"""What a DaemonSet does next: which nodes get a pod and which pods go, without any effects.

Every node that fits gets one pod; a pod that has ended is replaced; a node that does not fit any more loses its pods.
A rolling update replaces old pods: without a surge it deletes them, at most `max_unavailable` nodes being without an
available pod; with one it puts new pods beside old ones that go when the new are available.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pilotage.sandbox.life.facts import PodFacts


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a node is to have a pod, and whether one that is there may stay (NoSchedule taints spare it)."""

    should_run: bool
    may_stay: bool


@dataclass(frozen=True, slots=True)
class DaemonView:
    """The nodes and pods of one DaemonSet."""

    fits: Mapping[str, Fit]
    pods: Mapping[str, Sequence[PodFacts]]
    """By node, from the oldest on; only of nodes that have some."""
    is_new: Callable[[PodFacts], bool]
    """Whether the pod is of the current revision."""
    is_available: Callable[[PodFacts], bool]
    is_rolling: bool = True
    max_unavailable: int = 1
    max_surge: int = 0


@dataclass(slots=True)
class DaemonSteps:
    create: list[str] = field(default_factory=list)
    """Names of nodes."""
    delete: list[PodFacts] = field(default_factory=list)


def next_daemon_steps(view: DaemonView) -> DaemonSteps:
    steps = DaemonSteps()
    for node, fit in view.fits.items():
        pods = view.pods.get(node, ())
        if not pods:
            if fit.should_run:
                steps.create.append(node)
        elif fit.may_stay:
            _keep_one(view, steps, pods)
            living = any(pod.is_active for pod in pods)
            if view.max_surge and not living and fit.should_run:
                steps.create.append(node)
        else:
            steps.delete += [pod for pod in pods if not pod.is_deleting]
    if view.is_rolling and not steps.create and not steps.delete:
        (_roll_with_surge if view.max_surge else _roll)(view, steps)
    return steps


def _keep_one(view: DaemonView, steps: DaemonSteps, pods: Sequence[PodFacts]) -> None:
    steps.delete += [pod for pod in pods if pod.is_finished and not pod.is_deleting]
    running = [pod for pod in pods if pod.is_active]
    if not view.max_surge:
        steps.delete += running[1:]
        return
    new = [pod for pod in running if view.is_new(pod)]
    old = [pod for pod in running if not view.is_new(pod)]
    steps.delete += [*new[1:], *old[1:]]
    if new and old and (not old[0].is_ready or view.is_available(new[0])):
        steps.delete.append(old[0])


def _roll(view: DaemonView, steps: DaemonSteps) -> None:
    unavailable = 0
    candidates: list[PodFacts] = []
    for pods in view.pods.values():
        living = [pod for pod in pods if not pod.is_deleting]
        if len(living) != 1:
            unavailable += 1  # its pod is about to be made
        elif view.is_new(living[0]):
            unavailable += not view.is_available(living[0])
        elif not view.is_available(living[0]):
            steps.delete.append(living[0])
            unavailable += 1
        else:
            candidates.append(living[0])
    steps.delete += candidates[: max(view.max_unavailable - unavailable, 0)]


def _roll_with_surge(view: DaemonView, steps: DaemonSteps) -> None:
    surging = 0
    candidates: list[str] = []
    for node, pods in view.pods.items():
        running = [pod for pod in pods if pod.is_active]
        new = [pod for pod in running if view.is_new(pod)]
        old = [pod for pod in running if not view.is_new(pod)]
        if new and old:
            surging += 1
        elif old and node in view.fits and view.fits[node].should_run:
            if view.is_available(old[0]):
                candidates.append(node)
            else:
                steps.create.append(node)
    steps.create += candidates[: max(view.max_surge - surging, 0)]
