"""Merging with the defaults and expansion of multiPoint: who runs where, in which order, with which weight."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pilotage.api import points
from pilotage.api.plugin import Plugin
from pilotage.config.kinds import PluginRef, PluginSet, ProfileConfiguration
from pilotage.config.load import parse_configuration
from pilotage.config.problems import Problem
from pilotage.framework.plugin_sets import Catalog, EnabledPlugins, lay_out, merge
from pilotage.framework.registry import Registry


def plugin(name: str, *served: type) -> type[Plugin]:
    """A class that serves these points; its methods are never called here."""
    return type(name, (Plugin, *served), {"name": name})


CLASSES = [
    plugin("Sort", points.QueueSort),
    plugin("A", points.Filter, points.VectorFilter, points.Score),
    plugin("B", points.PreFilter, points.Filter, points.VectorScore),
    plugin("C", points.VectorFilter),
    plugin("D", points.Score, points.NormalizeScore),
    plugin("Binder", points.Bind),
    plugin("Other", points.Filter, points.Score, points.Permit),
    plugin("Third", points.Score),
    plugin("OtherSort", points.QueueSort),
    plugin("Racks", points.PlacementGenerate),
    plugin("Halls", points.PlacementGenerate),
]
DEFAULTS = [
    PluginRef("Sort"),
    PluginRef("A", 2),
    PluginRef("B", 3),
    PluginRef("C"),
    PluginRef("D"),
    PluginRef("Binder"),
]
CATALOG = Catalog(Registry(CLASSES), DEFAULTS, not_built_yet=frozenset({"Someday"}))


def profile(text: str) -> ProfileConfiguration:
    header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    body = f"profiles:\n- schedulerName: s\n  plugins: {text}\n"
    return parse_configuration(header + body).scheduler.profiles[0]


def laid_out(text: str = "{}", catalog: Catalog = CATALOG) -> EnabledPlugins:
    problems: list[Problem] = []
    layout = lay_out(profile(text), catalog, problems)
    assert problems == []
    return layout


def problems_of(text: str, catalog: Catalog = CATALOG) -> list[str]:
    problems: list[Problem] = []
    lay_out(profile(text), catalog, problems)
    return [f"{problem.path}: {problem.message}" for problem in problems]


def names(*refs: Any) -> tuple[PluginRef, ...]:
    return tuple(PluginRef(ref) if isinstance(ref, str) else PluginRef(*ref) for ref in refs)


@pytest.mark.parametrize(
    ("custom", "expected"),
    [
        (PluginSet(), names("A", "B", "C")),
        (PluginSet(names("X")), names("A", "B", "C", "X")),
        (PluginSet(names(("B", 5), "X")), names("A", ("B", 5), "C", "X")),
        (PluginSet((), names("B")), names("A", "C")),
        (PluginSet((), names("*")), ()),
        (PluginSet(names("C", "X"), names("*")), names("C", "X")),
        (PluginSet(names(("B", 7)), names("B")), names("A", "C", ("B", 7))),
        (PluginSet(names("X", "B", "X")), names("A", "B", "C", "X", "X")),
        (PluginSet(names("B", "B")), names("A", "B", "C", "B")),
    ],
    ids=[
        "nothing",
        "added",
        "in place",
        "disabled",
        "all off",
        "own list",
        "moved to the end",
        "twice",
        "twice default",
    ],
)
def test_the_users_list_is_laid_over_the_default_one(custom: PluginSet, expected: tuple[PluginRef, ...]) -> None:
    merged = merge(custom, names("A", "B", "C"))
    assert merged.enabled == expected
    assert merged.disabled == custom.disabled


def test_without_a_word_every_default_serves_what_it_can() -> None:
    layout = laid_out()
    assert {point: order for point, order in layout.points.items() if order} == {
        "queueSort": ("Sort",),
        "preFilter": ("B",),
        "filter": ("A", "B", "C"),
        "score": ("A", "B", "D"),
        "bind": ("Binder",),
    }
    assert layout.weights == {"A": 2, "B": 3, "D": 1}
    assert layout.plugins == ("Sort", "A", "B", "C", "D", "Binder")


@pytest.mark.parametrize(
    ("text", "filters", "scores"),
    [
        ("{multiPoint: {enabled: [{name: Other}]}}", "A B C Other", "A B D Other"),
        ("{multiPoint: {disabled: [{name: A}]}}", "B C", "B D"),
        ("{filter: {disabled: [{name: A}]}}", "B C", "A B D"),
        ("{filter: {disabled: [{name: '*'}]}}", "", "A B D"),
        ("{filter: {disabled: [{name: '*'}], enabled: [{name: C}, {name: A}]}}", "C A", "A B D"),
        ("{filter: [{name: C}, {name: A}]}", "C A", "A B D"),
        ("{filter: {enabled: [{name: C}]}}", "C A B", "A B D"),
        ("{filter: {enabled: [{name: Other}, {name: C}, {name: B}]}}", "C B A Other", "A B D"),
        ("{score: {enabled: [{name: Other, weight: 5}]}}", "A B C", "A B D Other"),
        ("{score: {disabled: [{name: A}], enabled: [{name: A, weight: 9}]}}", "A B C", "A B D"),
        ("{multiPoint: {enabled: [{name: Other}]}, score: {disabled: [{name: Other}]}}", "A B C Other", "A B D"),
        ("{multiPoint: {disabled: [{name: A}]}, score: {enabled: [{name: A}]}}", "B C", "B D A"),
    ],
)
def test_the_order_at_a_point(text: str, filters: str, scores: str) -> None:
    layout = laid_out(text)
    assert layout.points["filter"] == tuple(filters.split())
    assert layout.points["score"] == tuple(scores.split())


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("{score: {enabled: [{name: A, weight: 9}]}}", {"A": 9, "B": 3, "D": 1}),
        ("{score: {enabled: [{name: A}]}}", {"A": 1, "B": 3, "D": 1}),
        ("{multiPoint: {enabled: [{name: B, weight: 7}]}}", {"A": 2, "B": 7, "D": 1}),
        ("{multiPoint: {enabled: [{name: B}]}}", {"A": 2, "B": 1, "D": 1}),
        (
            "{multiPoint: {enabled: [{name: B, weight: 7}]}, score: {enabled: [{name: B, weight: 8}]}}",
            {"A": 2, "B": 8, "D": 1},
        ),
        ("{filter: {enabled: [{name: A, weight: 9}]}}", {"A": 2, "B": 3, "D": 1}),
    ],
)
def test_the_weight_comes_from_the_score_list_first(text: str, weights: dict[str, int]) -> None:
    assert laid_out(text).weights == weights


def test_a_plugin_is_instantiated_once_however_often_it_is_named() -> None:
    layout = laid_out("{multiPoint: {enabled: [{name: Other}]}, score: {enabled: [{name: Other}, {name: Third}]}}")
    assert layout.plugins == ("Sort", "A", "B", "C", "D", "Binder", "Other", "Third")


def test_loaded_plugins_come_last_whatever_is_disabled() -> None:
    catalog = Catalog(Registry(CLASSES), DEFAULTS, added=[PluginRef("Other")])
    assert laid_out(catalog=catalog).points["filter"] == ("A", "B", "C", "Other")
    minimal = "{multiPoint: {disabled: [{name: '*'}], enabled: [{name: Sort}, {name: Binder}]}}"
    assert laid_out(minimal, catalog).points["filter"] == ("Other",)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "{filter: {enabled: [{name: D}]}}",
            'profiles[0].plugins.filter.enabled[0]: plugin "D" does not extend Filter plugin',
        ),
        (
            "{score: {enabled: [{name: A}, {name: A}]}}",
            'profiles[0].plugins.score.enabled[1]: plugin "A" already registered as "Score"',
        ),
        (
            "{multiPoint: {enabled: [{name: Third}, {name: Third}]}}",
            'profiles[0].plugins.multiPoint.enabled[1]: plugin "Third" already registered as "Score"',
        ),
        (
            "{filter: {enabled: [{name: Othre}]}}",
            'profiles[0].plugins.filter.enabled[0]: profile "s": unknown plugin "Othre" (did you mean "Other"?)',
        ),
        (
            "{multiPoint: {disabled: [{name: Thrid}]}}",
            'profiles[0].plugins.multiPoint.disabled[0]: profile "s": unknown plugin "Thrid" (did you mean "Third"?)',
        ),
        (
            "{score: [{name: NodeResourcesMostAllocated}]}",
            'profiles[0].plugins.score[0]: profile "s": unknown plugin "NodeResourcesMostAllocated" '
            "(use NodeResourcesFit and set scoringStrategy.type in its pluginConfig args to MostAllocated)",
        ),
        (
            "{multiPoint: {enabled: [{name: OtherSort}]}}",
            'profiles[0]: only one queue sort plugin required for profile with scheduler name "s", but got 2 '
            "(Sort, OtherSort: disable what is too many under plugins.queueSort)",
        ),
        (
            "{placementGenerate: {enabled: [{name: Racks}, {name: Halls}]}}",
            'profiles[0]: at most one placement generate plugin is allowed for profile with scheduler name "s", '
            "but got 2 (Racks, Halls: disable what is too many under plugins.placementGenerate)",
        ),
        (
            "{queueSort: []}",
            'profiles[0]: only one queue sort plugin required for profile with scheduler name "s", but got 0',
        ),
        (
            "{bind: {disabled: [{name: Binder}]}}",
            'profiles[0]: at least one bind plugin is needed for profile with scheduler name "s"',
        ),
        (
            "{score: {enabled: [{name: A, weight: 92233720368547758}]}}",
            "profiles[0]: total score of Score plugins could overflow",
        ),
        (
            "{placementScore: {enabled: [{name: A}]}}",
            'profiles[0].plugins.placementScore.enabled[0]: plugin "A" does not extend PlacementScore plugin',
        ),
    ],
)
def test_what_cannot_be_is_rejected_with_its_place(text: str, problem: str) -> None:
    assert problems_of(text) == [problem]


def test_all_problems_of_a_profile_are_reported() -> None:
    text = "{filter: {enabled: [{name: X}, {name: D}]}, bind: {disabled: [{name: '*'}]}}"
    assert len(problems_of(text)) == 3


def test_weights_just_below_the_limit_are_accepted() -> None:
    # B and D weigh 3 and 1.
    limit = (2**63 - 1) // 100 - 4
    assert laid_out(f"{{score: [{{name: A, weight: {limit}}}]}}").weights["A"] == limit
    assert problems_of(f"{{score: [{{name: A, weight: {limit + 1}}}]}}")


def test_plugins_that_are_not_built_yet_are_skipped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    text = (
        "{filter: {enabled: [{name: Someday}], disabled: [{name: Someday}]}, multiPoint: {disabled: [{name: Someday}]}}"
    )
    with caplog.at_level(logging.WARNING):
        layout = laid_out(text)
    assert "Someday" not in layout.plugins
    assert caplog.messages == ['profile "s": plugin "Someday" does not exist here yet, skipped']


# --- points that a plugin loses because others are named --------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{score: {enabled: [{name: Other}]}}", "is named at score only: it does not serve filter, permit;"),
        ("{score: {enabled: [{name: Other}]}, filter: {disabled: [{name: Other}]}}", "it does not serve permit;"),
        (
            "{filter: {disabled: [{name: Other}]}}",
            "is only disabled, and runs nowhere: it does not serve score, permit;",
        ),
        ("{multiPoint: {enabled: [{name: Other}]}, filter: {disabled: [{name: Other}]}}", ""),
        ("{multiPoint: {enabled: [{name: Other}]}, score: {enabled: [{name: Other, weight: 5}]}}", ""),
        ("{multiPoint: {disabled: [{name: Other}]}, score: {enabled: [{name: Other}]}}", ""),
        ("{score: {enabled: [{name: Third}]}}", ""),
        ("{score: {enabled: [{name: A, weight: 9}]}}", ""),
    ],
)
def test_points_that_a_plugin_loses_are_reported(text: str, told: str, caplog: pytest.LogCaptureFixture) -> None:
    laid_out(text)
    warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert [told in warning for warning in warnings] == ([True] if told else [])


def test_a_loaded_generator_of_placements_takes_the_place_of_the_default_one() -> None:
    """Of no other point there may be at most one, so that nothing has to be disabled before a plugin can be tried."""
    defaults = [*DEFAULTS, PluginRef("Racks")]
    catalog = Catalog(Registry(CLASSES), defaults, added=[PluginRef("Halls")])
    assert laid_out("{}", Catalog(Registry(CLASSES), defaults)).points["placementGenerate"] == ("Racks",)
    assert laid_out("{}", catalog).points["placementGenerate"] == ("Halls",)
    (problem,) = problems_of("{placementGenerate: {enabled: [{name: Racks}]}}", catalog)
    assert "got 2 (Racks, Halls: disable" in problem, "one that was asked for is not put aside in silence"
