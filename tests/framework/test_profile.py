"""A profile: plugins made once each, sorted into extension points, and rejected with a clear word if that fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from pilotage.api import CycleState, Filter, NodeView, Plugin, Rejection, Score
from pilotage.framework.errors import ProfileError
from pilotage.framework.profile import Profile, build_profile, name_of
from pilotage.framework.profile_spec import PluginChoice, ProfileRecipe
from pilotage.framework.registry import Registry
from pilotage.model import Pod
from pilotage.plugins import DefaultBinder, NodeAffinity, NodeName, PrioritySort, SchedulingGates, TaintToleration
from tests.framework.scripted_plugins import NullBinder, scripted

HANDLE: Any = object()


def names(plugins: tuple[Any, ...]) -> list[str]:
    return [name_of(plugin) for plugin in plugins]


def built(*classes: type[Plugin], **args: Any) -> Profile:
    """A profile of these classes beside the plugins that no profile can do without."""
    chosen = [PluginChoice(cls.plugin_name(), args=args) for cls in classes]
    needed = [cls for cls in (PrioritySort, NullBinder) if cls not in classes]
    chosen += [PluginChoice(cls.plugin_name()) for cls in needed]
    return build_profile("mine", ProfileRecipe(tuple(chosen)), Registry([*classes, *needed]), lambda _: HANDLE)


def test_plugins_serve_the_points_that_they_implement_in_their_order() -> None:
    plugins = [SchedulingGates(), PrioritySort(), NodeName(), TaintToleration(), NullBinder()]
    profile = Profile("mine", plugins, {})
    assert names(profile.pre_enqueue) == ["SchedulingGates"]
    assert names(profile.queue_sort) == ["PrioritySort"]
    assert names(profile.pre_filter) == ["NodeName", "TaintToleration"]
    assert names(profile.filters) == ["NodeName", "TaintToleration"]
    assert names(profile.scores) == ["TaintToleration"]
    assert names(profile.bind) == ["NullBinder"]
    assert profile.reserve == profile.permit == profile.pre_bind == profile.post_bind == profile.post_filter == ()


def test_an_order_decides_who_serves_a_point() -> None:
    plugins = [PrioritySort(), NodeName(), TaintToleration(), NullBinder()]
    order = {"queueSort": ["PrioritySort"], "bind": ["NullBinder"], "filter": ["TaintToleration", "NodeName"]}
    profile = Profile("mine", plugins, {}, order)
    assert names(profile.filters) == ["TaintToleration", "NodeName"]
    assert profile.pre_filter == () and profile.scores == ()


def test_per_node_and_vector_plugins_serve_the_same_point() -> None:
    profile = Profile(
        "mine", [scripted("A", filter=None), scripted("B", filter_all=[]), PrioritySort(), NullBinder()], {}
    )
    assert names(profile.filters) == ["A", "B"]


@pytest.mark.parametrize("sorters", [0, 2])
def test_a_profile_sorts_its_queue_in_one_way(sorters: int) -> None:
    plugins = [NullBinder(), *(scripted(f"S{number}", sort_key=(0,)) for number in range(sorters))]
    text = f'only one queue sort plugin required for profile with scheduler name "mine", but got {sorters}'
    with pytest.raises(ProfileError, match=text):
        Profile("mine", plugins, {})


def test_a_profile_must_be_able_to_bind() -> None:
    with pytest.raises(ProfileError, match='at least one bind plugin is needed for profile with scheduler name "mine"'):
        Profile("mine", [PrioritySort()], {})


def test_plugins_are_made_once_with_what_they_ask_for() -> None:
    profile = built(NodeAffinity, DefaultBinder)
    assert len(profile.plugins) == 4 and len({id(plugin) for plugin in profile.plugins}) == 4
    assert profile.filters[0] is profile.pre_filter[0]


def test_weights_come_with_the_choice() -> None:
    chosen = (PluginChoice("TaintToleration", 3), PluginChoice("PrioritySort"), PluginChoice("NullBinder"))
    registry = Registry([TaintToleration, PrioritySort, NullBinder])
    profile = build_profile("mine", ProfileRecipe(chosen), registry, lambda _: HANDLE)
    assert profile.weights["TaintToleration"] == 3 and profile.weights["PrioritySort"] == 1


@dataclass(frozen=True)
class Likes:
    colour: str = "blue"


class Painter(Plugin, Score):
    args_type = Likes

    def __init__(self, handle: Any, args: Likes) -> None:
        self.handle, self.args = handle, args

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return 0


def test_a_plugin_gets_the_handle_and_its_typed_arguments() -> None:
    painter = built(Painter).plugins[0]
    assert isinstance(painter, Painter) and painter.handle is HANDLE and painter.args == Likes("blue")
    given = built(Painter, colour="red").plugins[0]
    assert isinstance(given, Painter) and given.args == Likes("red")


class Misspelt(Plugin, Filter):
    def filtre(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return None


class Demanding(Plugin):
    def __init__(self, handle: Any, database: str, cache: int = 0) -> None:
        pass


class Clumsy(Plugin):
    def __init__(self) -> None:
        raise OSError("no such file")


@pytest.mark.parametrize(
    ("cls", "text"),
    [
        (Misspelt, r'profile "mine": plugin "Misspelt" does not implement filter$'),
        (Demanding, r'profile "mine": plugin "Demanding" asks for database; a plugin.s __init__ may take handle'),
        (Clumsy, r'profile "mine": plugin "Clumsy" cannot be made: OSError: no such file$'),
    ],
)  # fmt: skip
def test_a_plugin_that_cannot_be_made_stops_the_start_with_a_clear_word(cls: type[Plugin], text: str) -> None:
    with pytest.raises(ProfileError, match=text):
        built(cls)


def test_an_unknown_plugin_stops_the_start() -> None:
    recipe = ProfileRecipe((PluginChoice("NodeNam"),))
    with pytest.raises(ProfileError, match=r'unknown plugin "NodeNam" \(did you mean "NodeName"\?\)'):
        build_profile("mine", recipe, Registry([NodeName]), lambda _: HANDLE)
