"""What the composition root adds of its own."""

from __future__ import annotations

from pilotage.api import Plugin, QueuedPod, QueueSort
from pilotage.assembly import contained
from pilotage.observe.tally import Tally
from pilotage.testing import pod


class Touchy(Plugin, QueueSort):
    def sort_key(self, queued: QueuedPod) -> tuple[float, ...]:
        if queued.pod.name == "bad":
            raise ValueError("boom")
        return (queued.timestamp,)


def test_queue_sort_that_raises_falls_back_to_priority_and_is_counted() -> None:
    tally = Tally()
    sort_key = contained(Touchy(), tally)
    assert sort_key(QueuedPod(pod("good").build(), 5.0, 0)) == (5.0,)
    assert sort_key(QueuedPod(pod("bad").priority(7).build(), 5.0, 0)) == (-7, 5.0)
    assert tally.plugin_errors["Touchy"] == 1
