"""The binding call: the pod that was decided for, by its uid."""

from __future__ import annotations

from pilotage.api.calls import Lane, Relevance
from pilotage.calls.binding import PodBinding
from pilotage.testing import pod
from tests.calls.captured_writes import CapturedWrites, Write


async def test_the_binding_names_pod_uid_and_node() -> None:
    writer = CapturedWrites()
    call = PodBinding(pod("p").namespace("team").uid("u").build(), "a")
    await call.perform(writer)
    assert writer.writes == [Write("bind", "Pod", "team/p", {"uid": "u", "node": "a"})]
    assert (call.object_key, call.lane, call.relevance) == ("u", Lane.BIND, Relevance.BINDING)
