"""NodeAffinity: node selectors, required and preferred node affinity."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.api import Action, Hint, NodeNames, Reject, Resource, Skip
from pilotage.plugins import NodeAffinity
from pilotage.testing import NodeBuilder, PodBuilder, node, pod
from tests.default_plugins import default
from tests.plugins.one_plugin import OnePlugin, hint

PLUGIN = default(NodeAffinity)
MISMATCH = "node(s) didn't match Pod's node affinity/selector"


def world() -> OnePlugin:
    return OnePlugin(
        PLUGIN,
        node("ssd").label("disk", "ssd").label("cores", "8"),
        node("hdd").label("disk", "hdd").label("cores", "64"),
        node("bare"),
    )


def fitting(waiting: PodBuilder) -> list[str]:
    return [name for name, reasons in world().reasons(waiting).items() if not reasons]


def requirement(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def term(*expressions: dict[str, Any], fields: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"matchExpressions": list(expressions), **({"matchFields": fields} if fields else {})}


def named(*names: str, operator: str = "In") -> dict[str, Any]:
    return term(fields=[requirement("metadata.name", operator, *names)])


# --- filter -----------------------------------------------------------------------------------------------------------


def test_a_pod_without_wishes_fits_everywhere_and_is_not_filtered() -> None:
    assert isinstance(world().pre_filter(pod("p")), Skip)
    assert fitting(pod("p")) == ["ssd", "hdd", "bare"]


@pytest.mark.parametrize(
    ("selector", "nodes"),
    [
        ({"disk": "ssd"}, ["ssd"]),
        ({"disk": "ssd", "cores": "8"}, ["ssd"]),
        ({"disk": "ssd", "cores": "64"}, []),
        ({"disk": "nvme"}, []),
        ({"unheard-of": ""}, []),
    ],
)
def test_a_node_selector_wants_all_its_labels(selector: dict[str, str], nodes: list[str]) -> None:
    assert world().pre_filter(pod("p").node_selector(selector)) is None
    assert fitting(pod("p").node_selector(selector)) == nodes


@pytest.mark.parametrize(
    ("wanted", "nodes"),
    [
        (requirement("disk", "In", "ssd", "nvme"), ["ssd"]),
        (requirement("disk", "NotIn", "ssd"), ["hdd", "bare"]),
        (requirement("disk", "Exists"), ["ssd", "hdd"]),
        (requirement("disk", "DoesNotExist"), ["bare"]),
        (requirement("cores", "Gt", "8"), ["hdd"]),
        (requirement("cores", "Lt", "64"), ["ssd"]),
        (requirement("disk", "Gt", "1"), []),
        (requirement("cores", "Gt", "many"), []),
        (requirement("disk", "In"), []),
        (requirement("disk", "Like", "s*"), []),
    ],
    ids=[
        "In",
        "NotIn",
        "Exists",
        "DoesNotExist",
        "Gt",
        "Lt",
        "Gt of a word",
        "Gt than a word",
        "In nothing",
        "unknown",
    ],
)
def test_operators(wanted: dict[str, Any], nodes: list[str]) -> None:
    assert fitting(pod("p").node_affinity_terms(term(wanted))) == nodes


def test_requirements_of_a_term_are_joined_and_terms_are_alternatives() -> None:
    both = term(requirement("disk", "Exists"), requirement("cores", "Gt", "10"))
    assert fitting(pod("p").node_affinity_terms(both)) == ["hdd"]
    assert fitting(pod("p").node_affinity_terms(both, term(requirement("disk", "DoesNotExist")))) == ["hdd", "bare"]


def test_a_malformed_term_does_not_spoil_the_others() -> None:
    wrong, right = term(requirement("cores", "Gt", "many")), term(requirement("disk", "In", "ssd"))
    assert fitting(pod("p").node_affinity_terms(wrong, right)) == ["ssd"]


@pytest.mark.parametrize("terms", [[], [{}], [term()]], ids=["no term", "empty term", "term without requirements"])
def test_what_asks_for_nothing_matches_nothing(terms: list[dict[str, Any]]) -> None:
    assert fitting(pod("p").node_affinity_terms(*terms)) == []


def test_selector_and_affinity_must_both_match() -> None:
    wanted = pod("p").node_affinity_in("disk", ["ssd", "hdd"])
    assert fitting(wanted.node_selector(cores="64")) == ["hdd"]
    assert fitting(wanted.node_selector(cores="1")) == []


def test_the_reason_is_beyond_preemption() -> None:
    (reason,) = world().reasons(pod("p").node_selector(disk="nvme"))["ssd"]
    assert reason.message == MISMATCH and reason.unresolvable


# --- terms that name nodes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        ([named("ssd")], {"ssd"}),
        ([named("ssd"), named("bare", "gone")], {"ssd", "bare", "gone"}),
        ([term(fields=[requirement("metadata.name", "In", "a", "b"), requirement("metadata.name", "In", "b")])], {"b"}),
        ([named("ssd"), term(requirement("disk", "Exists"))], None),
        ([named("ssd", operator="NotIn")], None),
    ],
    ids=["one", "alternatives", "joined", "an alternative without a name", "not in"],
)
def test_terms_that_all_name_nodes_restrict_the_search(terms: list[dict[str, Any]], names: set[str] | None) -> None:
    expected = None if names is None else NodeNames(frozenset(names))
    assert world().pre_filter(pod("p").node_affinity_terms(*terms)) == expected


def test_terms_that_name_no_common_node_reject_the_pod() -> None:
    conflict = term(fields=[requirement("metadata.name", "In", "a"), requirement("metadata.name", "In", "b")])
    answer = world().pre_filter(pod("p").node_affinity_terms(conflict))
    assert isinstance(answer, Reject) and answer.unresolvable
    assert [reason.message for reason in answer.reasons] == ["pod affinity terms conflict"]


def test_nodes_are_matched_by_name() -> None:
    assert fitting(pod("p").node_affinity_terms(named("bare"))) == ["bare"]
    assert fitting(pod("p").node_affinity_terms(named("bare", operator="NotIn"))) == ["ssd", "hdd"]
    labelled = named("ssd") | term(requirement("disk", "In", "hdd"), fields=[requirement("metadata.name", "In", "ssd")])
    assert fitting(pod("p").node_affinity_terms(labelled)) == []


# --- score ------------------------------------------------------------------------------------------------------------


def test_without_preferences_there_is_no_score() -> None:
    assert world().skips_score(pod("p").node_selector(disk="ssd"))
    assert not world().skips_score(pod("p").prefer("disk", ["ssd"]))


def test_the_score_adds_the_weights_of_matching_preferences() -> None:
    wishes = pod("p").prefer("disk", ["ssd", "hdd"], 5).prefer("disk", ["ssd"], 10).prefer("cores", ["64"], 50)
    assert world().raw_scores(wishes) == {"ssd": 15, "hdd": 55, "bare": 0}
    assert world().normalized(wishes) == {"ssd": 27, "hdd": 100, "bare": 0}


def test_an_empty_preference_matches_nothing() -> None:
    empty = [{"weight": 7, "preference": {}}]
    wishes = pod("p").spec(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": empty}})
    assert world().raw_scores(wishes) == {"ssd": 0, "hdd": 0, "bare": 0}
    assert world().normalized(wishes) == {"ssd": 0, "hdd": 0, "bare": 0}


# --- hints and signature ----------------------------------------------------------------------------------------------

SSD = node("n").label("disk", "ssd")


@pytest.mark.parametrize(
    ("action", "old", "new", "answer"),
    [
        (Action.ADD, None, SSD, Hint.QUEUE),
        (Action.ADD, None, node("n"), Hint.SKIP),
        (Action.UPDATE_NODE_LABEL, node("n"), SSD, Hint.QUEUE),
        (Action.UPDATE_NODE_LABEL, SSD, SSD.label("other", "x"), Hint.SKIP),
        (Action.UPDATE_NODE_LABEL, SSD, node("n"), Hint.SKIP),
        (Action.UPDATE_NODE_TAINT, node("n"), SSD, None),
    ],
    ids=["matching node", "other node", "begins to match", "matched before", "stops to match", "other event"],
)
def test_a_node_helps_when_it_begins_to_match(
    action: Action, old: NodeBuilder | None, new: NodeBuilder, answer: Hint | None
) -> None:
    for waiting in (pod("p").node_selector(disk="ssd"), pod("p").node_affinity_in("disk", ["ssd"])):
        assert hint(PLUGIN, Resource.NODE, action, waiting, old, new) is answer


def test_the_signature_covers_selector_required_and_preferred_affinity() -> None:
    variants = [
        pod("p"),
        pod("p").node_selector(a="1"),
        pod("p").node_affinity_in("a", ["1"]),
        pod("p").prefer("a", ["1"]),
        pod("p").prefer("a", ["1"], 2),
    ]
    assert len({PLUGIN.sign(variant.build()) for variant in variants}) == len(variants)
    assert PLUGIN.sign(pod("p").requests(cpu="1").build()) == PLUGIN.sign(pod("p").build())
