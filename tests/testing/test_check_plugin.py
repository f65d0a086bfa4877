"""check_plugin: the default plugins meet the requirements, and every defect is found and named."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pilotage.api import CycleState, Filter, Handle, NodeView, Plugin, Reason, Reject, Rejection, Score, UnknownKind
from pilotage.model import ObjectMeta, Pod
from pilotage.plugins import DEFAULT_PLUGINS
from pilotage.testing import FakeHandle, PluginCheckFailed, check_plugin, node, pod
from tests.testing import broken_plugins as broken
from tests.testing import stamp_plugins as stamps


@pytest.mark.parametrize("cls", [cls for cls, _ in DEFAULT_PLUGINS], ids=lambda cls: cls.__name__)
def test_a_default_plugin_meets_the_requirements(cls: type[Plugin]) -> None:
    check_plugin(cls, worlds=20)


@pytest.mark.parametrize(
    ("cls", "check", "evidence"),
    [
        (broken.WrongParameters, "signatures", "must take (self, state, pod, node), not (self, pod, node)"),
        (broken.NotMade, "exceptions", "no licence"),
        (broken.RaisesToRefuse, "exceptions", "ValueError: too bright"),
        (broken.SaysTrue, "answers", "filter answered True"),
        (broken.HalfPoints, "answers", "score_all answered an array of float64; it must be one of int64"),
        (broken.WaitsForNothing, "points", "Wait(timeout_seconds=0)"),
        (broken.SortsByName, "answers", "must be a tuple of numbers"),
        (broken.WritesColumns, "inputs", "scores //= 1000"),
        (broken.MarksNodes, "inputs", "example.com/seen"),
        (broken.TooMuchLight, "score range", "got 150"),
        (broken.NormalizesTooFar, "score range", "got 101"),
        (broken.TwoOpinions, "both forms", "per node: rejected: no"),
        (broken.ComparesNodes, "part of the nodes", "score"),
        (broken.Fickle, "deterministic", "rejected: no"),
        (broken.SignsTooLittle, "sign", "both pods are signed ()"),
        (broken.SignsAndLooksAround, "one node", "facts_version() must change"),
        (broken.KeepsBooks, "unreserve", "after reserve and unreserve self.held was {} and is {'uid-"),
        (broken.UnreservesOnce, "exceptions", "KeyError"),
        (broken.MissesUpdates, "hints", "it did not register for NodeUpdateNodeLabel"),
        (broken.AsksTheOldNode, "hints", "after_node_change says QueueSkip to NodeUpdateNodeLabel"),
        (broken.CountsItsCalls, "pure hints", "after_node_change looked at nothing but namespace, spec and labels"),
        (broken.ComparesTypes, "pure hints", "and said Hint.SKIP"),
        (broken.OffersNothing, "placements", 'placement "none" of group default/group-0 has no node'),
        (broken.OffersNames, "answers", "which is no Placement"),
        (broken.OffersTwice, "answers", 'two placements named "all"'),
        (broken.OffersByNumbers, "answers", 'the rows of placement "first" are an array of int64'),
        (broken.OffersInTurn, "placements", "again   : {'turn-2'"),
        (broken.PraisesPlacements, "placement scores", 'placement "p0" got 103'),
        (broken.TwoOpinionsOfPlacements, "placement forms", "per placement: [1"),
        (broken.HalfPointsForPlacements, "answers", "it must be one of int64"),
        (broken.CrossesOut, "inputs", "proposed.placement.rows[:] = False"),
        (broken.NominatesStrangers, "members", "it nominated {'somebody': 'somewhere'}"),
        (broken.SaysNothingOfGroups, "answers", "pod_group_post_filter answered None"),
        (broken.NarrowsToNobody, "hints", "says QueueSkip to Node"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_defect_is_found_and_reported(cls: type[Plugin], check: str, evidence: str) -> None:
    with pytest.raises(PluginCheckFailed) as raised:
        check_plugin(cls)
    assert check in [finding.check for finding in raised.value.findings]
    assert evidence in str(raised.value) and f"{cls.__name__}: " in str(raised.value)


@pytest.mark.parametrize("cls", [broken.Sunny, broken.HearsOfEverything, broken.ReadsAnnotations])
def test_a_plugin_without_a_defect_passes(cls: type[Plugin]) -> None:
    check_plugin(cls)


def test_a_check_can_be_left_out() -> None:
    check_plugin(broken.MissesUpdates, skip=["hints"])


def test_a_check_that_does_not_exist_cannot_be_left_out() -> None:
    with pytest.raises(ValueError, match="there is no check named hint; there are: signatures, "):
        check_plugin(broken.Sunny, skip=["hint"])


def test_the_same_seed_finds_the_same() -> None:
    texts = set()
    for _ in range(2):
        with pytest.raises(PluginCheckFailed) as raised:
            check_plugin(broken.AsksTheOldNode, seed=5)
        texts.add(str(raised.value))
    assert len(texts) == 1 and "(seed 5)" in texts.pop()


@dataclass(frozen=True)
class Wanted:
    label: str = "example.com/quiet"


class Picky(Plugin, Score):
    """Needs arguments and a handle."""

    args_type = Wanted

    def __init__(self, handle: Handle, args: Wanted) -> None:
        self._args = args

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return 101 if node.labels.get(self._args.label) == "7" else 0


def test_words_of_the_arguments_appear_on_nodes() -> None:
    for args in (None, Wanted("example.com/dark"), {"label": "example.com/dark"}):
        with pytest.raises(PluginCheckFailed, match="got 101"):
            check_plugin(Picky, args=args)


def test_an_instance_or_a_function_may_be_given() -> None:
    for given in (
        Picky(FakeHandle(), Wanted("example.com/dark")),
        lambda handle: Picky(handle, Wanted("example.com/dark")),
    ):
        with pytest.raises(PluginCheckFailed, match="got 101"):
            check_plugin(given)


class Rare(Plugin, Filter):
    """Rejects what random pods never are: an author's sample is needed."""

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        if len(pod.spec.containers) == 3 and node.allocatable("cpu") == 2000:
            raise RuntimeError("three is a crowd")
        return Reject(Reason("No", "no")) if len(pod.spec.containers) == 2 else None


