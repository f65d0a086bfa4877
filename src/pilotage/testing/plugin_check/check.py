"""`check_plugin`: one line in an author's own tests that tries a plugin out on random clusters.

    def test_my_plugin_meets_the_requirements():
        check_plugin(MyPlugin)

The framework shares answers between equal pods, asks about changed nodes only, and wakes rejected pods by hints. All of
that rests on requirements for plugins; each is a check here, and a failure says what was required, on which
cluster that was not met, and the seed that repeats it. PreBind, Bind and PostBind talk to a server and are not called.
"""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pilotage.api.plugin import Plugin
from pilotage.api.views import Handle
from pilotage.framework.errors import ProfileError
from pilotage.framework.plugin_args import arguments_of
from pilotage.framework.plugin_checks import plugin_problems
from pilotage.framework.profile import make_plugin
from pilotage.framework.profile_spec import PluginChoice
from pilotage.rng import seeded
from pilotage.testing.builders import NodeBuilder, PodBuilder
from pilotage.testing.fake_handle import FakeHandle
from pilotage.testing.plugin_check.answers import OddAnswer
from pilotage.testing.plugin_check.random_kinds import RandomKinds
from pilotage.testing.plugin_check.random_objects import RandomObjects
from pilotage.testing.plugin_check.requirements import REQUIREMENTS, Broken
from pilotage.testing.plugin_check.vocabulary import vocabulary_of
from pilotage.testing.plugin_check.world import RandomCluster

CHECKS: Final = (
    "signatures",
    "exceptions",
    "answers",
    *(requirement.name for requirement in REQUIREMENTS),
)
"""What is checked; names for `skip`."""
DEFAULT_WORLDS: Final = 40


class PluginCheckFailed(AssertionError):
    """A plugin does not meet requirements; the text says which and how."""

    def __init__(self, plugin: str, findings: Sequence[Broken], seed: int) -> None:
        self.findings = tuple(findings)
        heading = f"{plugin}: {len(findings)} requirement{' is' if len(findings) == 1 else 's are'} not met"
        super().__init__("\n".join([f"{heading} (seed {seed})", *(_paragraph(finding) for finding in findings)]))


def check_plugin(
    plugin: type[Plugin] | Plugin | Callable[[Handle], Plugin],
    *,
    args: Any = None,
    nodes: Iterable[NodeBuilder] = (),
    pods: Iterable[PodBuilder] = (),
    objects: Iterable[Mapping[str, Any]] = (),
    skip: Iterable[str] = (),
    worlds: int = DEFAULT_WORLDS,
    seed: int = 1,
) -> None:
    """Raise PluginCheckFailed if the plugin does not keep what the framework relies on.

    `plugin` is a class (made anew for every cluster, with a handle and `args` if it wants them), a function of a handle
    that makes one, or an instance that needs no cluster. `nodes` and `pods` are samples of what it is about; the words
    in its source are known without that. `objects` are samples of the kinds that it watches, as they stand in files;
    without any they are whatever the kind's type allows. `skip` leaves checks out by their names in `CHECKS`.
    """
    left_out = frozenset(skip)
    unknown = sorted(left_out.difference(CHECKS))
    if unknown:
        raise ValueError(f"there is no check named {', '.join(unknown)}; there are: {', '.join(CHECKS)}")
    subject = _Subject(plugin, args)
    findings = [] if "signatures" in left_out else subject.static_findings()
    if not findings:
        findings = _Trials(subject, left_out, seed, tuple(nodes), tuple(pods), tuple(objects)).findings(worlds)
    if findings:
        raise PluginCheckFailed(subject.name, findings, seed)


class _Subject:
    """The plugin under test and how to make it."""

    def __init__(self, plugin: type[Plugin] | Plugin | Callable[[Handle], Plugin], args: Any) -> None:
        self._plugin = plugin
        self._args = args
        self.cls: type[Plugin] = self._class()
        self.name = self.cls.plugin_name()

    def _class(self) -> type[Plugin]:
        if isinstance(self._plugin, type):
            return self._plugin
        return type(self._plugin if isinstance(self._plugin, Plugin) else self._plugin(FakeHandle()))

    def static_findings(self) -> list[Broken]:
        problems = plugin_problems(self.cls)
        return [Broken("signatures", "can be called by the framework", [str(problem.message)]) for problem in problems]

    @property
    def args(self) -> Any:
        if self.cls.args_type is None or isinstance(self._args, self.cls.args_type):
            return self._args
        return arguments_of(self.name, self.cls.args_type, self._args or {})

    def make(self, handle: FakeHandle) -> Plugin:
        if isinstance(self._plugin, Plugin):
            return self._plugin
        if isinstance(self._plugin, type):
            choice = PluginChoice(self.name, args={} if self._args is None else self._args)
            return make_plugin("check_plugin", choice, self._plugin, handle)
        return self._plugin(handle)


@dataclass(slots=True)
class _Trials:
    """Random clusters until every requirement has failed or the number of clusters is reached."""

    subject: _Subject
    left_out: frozenset[str]
    seed: int
    nodes: tuple[NodeBuilder, ...]
    pods: tuple[PodBuilder, ...]
    objects: tuple[Mapping[str, Any], ...] = ()

    def findings(self, worlds: int) -> list[Broken]:
        watches = self.subject.cls.watches
        try:
            words = vocabulary_of(self.subject.make(FakeHandle(watches=watches)), self.subject.args)
            found: dict[str, Broken] = {}
            for number in range(worlds):
                rng = seeded(self.seed * 100_003 + number)
                kinds = RandomKinds(rng, words, watches, self.objects)
                world = RandomCluster(rng, RandomObjects(rng, words, self.nodes, self.pods), self.subject.make, kinds)
                self._try(world, found)
        except ProfileError as error:
            return [Broken("exceptions", "can be made", [str(error)])]
        return [found[name] for name in CHECKS if name in found]

    def _try(self, world: RandomCluster, found: dict[str, Broken]) -> None:
        for requirement in REQUIREMENTS:
            if requirement.name in found or requirement.name in self.left_out or not requirement.concerns(world.plugin):
                continue
            try:
                broken = requirement.broken(world)
            except OddAnswer as error:
                broken = Broken("answers", "answers what its points know", [str(error)])
            except Exception as error:
                broken = _raised(error)
            if broken is not None and broken.check not in self.left_out:
                found.setdefault(broken.check, broken)


def _raised(error: Exception) -> Broken:
    """An exception that came out of the plugin; a write into a column breaks a requirement of its own."""
    frames = list(traceback.walk_tb(error.__traceback__))
    own = [(frame, line) for frame, line in frames if isinstance(frame.f_locals.get("self"), Plugin)]
    if not own:
        raise error
    frame, line = own[-1]
    where = f"{frame.f_code.co_filename}:{line}: {linecache.getline(frame.f_code.co_filename, line).strip()}"
    if isinstance(error, ValueError) and "read-only" in str(error):
        return Broken("inputs", "does not change what it is given", ["it writes into a column:", where])
    return Broken("exceptions", "never raises to reject", [f"{type(error).__name__}: {error}", where])


def _paragraph(finding: Broken) -> str:
    return "\n".join(
        [f"* {finding.check}: a plugin {finding.requirement}", *(f"    {line}" for line in finding.evidence)]
    )
