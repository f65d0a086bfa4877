"""One answer for all pods of a class, and when each of them has to be asked about: no pod is left behind by it."""

from __future__ import annotations

import copy
import logging
import pickle
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.api import Action, Hint, Plugin, Resource, on_event
from pilotage.model import Pod
from pilotage.observe.metrics import Metrics
from pilotage.plugins import PrioritySort
from pilotage.queue.hints import HintTable
from pilotage.queue.scheduling_queue import SchedulingQueue
from pilotage.queue.sub_queues import SubQueue
from pilotage.testing import PodBuilder, node, pod
from tests.queue.waiting_room import NODE_LABEL, StoppedClock

SUNNY, RAINY = (node("n").label("weather", weather).build() for weather in ("sun", "rain"))


class Room:
    """Pods that one plugin rejected; its hint is the function that is given."""

    def __init__(self, hint: Callable[[Pod, Any, Any], object], *, is_pure: bool) -> None:
        room, self.calls = self, 0

        class Judge(Plugin):
            pure_hints = is_pure

            @on_event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
            def judged(self, pod: Pod, old: Any, new: Any) -> Any:
                room.calls += 1
                return hint(pod, old, new)

        self.metrics = Metrics()
        self.queue = SchedulingQueue(
            StoppedClock(),
            sort_key=PrioritySort().sort_key,
            gatekeeper=lambda pod: None,
            hints=HintTable({"default-scheduler": [Judge()]}, self.metrics),
        )

    def reject(self, *builders: PodBuilder) -> None:
        for builder in builders:
            self.queue.add(builder.build())
            ticket = self.queue.pop()
            assert ticket is not None
            self.queue.give_back(ticket, ticket.pod, frozenset(["Judge"]), frozenset())

    def woken(self, new: Any = SUNNY) -> list[str]:
        self.queue.on_event(NODE_LABEL, RAINY, new)
        self.queue.check()
        return sorted(entry.pod.name for entry in self.queue.entries() if entry.home is not SubQueue.UNSCHEDULABLE)


def said(is_queue: object) -> Hint:
    return Hint.QUEUE if is_queue else Hint.SKIP


def _named_other(given: Pod) -> bool:
    match given:
        case Pod(name="other"):
            return True
    return False


PLAIN = pod("plain")
OTHERS: dict[str, tuple[PodBuilder, Callable[[Pod], object]]] = {
    "name": (pod("other"), lambda pod: pod.name == "other"),
    "key": (pod("other"), lambda pod: pod.key == "default/other"),
    "uid": (pod("other"), lambda pod: pod.uid == "uid-default-other"),
    "annotations": (pod("other").annotation("team", "a"), lambda pod: pod.annotations.get("team") == "a"),
    "annotations by getattr": (pod("other").annotation("team", "a"), lambda pod: getattr(pod, "annotations", {})),
    "owners": (pod("other").owner("ReplicaSet", "web"), lambda pod: pod.owner_references),
    "controller": (pod("other").owner("ReplicaSet", "web"), lambda pod: pod.controller),
    "nomination": (pod("other").nominated("n"), lambda pod: pod.status.nominated_node_name),
    "text": (pod("other"), lambda pod: "name='other'" in f"{pod}"),
    "copy": (pod("other"), lambda pod: copy.deepcopy(copy.copy(pod)).name == "other"),
    "pickle": (pod("other"), lambda pod: b"other" in pickle.dumps(pod)),
    "JSON": (pod("other"), lambda pod: b'"other"' in msgspec.json.encode(pod)),
    "builtins": (pod("other"), lambda pod: msgspec.to_builtins(pod)["name"] == "other"),
    "asdict": (pod("other"), lambda pod: msgspec.structs.asdict(pod)["name"] == "other"),
    "astuple": (pod("other"), lambda pod: "other" in msgspec.structs.astuple(pod)),
    "replace": (pod("other"), lambda pod: msgspec.structs.replace(pod, uid="").name == "other"),
    "method": (pod("other"), lambda pod: pod.with_node("n").name == "other"),
    "pattern": (pod("other"), _named_other),
}


