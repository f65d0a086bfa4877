"""The pods that one disruption budget selects, counted as they change.

One change of a pod costs one selector match per budget of its namespace; a budget over ten thousand pods is counted
without looking at them.
"""

from __future__ import annotations

from pilotage.model.selectors import LabelSelector
from pilotage.sandbox.life.facts import PodFacts
from pilotage.sandbox.storage.store import Key


class Cover:
    """What one budget selects: how many pods, how many of them healthy, and by whom they are controlled."""

    def __init__(self, selector: LabelSelector | None) -> None:
        self.selector = selector
        self.healthy = 0
        self._pods: dict[Key, PodFacts] = {}
        self._controlled: dict[str, dict[Key, None]] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, key: Key) -> PodFacts | None:
        return self._pods.get(key)

    def a_pod_of_each_controller(self) -> list[PodFacts]:
        return [self._pods[next(iter(keys))] for keys in self._controlled.values()]

    def note(self, key: Key, pod: PodFacts | None) -> bool:
        """Take in the new state of a pod (None: it is gone); False if the budget has nothing to do with it."""
        if pod is not None and (self.selector is None or not self.selector.matches(pod.labels)):
            pod = None
        old = self._pods.pop(key, None)
        if old is not None:
            self._forget(old)
        if pod is not None:
            self._pods[key] = pod
            self.healthy += is_healthy(pod)
            if pod.controller is not None:
                self._controlled.setdefault(pod.controller.uid, {})[key] = None
        return old is not None or pod is not None

    def check(self) -> None:
        assert self.healthy == sum(is_healthy(pod) for pod in self._pods.values())
        controlled = {pod.key for pod in self._pods.values() if pod.controller is not None}
        assert controlled == {key for keys in self._controlled.values() for key in keys}

    def _forget(self, pod: PodFacts) -> None:
        self.healthy -= is_healthy(pod)
        if pod.controller is not None:
            keys = self._controlled[pod.controller.uid]
            del keys[pod.key]
            if not keys:
                del self._controlled[pod.controller.uid]


def is_healthy(pod: PodFacts) -> bool:
    return pod.is_ready and not pod.is_deleting
