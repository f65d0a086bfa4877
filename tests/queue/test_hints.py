"""Who registered for what, and what a plugin that registered nothing gets."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pilotage.api import (
    Action,
    ClusterEvent,
    CycleState,
    Filter,
    Hint,
    NodeView,
    Plugin,
    Rejection,
    Resource,
    Score,
    on_event,
)
from pilotage.api.events import wildcard
from pilotage.model import Pod
from pilotage.observe.metrics import Metrics
from pilotage.queue.hints import HintTable
from pilotage.testing import pod
from tests.queue.waiting_room import NODE_ADDED, NODE_LABEL, POD_GONE, always, judge, never

EVERY_UPDATE = ClusterEvent(Resource.NODE, Action.UPDATE)


def table(*plugins: Plugin) -> HintTable:
    return HintTable({"default-scheduler": plugins}, Metrics())


def judges(hints: HintTable, event: ClusterEvent) -> list[str]:
    return list(hints.judges("default-scheduler", event))


def event(resource: Resource, action: Action) -> ClusterEvent:
    return ClusterEvent(resource, action)


@pytest.mark.parametrize(
    ("registered", "incoming", "covers"),
    [
        (event(Resource.NODE, Action.ADD), NODE_ADDED, True),
        (event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL), NODE_LABEL, True),
        (event(Resource.NODE, Action.ADD), NODE_LABEL, False),
        (event(Resource.NODE, Action.ALL), NODE_LABEL, True),
        (event(Resource.NODE, Action.UPDATE), EVERY_UPDATE, True),
        (event(Resource.NODE, Action.ALL), EVERY_UPDATE, True),
        (event(Resource.NODE, Action.UPDATE_NODE_LABEL), EVERY_UPDATE, False),
        (event(Resource.POD, Action.DELETE), POD_GONE, True),
        (event(Resource.POD, Action.DELETE), event(Resource.TARGET_POD, Action.DELETE), True),
        (event(Resource.ASSIGNED_POD, Action.DELETE), event(Resource.POD, Action.DELETE), False),
        (event(Resource.UNSCHEDULED_POD, Action.DELETE), POD_GONE, False),
        (event(Resource.ANY, Action.ADD), NODE_ADDED, True),
        (event(Resource.ANY, Action.ADD), NODE_LABEL, False),
        (event(Resource.ANY, Action.ALL), POD_GONE, True),
    ],
)
def test_which_registration_covers_which_event(registered: ClusterEvent, incoming: ClusterEvent, covers: bool) -> None:
    assert registered.covers(incoming) is covers
    assert judges(table(judge("P", always, registered)), incoming) == (["P"] if covers else [])


def test_events_are_named_as_in_metrics() -> None:
    assert NODE_LABEL.label == "NodeUpdateNodeLabel"
    assert event(Resource.RESOURCE_CLAIM, Action.UPDATE).label == "resource.k8s.io/ResourceClaimUpdate"
    assert wildcard("UnschedulableTimeout").label == "UnschedulableTimeout"


def test_several_hints_of_one_plugin_are_all_asked() -> None:
    class Two(Plugin):
        @on_event(Resource.NODE, Action.ADD)
        def first(self, pod: Pod, old: Any, new: Any) -> Hint:
            return Hint.SKIP

        @on_event(Resource.NODE, Action.ADD | Action.DELETE)
        @on_event(Resource.ASSIGNED_POD, Action.DELETE)
        def second(self, pod: Pod, old: Any, new: Any) -> Hint:
            return Hint.QUEUE

    hints = table(Two())
    found = hints.judges("default-scheduler", NODE_ADDED)
    assert len(found["Two"]) == 2
    assert hints.ask("Two", found["Two"], pod("p").build(), None, None) is Hint.QUEUE
    assert judges(hints, POD_GONE) == ["Two"]


def test_an_event_alone_is_enough_where_a_plugin_says_so() -> None:
    class Simple(Plugin):
        always_queue_on = (NODE_ADDED,)

    hints = table(Simple())
    (answers,) = hints.judges("default-scheduler", NODE_ADDED).values()
    assert hints.ask("Simple", answers, pod("p").build(), None, None) is Hint.QUEUE


def test_an_unknown_profile_has_no_judges() -> None:
    assert table(judge("P")).judges("nobody", NODE_ADDED) == {}


def test_an_event_is_wanted_if_anyone_registered_for_it() -> None:
    hints = table(judge("P", never, NODE_ADDED))
    assert hints.routes(NODE_ADDED) and not hints.routes(POD_GONE)


class Opinion(Plugin, Filter):
    """Rejects nodes and does not say what could help."""

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return None


class Taste(Plugin, Score):
    """Never rejects anything, so nothing needs to wake anybody for it."""

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return 0


def test_a_plugin_that_can_reject_and_registered_nothing_hears_of_everything(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        hints = table(Opinion(), Taste())
    assert judges(hints, NODE_ADDED) == judges(hints, POD_GONE) == judges(hints, EVERY_UPDATE) == ["Opinion"]
    (answers,) = hints.judges("default-scheduler", POD_GONE).values()
    assert hints.ask("Opinion", answers, pod("p").build(), None, None) is Hint.QUEUE
    assert [record.getMessage() for record in caplog.records] == [
        'plugin "Opinion" of profile "default-scheduler" registers no events: every event retries the pods it rejected'
    ]