@pytest.mark.parametrize("is_pure", [True, False], ids=["pure", "undeclared"])
@pytest.mark.parametrize(("other", "is_helped"), OTHERS.values(), ids=OTHERS.keys())
def test_a_pod_that_differs_in_what_the_hint_reads_is_woken(
    other: PodBuilder, is_helped: Callable[[Pod], object], is_pure: bool
) -> None:
    room = Room(lambda pod, old, new: said(is_helped(pod)), is_pure=is_pure)
    room.reject(PLAIN, other)
    assert room.woken() == ["other"]
    assert not room.metrics.queueing_hint_errors_total.values()


@pytest.mark.parametrize(
    "is_helped",
    [lambda pod, known: pod in known, lambda pod, known: any(pod == one for one in known)],
    ids=["hash", "equality"],
)
@pytest.mark.parametrize("kind", [set, list, tuple])
def test_pods_are_found_in_what_a_plugin_remembers(
    is_helped: Callable[[Pod, Any], bool], kind: Callable[[Sequence[Pod]], Any]
) -> None:
    known: list[Pod] = []
    room = Room(lambda pod, old, new: said(is_helped(pod, kind(known))), is_pure=True)
    room.reject(PLAIN, pod("other"))
    known += [entry.pod for entry in room.queue.entries() if entry.pod.name == "other"]
    assert room.woken() == ["other"]


def test_a_pure_hint_that_reads_what_a_class_shares_is_asked_once() -> None:
    asked: list[tuple[Any, ...]] = []

    def hint(given: Pod, old: Any, new: Any) -> Hint:
        asked.append((given.namespace, given.spec.priority, dict(given.labels), isinstance(given, Pod), given.priority))
        return said(new is SUNNY)

    room = Room(hint, is_pure=True)
    room.reject(
        *(pod(f"p{number}").label("app", "web").priority(7).annotation("n", str(number)) for number in range(9))
    )
    assert room.woken(RAINY) == []
    assert len(room.woken()) == 9
    assert asked == [("default", 7, {"app": "web"}, True, 7)] * 2


def test_pods_of_other_classes_are_asked_about_on_their_own() -> None:
    room = Room(lambda pod, old, new: said(pod.namespace == "b" and pod.labels and pod.priority), is_pure=True)
    for name in ("first", "second"):
        for namespace in "ab":
            plain = pod(f"{name}-plain").namespace(namespace)
            room.reject(plain, pod(f"{name}-labelled").namespace(namespace).label("app", "web"))
            room.reject(pod(f"{name}-urgent").namespace(namespace).label("app", "web").priority(7))
    assert room.woken() == ["first-urgent", "second-urgent"]
    assert room.calls == 6


def test_what_a_question_makes_a_hint_read_decides_about_this_question_only() -> None:
    """It reads annotations in one branch; what it read in another one says nothing about that."""

    def hint(given: Pod, old: Any, new: Any) -> Hint:
        return said(given.annotations.get("likes") == "sun") if new is SUNNY else Hint.SKIP

    room = Room(hint, is_pure=True)
    room.reject(PLAIN, pod("other").annotation("likes", "sun"))
    assert (room.woken(RAINY), room.calls) == ([], 1)
    assert (room.woken(SUNNY), room.calls) == (["other"], 4)
    assert (room.woken(RAINY), room.calls) == (["other"], 5), "only one of them still waits"


def test_hints_that_keep_count_of_their_calls_are_asked_for_each_pod() -> None:
    """Nothing that they read of a pod would tell."""
    tokens = iter([Hint.SKIP, Hint.QUEUE])
    room = Room(lambda pod, old, new: next(tokens), is_pure=False)
    room.reject(PLAIN, pod("other"))
    assert room.woken() == ["other"]


def test_a_pod_that_is_alone_in_its_class_is_handed_out_itself() -> None:
    seen: list[Pod] = []
    room = Room(lambda pod, old, new: seen.append(pod) or Hint.SKIP, is_pure=True)
    room.reject(PLAIN, pod("other").label("app", "web"))
    room.woken()
    assert sorted(map(id, seen)) == sorted(id(entry.pod) for entry in room.queue.entries())


def test_the_pod_that_stood_for_its_class_may_be_gone() -> None:
    room = Room(lambda pod, old, new: said(new is SUNNY and pod.name == "other"), is_pure=True)
    room.reject(PLAIN, pod("other"), pod("third"))
    assert room.woken(RAINY) == []
    room.queue.delete("uid-default-plain")
    assert room.woken() == ["other"]


# --- what is wrong with an answer -------------------------------------------------------------------------------------