def test_samples_of_the_author_are_tried() -> None:
    check_plugin(Rare)
    with pytest.raises(PluginCheckFailed, match="three is a crowd"):
        check_plugin(Rare, nodes=[node("n").cpu(2)], pods=[pod("p").container("b").container("c")])


# --- kinds that plugins watch ----------------------------------------------------------------------------------


def test_a_plugin_is_tried_with_random_objects_of_the_kinds_that_it_watches() -> None:
    check_plugin(stamps.WaitsForStamp)


@pytest.mark.parametrize(
    ("cls", "check", "evidence"),
    [
        (stamps.ForgetsStamps, "hints", "it did not register for stamps.v1.example.com"),
        (stamps.SignsDespiteStamps, "one node", "facts_version() must change"),
        (stamps.TrustsStamps, "exceptions", "ZeroDivisionError"),
    ],
)
def test_a_defect_that_only_such_objects_show_is_found(cls: type[Plugin], check: str, evidence: str) -> None:
    with pytest.raises(PluginCheckFailed) as raised:
        check_plugin(cls)
    assert check in [finding.check for finding in raised.value.findings]
    assert evidence in str(raised.value)


def test_samples_of_a_kind_without_a_type() -> None:
    check_plugin(stamps.ReadsColour)
    with pytest.raises(PluginCheckFailed, match="KeyError"):
        check_plugin(stamps.ReadsColour, objects=[{**stamps.STAMP, "colour": "red"}, stamps.STAMP])


def test_a_fake_handle_has_the_kinds_that_it_is_told_of() -> None:
    handle = FakeHandle(watches=stamps.WaitsForStamp.watches)
    handle.put({**stamps.STAMP, "worth": 3}, stamps.Stamp(metadata=ObjectMeta(name="b")))
    assert [stamp.worth for stamp in handle.objects("stamps.example.com").values()] == [3, 0]
    handle.remove(stamps.STAMP)
    assert list(handle.objects(stamps.STAMPS)) == ["b"]
    with pytest.raises(UnknownKind, match="is watched by no enabled plugin"):
        FakeHandle().objects(stamps.STAMPS)
    with pytest.raises(UnknownKind, match=r"example.com/v1 Stamp is not watched; write FakeHandle"):
        FakeHandle().put(stamps.STAMP)
