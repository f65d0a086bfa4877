"""Label selectors, node selectors, and selectors that users write as text."""

from __future__ import annotations

import pytest

from pilotage.model.selectors import (
    FieldRequirement,
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Requirement,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
    selector_matches,
)


def test_absent_selector_matches_nothing_and_empty_selector_everything() -> None:
    assert not selector_matches(None, {"a": "b"})
    assert not selector_matches(None, {})
    assert selector_matches(LabelSelector(), {"a": "b"})
    assert LabelSelector().matches({})
    assert LabelSelector().is_empty


def test_label_selector_needs_all_labels_and_all_expressions() -> None:
    selector = LabelSelector({"app": "web"}, (LabelSelectorRequirement("tier", "In", ("front", "edge")),))
    assert selector.matches({"app": "web", "tier": "edge", "more": "x"})
    assert not selector.matches({"app": "web"})
    assert not selector.matches({"app": "api", "tier": "edge"})
    assert not selector.is_empty


def test_label_selector_names_the_expression_that_kubernetes_rejects() -> None:
    good = LabelSelectorRequirement("a", "Exists")
    bad = LabelSelectorRequirement("tier", "In")
    assert LabelSelector({}, (good,)).problem() is None
    assert "tier" in (LabelSelector({}, (good, bad)).problem() or "")


LABELS = {"zone": "a", "cores": "8"}


def _expression(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key, operator, values)


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (NodeSelectorTerm(), False),
        (NodeSelectorTerm((_expression("zone", "In", "a"),)), True),
        (NodeSelectorTerm((_expression("zone", "In", "a"), _expression("cores", "Gt", "8"))), False),
        (NodeSelectorTerm((), (_expression("metadata.name", "In", "n1"),)), True),
        (NodeSelectorTerm((), (_expression("metadata.name", "In", "n2"),)), False),
        (NodeSelectorTerm((), (_expression("metadata.name", "NotIn", "n2"),)), True),
        (NodeSelectorTerm((_expression("zone", "In", "b"),), (_expression("metadata.name", "In", "n1"),)), False),
    ],
)
def test_node_selector_term_holds_for_a_node(term: NodeSelectorTerm, expected: bool) -> None:
    assert term.problem() is None
    assert term.matches(LABELS, "n1") is expected


@pytest.mark.parametrize(
    "field",
    [
        _expression("metadata.namespace", "In", "n1"),
        _expression("metadata.name", "In", "n1", "n2"),
        _expression("metadata.name", "Exists"),
    ],
)
def test_node_selector_term_with_an_unknown_field_requirement_matches_nothing(field: NodeSelectorRequirement) -> None:
    term = NodeSelectorTerm((), (field,))
    assert not term.matches(LABELS, "n1")
    assert term.problem() is not None


def test_node_selector_takes_any_term_and_without_terms_nothing() -> None:
    wrong = NodeSelectorTerm((_expression("zone", "In", "b"),))
    right = NodeSelectorTerm((_expression("zone", "In", "a"),))
    assert NodeSelector((wrong, right)).matches(LABELS, "n1")
    assert not NodeSelector((wrong,)).matches(LABELS, "n1")
    assert not NodeSelector().matches(LABELS, "n1")


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        ("", []),
        ("  ", []),
        ("a=b", [("a", "In", ("b",))]),
        ("a==b", [("a", "In", ("b",))]),
        ("a = b", [("a", "In", ("b",))]),
        ("a=", [("a", "In", ("",))]),
        ("a!=b", [("a", "NotIn", ("b",))]),
        ("a!=", [("a", "NotIn", ("",))]),
        ("a", [("a", "Exists", ())]),
        ("!a", [("a", "DoesNotExist", ())]),
        ("! a", [("a", "DoesNotExist", ())]),
        ("a>3", [("a", "Gt", ("3",))]),
        ("a < 3", [("a", "Lt", ("3",))]),
        ("a in (x, y)", [("a", "In", ("x", "y"))]),
        ("a in(x)", [("a", "In", ("x",))]),
        ("a notin (x,)", [("a", "NotIn", ("x", ""))]),
        ("in in (in)", [("in", "In", ("in",))]),
        ("example.com/a=b", [("example.com/a", "In", ("b",))]),
        (
            "a=b,c in (x,y),!d,e!=f",
            [("a", "In", ("b",)), ("c", "In", ("x", "y")), ("d", "DoesNotExist", ()), ("e", "NotIn", ("f",))],
        ),
    ],
)
def test_label_selector_text_is_read(text: str, requirements: list[tuple[str, str, tuple[str, ...]]]) -> None:
    assert parse_label_selector(text).requirements == tuple(Requirement(*parts) for parts in requirements)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a=b,", 4),
        (",a", 0),
        ("a=b c", 4),
        ("a in x", 5),
        ("a in (x", 7),
        ("a~b", 0),
        ("a=b=c", 3),
        ("a=*", 2),
        ("-a", 0),
        ("/a", 0),
        ("UPPER.com/a", 0),
        ("a>b", 3),
        ("!", 1),
        ("a=" + "x" * 64, 2),
        ("a not (x)", 2),
    ],
)
def test_label_selector_error_names_text_and_position(text: str, position: int) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_label_selector(text)
    assert caught.value.position == position
    assert f'"{text}", position {position}:' in str(caught.value)


def test_label_selector_text_matches_labels() -> None:
    selector = parse_label_selector("app=web,tier!=back,cores>4")
    assert selector.matches({"app": "web", "cores": "8"})
    assert not selector.matches({"app": "web", "cores": "8", "tier": "back"})
    assert not selector.matches({"app": "web", "cores": "4"})
    assert parse_label_selector("").matches({})


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        ("", []),
        ("spec.nodeName=x", [("spec.nodeName", "=", "x")]),
        ("spec.nodeName=", [("spec.nodeName", "=", "")]),
        ("spec.nodeName==x", [("spec.nodeName", "=", "x")]),
        ("a=x,status.phase!=Running", [("a", "=", "x"), ("status.phase", "!=", "Running")]),
        (r"a=x\,y\=z\\", [("a", "=", "x,y=z\\")]),
        ("a=x,", [("a", "=", "x")]),
    ],
)
def test_field_selector_text_is_read(text: str, requirements: list[tuple[str, str, str]]) -> None:
    assert parse_field_selector(text) == [FieldRequirement(*parts) for parts in requirements]


@pytest.mark.parametrize(("text", "position"), [("a", 0), ("=x", 0), ("a=x,b", 4), ("a=x=y", 3), ("a=x\\", 3)])
def test_field_selector_error_names_text_and_position(text: str, position: int) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_field_selector(text)
    assert caught.value.position == position


def test_field_requirement_compares_for_equality() -> None:
    assert FieldRequirement("a", "=", "x").matches("x")
    assert not FieldRequirement("a", "=", "x").matches("y")
    assert FieldRequirement("a", "!=", "x").matches("y")
    assert not FieldRequirement("a", "!=", "x").matches("x")