def test_an_error_counts_as_queue_for_all_pods_of_the_class_and_is_counted_once() -> None:
    def hint(pod: Pod, old: Any, new: Any) -> Hint:
        raise LookupError("no such weather")

    room = Room(hint, is_pure=True)
    room.reject(PLAIN, pod("other"))
    assert room.woken() == ["other", "plain"]
    assert (room.calls, room.metrics.queueing_hint_errors_total.value("Judge")) == (1, 1)


def test_an_error_of_one_pod_is_not_an_error_of_the_others() -> None:
    def hint(given: Pod, old: Any, new: Any) -> Hint:
        if given.name == "plain":
            raise LookupError("not this one")
        return said(given.name == "other")

    room = Room(hint, is_pure=True)
    room.reject(PLAIN, pod("other"), pod("third"))
    assert room.woken() == ["other", "plain"]
    assert room.metrics.queueing_hint_errors_total.value("Judge") == 1


def test_an_attribute_that_pods_do_not_have_is_an_error() -> None:
    room = Room(lambda pod, old, new: pod.weather, is_pure=True)  # type: ignore[attr-defined]
    room.reject(PLAIN, pod("other"))
    assert room.woken() == ["other", "plain"]
    assert room.metrics.queueing_hint_errors_total.value("Judge") == 2


@pytest.mark.parametrize("is_pure", [True, False], ids=["pure", "undeclared"])
@pytest.mark.parametrize("answer", [None, True, False, 0, "Queue", "QueueSkip", Hint, [Hint.SKIP], object()])
def test_any_other_answer_counts_as_queue_with_one_warning(
    answer: object, is_pure: bool, caplog: pytest.LogCaptureFixture
) -> None:
    room = Room(lambda pod, old, new: answer, is_pure=is_pure)
    room.reject(PLAIN, pod("other"))
    with caplog.at_level(logging.WARNING):
        assert room.woken() == ["other", "plain"]
        room.reject(pod("third"))
        assert room.woken() == ["other", "plain", "third"]
    (record,) = caplog.records
    assert "plugin=Judge point=QueueingHint" in record.getMessage()
    assert f"expected Hint.QUEUE or Hint.SKIP, got {answer!r}" in record.getMessage()


# --- sharing changes no answer ----------------------------------------------------------------------------------------

READERS: tuple[Callable[[Pod], Hashable], ...] = (
    lambda pod: pod.namespace,
    lambda pod: pod.labels.get("app"),
    lambda pod: pod.spec.priority,
    lambda pod: pod.annotations.get("team"),
    lambda pod: pod.name,
    lambda pod: pod.status.nominated_node_name,
    lambda pod: pod.controller is not None,
    lambda pod: len(msgspec.json.encode(pod)),
    lambda pod: "team" in repr(pod),
)
some_pods = st.lists(
    st.tuples(
        st.sampled_from(["web", "db"]), st.sampled_from(["", "a", "b"]), st.sampled_from(["", "n"]), st.booleans()
    ),
    min_size=1,
    max_size=6,
)
steps = st.lists(st.tuples(st.sampled_from(READERS), st.integers(0, 3)), min_size=1, max_size=4)


def _pod(number: int, app: str, team: str, nominated: str, has_owner: bool) -> PodBuilder:
    built = pod(f"p{number}").label("app", app)
    built = built.annotation("team", team) if team else built
    built = built.nominated(nominated) if nominated else built
    return built.owner("ReplicaSet", "web") if has_owner else built


@given(some_pods, st.lists(steps, min_size=1, max_size=3))
def test_sharing_changes_no_answer(pods: list[tuple[str, str, str, bool]], events: list[Any]) -> None:
    """A hint reads one thing, and what it was decides whether it reads the next: with and without sharing."""

    def hint(given: Pod, old: Any, new: Any) -> Hint:
        for read, modulus in events[int(new.labels["event"])]:
            if sum(map(ord, str(read(given)))) % 4 == modulus:
                return Hint.QUEUE
            if modulus == 0:
                break
        return Hint.SKIP

    rooms = [Room(hint, is_pure=is_pure) for is_pure in (True, False)]
    for room in rooms:
        room.reject(*(_pod(number, *fields) for number, fields in enumerate(pods)))
    for number in range(len(events)):
        new = node("n").label("event", str(number)).build()
        shared, one_by_one = (room.woken(new) for room in rooms)
        assert shared == one_by_one
