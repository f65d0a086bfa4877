"""Profiles from a configuration: arguments, common sorting, percentages; and the profiles that are made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from pilotage.api import points
from pilotage.api.plugin import Plugin
from pilotage.config.kinds import PluginRef
from pilotage.config.load import parse_configuration
from pilotage.config.problems import ConfigError
from pilotage.framework.errors import ProfileError
from pilotage.framework.plugin_sets import Catalog
from pilotage.framework.profile import Profile, build_profile
from pilotage.framework.profile_spec import PluginChoice, ProfileRecipe, recipes_of
from pilotage.framework.registry import Registry
from pilotage.model.durations import Duration

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
HANDLE: Any = object()


@dataclass(frozen=True)
class SortArgs:
    newest_first: bool = False


@dataclass(frozen=True)
class PickyArgs:
    label: str
    limit: int = 5
    patience: Duration | None = 10.0

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.limit > 10:
            yield "limit", "must be at most 10"


class Sort(Plugin, points.QueueSort):
    args_type = SortArgs

    def sort_key(self, queued: Any) -> tuple[float, ...]:
        return ()


class OtherSort(Sort):
    pass


class Binder(Plugin, points.Bind):
    async def bind(self, state: Any, pod: Any, node_name: str) -> None:
        return None


class Picky(Plugin, points.Filter, points.Score):
    args_type = PickyArgs
    made = 0

    def __init__(self, handle: Any, args: PickyArgs) -> None:
        type(self).made += 1
        self.handle, self.args = handle, args

    def filter(self, state: Any, pod: Any, node: Any) -> None:
        return None

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 0


class Raw(Plugin, points.Score):
    def __init__(self, args: Any) -> None:
        self.args = args

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 0


class Plain(Plugin, points.Filter):
    def filter(self, state: Any, pod: Any, node: Any) -> None:
        return None


REGISTRY = Registry([Sort, OtherSort, Binder, Picky, Raw, Plain])
DEFAULTS = [PluginRef("Sort"), PluginRef("Binder"), PluginRef("Raw", 2), PluginRef("Plain")]


def recipes(body: str, **more: Any) -> dict[str, ProfileRecipe]:
    return recipes_of(parse_configuration(HEADER + body, "f"), Catalog(REGISTRY, DEFAULTS, **more))


def problems_of(body: str, **more: Any) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        recipes(body, **more)
    return list(raised.value.lines)


def picky(args: str) -> str:
    enabled = "{multiPoint: {enabled: [{name: Picky}]}}"
    return f"profiles:\n- plugins: {enabled}\n  pluginConfig:\n  - name: Picky\n    args: {args}\n"


def args_of(recipe: ProfileRecipe) -> dict[str, Any]:
    return {choice.name: choice.args for choice in recipe.plugins}


def test_arguments_are_decoded_into_the_plugins_own_class() -> None:
    recipe = recipes(picky("{label: x, patience: 1m, kind: PickyArgs, apiVersion: example.com/v7}"))[
        "default-scheduler"
    ]
    assert args_of(recipe)["Picky"] == PickyArgs("x", 5, 60.0)


def test_arguments_that_are_not_given_are_the_defaults() -> None:
    assert args_of(recipes("")["default-scheduler"])["Sort"] == SortArgs()


def test_a_plugin_without_a_class_gets_what_was_written() -> None:
    body = "profiles: [{pluginConfig: [{name: Raw, args: {kind: X, a: [1, null]}}]}]"
    assert args_of(recipes(body)["default-scheduler"])["Raw"] == {"kind": "X", "a": [1, None]}


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ("{label: x, limit: 11}", "f:7: profiles[0].pluginConfig[0].args.limit: must be at most 10"),
        ("{label: x, limt: 1}", 'f:7: profiles[0].pluginConfig[0].args.limt: unknown field (did you mean "limit"?)'),
        ("{}", "f:7: profiles[0].pluginConfig[0].args.label: Required value"),
        ("[1]", "f:7: profiles[0].pluginConfig[0].args: expected an object"),
        (
            "{label: x, kind: SortArgs}",
            'f:7: profiles[0].pluginConfig[0].args.kind: Invalid value: "SortArgs": has to match',
        ),
        (
            "{label: x, apiVersion: kubescheduler.config.k8s.io/v1beta3}",
            "f:7: profiles[0].pluginConfig[0].args.apiVersion: Unsupported value",
        ),
    ],
)
def test_wrong_arguments_are_rejected_with_file_line_and_path(args: str, problem: str) -> None:
    found = problems_of(picky(args))
    assert len(found) == 1
    assert found[0].startswith(problem)


def test_a_required_argument_that_no_one_gave_is_named() -> None:
    body = "profiles: [{plugins: {multiPoint: {enabled: [{name: Picky}]}}}]"
    assert problems_of(body) == ["f:3: profiles[0].pluginConfig[name=Picky].args.label: Required value"]


def test_arguments_for_a_plugin_that_does_not_exist_are_rejected() -> None:
    body = "profiles: [{pluginConfig: [{name: Pick, args: {}}]}]"
    assert problems_of(body) == [
        'f:3: profiles[0].pluginConfig[0].name: profile "default-scheduler": unknown plugin "Pick" '
        '(did you mean "Picky"?)'
    ]


def test_arguments_of_a_plugin_that_is_not_built_yet_are_checked_all_the_same() -> None:
    body = "profiles: [{pluginConfig: [{name: Someday, args: {newestFirst: 1}}]}]"
    more = {"not_built_yet": frozenset({"Someday"}), "args_types": {"Someday": SortArgs}}
    assert problems_of(body, **more) == [
        "f:3: profiles[0].pluginConfig[0].args.newestFirst: expected a boolean, got number 1"
    ]


def test_an_argument_whose_gate_is_off_is_forbidden_and_unset() -> None:
    more = {"switched_off": {"Picky": {"patience": "Waiting"}}}
    assert problems_of(picky("{label: x, patience: 3s}"), **more) == [
        "f:7: profiles[0].pluginConfig[0].args.patience: Forbidden: remove it or turn on the feature gate Waiting"
    ]
    assert args_of(recipes(picky("{label: x}"), **more)["default-scheduler"])["Picky"] == PickyArgs("x", 5, None)


def test_all_profiles_are_examined_at_once() -> None:
    body = (
        "profiles: [{schedulerName: a, plugins: {filter: [{name: X}]}}, {schedulerName: b, pluginConfig: [{name: W}]}]"
    )
    assert len(problems_of(body)) == 2


def test_all_profiles_must_sort_alike() -> None:
    body = "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {queueSort: [{name: OtherSort}]}}]"
    assert problems_of(body) == [
        'f:3: profiles[1].plugins.queueSort: has to match for all profiles: "a" sorts by Sort, this one by OtherSort'
    ]
    args = "pluginConfig: [{name: Sort, args: {newestFirst: true}}]"
    body = f"profiles: [{{schedulerName: a}}, {{schedulerName: b, {args}}}]"
    assert problems_of(body) == [
        'f:3: profiles[1].pluginConfig: the args of Sort have to match for all profiles and differ from those of "a"'
    ]
    assert set(recipes(f"profiles: [{{schedulerName: a, {args}}}, {{schedulerName: b, {args}}}]")) == {"a", "b"}


def test_a_profile_may_have_its_own_percentage() -> None:
    found = recipes(
        "percentageOfNodesToScore: 40\nprofiles: [{schedulerName: a}, {schedulerName: b, percentageOfNodesToScore: 0}]"
    )
    assert (found["a"].percentage_of_nodes_to_score, found["b"].percentage_of_nodes_to_score) == (40, 0)


def built(recipe: ProfileRecipe) -> Profile:
    return build_profile("s", recipe, REGISTRY, lambda _: HANDLE)


def test_a_profile_serves_each_point_in_the_order_of_its_recipe() -> None:
    body = (
        "profiles: [{pluginConfig: [{name: Picky, args: {label: x}}], percentageOfNodesToScore: 7,"
        "plugins: {multiPoint: {enabled: [{name: Picky, weight: 4}]}, filter: {enabled: [{name: Picky}]},"
        "score: {disabled: [{name: Raw}]}}}]"
    )
    Picky.made = 0
    profile = built(recipes(body)["default-scheduler"])
    assert [type(p).__name__ for p in profile.filters] == ["Picky", "Plain"]
    assert [type(p).__name__ for p in profile.scores] == ["Picky"]
    assert profile.weights["Picky"] == 4
    assert profile.percentage_of_nodes_to_score == 7
    assert Picky.made == 1
    assert profile.filters[0] is profile.scores[0]
    assert isinstance(profile.filters[0], Picky)
    assert (profile.filters[0].handle, profile.filters[0].args) == (HANDLE, PickyArgs("x"))


def test_a_profile_of_just_a_list_serves_what_its_plugins_can() -> None:
    profile = Profile("s", [Plain(), Sort(), Binder(), Raw({})], {"Raw": 1})
    assert [type(p).__name__ for p in profile.filters] == ["Plain"]
    assert [type(p).__name__ for p in profile.scores] == ["Raw"]


def test_arguments_given_as_a_mapping_are_decoded_when_the_plugin_is_made() -> None:
    essential = (PluginChoice("Sort"), PluginChoice("Binder"))
    profile = built(ProfileRecipe((*essential, PluginChoice("Picky", args={"label": "y", "limit": 3}))))
    assert isinstance(profile.filters[0], Picky)
    assert profile.filters[0].args == PickyArgs("y", 3)
    with pytest.raises(ConfigError, match=r'plugin "Picky": args\.label: Required value'):
        built(ProfileRecipe((*essential, PluginChoice("Picky"))))


def test_a_constructor_that_raises_is_named() -> None:
    class Moody(Plain):
        def __init__(self) -> None:
            raise RuntimeError("not today")

    class Greedy(Plain):
        def __init__(self, args: Any, everything: Any) -> None:
            raise AssertionError("is not called")

    registry = Registry([Moody, Greedy])
    with pytest.raises(ProfileError, match='profile "s": plugin "Moody" cannot be made: RuntimeError: not today'):
        build_profile("s", ProfileRecipe((PluginChoice("Moody"),)), registry, lambda _: HANDLE)
    with pytest.raises(ProfileError, match='plugin "Greedy" asks for everything'):
        build_profile("s", ProfileRecipe((PluginChoice("Greedy"),)), registry, lambda _: HANDLE)


def test_a_broken_arguments_class_is_contained() -> None:
    @dataclass(frozen=True)
    class Broken:
        def problems(self) -> Iterator[tuple[str, str]]:
            raise ZeroDivisionError("oops")
            yield

    body = "profiles: [{pluginConfig: [{name: X}]}]"
    found = problems_of(body, not_built_yet=frozenset({"X"}), args_types={"X": Broken})
    assert len(found) == 1
    assert "Broken, the class of the arguments, does not work: ZeroDivisionError: oops" in found[0]
