"""What can be wrong with a plugin class, seen before the first pod arrives, each with the line and the way out."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from typing import Any, Final

from pilotage.api import points
from pilotage.api.events import Action, ClusterEvent, Resource
from pilotage.api.kinds import Kind, UnknownKind, own_kind
from pilotage.api.plugin import Plugin
from pilotage.config.decode import unreadable_fields
from pilotage.config.problems import Problem

_INTERFACES: Final = (*points.ALL_POINTS, points.PreFilterExtensions, points.Details)
_PART_OF: Final[dict[type, tuple[type, ...]]] = {
    points.NormalizeScore: (points.Score, points.VectorScore),
    points.PreFilterExtensions: (points.PreFilter,),
    points.Details: (points.Filter, points.VectorFilter),
}
"""What is called only where another one is."""
_OFFERED: Final = ("handle", "args")
_HINT_PARAMETERS: Final = ("self", "pod", "old", "new")
_NARROW_PARAMETERS: Final = ("self", "old", "new")


def plugin_problems(cls: type[Plugin]) -> list[Problem]:
    """Everything that would keep this class from working."""
    found = [*_name_problems(cls), *_point_problems(cls), *_idle_problems(cls), *_missing_methods(cls)]
    found += [*_signature_problems(cls), *_marked_problems(cls), *_init_problems(cls), *_args_problems(cls)]
    found += _watch_problems(cls)
    return sorted(set(found))


def class_line(cls: type) -> int:
    """The line of the class statement; 0 if the source is not at hand."""
    try:
        return inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        return 0


def _name_problems(cls: type[Plugin]) -> Iterator[Problem]:
    name: object = cls.name
    if not isinstance(name, str):
        yield Problem(class_line(cls), "", f"{cls.__name__}.name must be a string, not {name!r}")
    elif name != name.strip() or name == "*":
        yield Problem(class_line(cls), "", f'{cls.__name__}.name: "{name}" cannot be the name of a plugin')


def _point_problems(cls: type[Plugin]) -> Iterator[Problem]:
    if not issubclass(cls, tuple(points.ALL_POINTS)):
        message = (
            f"{cls.__name__} serves no extension point; name at least one beside Plugin, "
            f"such as class {cls.__name__}(Plugin, Filter)"
        )
        yield Problem(class_line(cls), "", message)


def _idle_problems(cls: type[Plugin]) -> Iterator[Problem]:
    """What would never be called, or never be given, without anything else that is missing."""
    line = class_line(cls)
    for part, wholes in _PART_OF.items():
        if issubclass(cls, part) and not issubclass(cls, wholes):
            names = " or ".join(whole.__name__ for whole in wholes)
            message = f"{cls.__name__} derives from {part.__name__} without {names}: it would never be called"
            yield Problem(line, "", f"{message}; derive from {names} too")
    kinds: object = cls.raw_kinds
    if isinstance(kinds, str) or not isinstance(kinds, Iterable) or not all(isinstance(kind, str) for kind in kinds):
        message = f'{cls.__name__}.raw_kinds must be a set of kinds, such as frozenset(["Pod"]), not {kinds!r}'
        yield Problem(line, "", message)


def _missing_methods(cls: type[Plugin]) -> Iterator[Problem]:
    own = [name for name, value in vars(cls).items() if inspect.isfunction(value) and not name.startswith("__")]
    for name in sorted(getattr(cls, "__abstractmethods__", ())):
        owner, wanted = _base_method(cls, name)
        message = f"{cls.__name__} does not implement {name}{_parameters(wanted)}, which {owner.__name__} asks for"
        close = get_close_matches(name, [other for other in own if not _is_interface_method(other)], 1)
        if close:
            yield Problem(_line(vars(cls)[close[0]]), "", f'{message} (is "{close[0]}" meant to be it?)')
        else:
            yield Problem(class_line(cls), "", message)


def _signature_problems(cls: type[Plugin]) -> Iterator[Problem]:
    for base in (*_INTERFACES, Plugin):
        for name, wanted in _methods(base) if issubclass(cls, base) else ():
            own = inspect.getattr_static(cls, name)
            if own is wanted or name in getattr(cls, "__abstractmethods__", ()):
                continue
            yield from _signature_problem(cls, name, own, wanted)


def _signature_problem(cls: type, name: str, own: Any, wanted: Callable[..., Any]) -> Iterator[Problem]:
    function = own.__func__ if isinstance(own, staticmethod | classmethod) else own
    if not callable(function):
        yield Problem(class_line(cls), "", f"{cls.__name__}.{name} must be a method, not {function!r}")
        return
    is_async, must_be_async = inspect.iscoroutinefunction(function), inspect.iscoroutinefunction(wanted)
    if is_async != must_be_async:
        form = "async def" if must_be_async else "def, not async def"
        yield Problem(
            _line(function), "", f"{cls.__name__}.{name} must be written as {form} {name}{_parameters(wanted)}"
        )
    if not _accepts(function, _positional(wanted)[1:] if isinstance(own, staticmethod) else _positional(wanted)):
        message = f"{cls.__name__}.{name} must take {_parameters(wanted)}, not {_parameters(function)}"
        yield Problem(_line(function), "", message)


def _marked_problems(cls: type[Plugin]) -> Iterator[Problem]:
    """Methods under @on_event and @narrows."""
    marks = (
        ("__pilotage_events__", "@on_event", _HINT_PARAMETERS),
        ("__pilotage_narrows__", "@narrows", _NARROW_PARAMETERS),
    )
    for name, value in inspect.getmembers_static(cls, inspect.isfunction):
        for attribute, mark, wanted in marks:
            if hasattr(value, attribute) and not _accepts(value, wanted):
                message = f"{cls.__name__}.{name} is under {mark} and must take ({', '.join(wanted)})"
                yield Problem(_line(value), "", f"{message}, not {_parameters(value)}")
    if cls.registrations is Plugin.registrations:
        yield from _idle_narrowings(cls)


def _idle_narrowings(cls: type[Plugin]) -> Iterator[Problem]:
    """Methods under @narrows for events of which the plugin does not hear."""
    methods = inspect.getmembers_static(cls, inspect.isfunction)
    heard = [*cls.always_queue_on]
    for _, value in methods:
        heard += getattr(value, "__pilotage_events__", ())
    for name, value in methods:
        for event in getattr(value, "__pilotage_narrows__", ()):
            if not any(event.overlaps(other) for other in heard):
                mark = f"{event.resource}, {'|'.join(event.action_names)}"
                message = f"{cls.__name__}.{name} narrows events ({mark}) of which the plugin does not hear"
                yield Problem(_line(value), "", f"{message}; put a hint for them under @on_event")


def _watch_problems(cls: type[Plugin]) -> Iterator[Problem]:
    """Kinds that a plugin watches, and events of kinds that it does not."""
    watches: object = cls.watches
    if not isinstance(watches, tuple) or not all(isinstance(kind, Kind) for kind in watches):
        yield Problem(class_line(cls), "", f"{cls.__name__}.watches must be a tuple of Kind, not {watches!r:.200}")
        return
    for event in cls.always_queue_on:
        yield from _event_problems(cls, event, class_line(cls), "always_queue_on")
    for name, value in inspect.getmembers_static(cls, inspect.isfunction):
        for attribute in ("__pilotage_events__", "__pilotage_narrows__"):
            for event in getattr(value, attribute, ()):
                yield from _event_problems(cls, event, _line(value), name)


def _event_problems(cls: type[Plugin], event: ClusterEvent, line: int, where: str) -> Iterator[Problem]:
    if isinstance(event.resource, Resource):
        return
    try:
        own_kind(event.resource, cls.watches)
    except UnknownKind as error:
        yield Problem(line, "", f"{cls.__name__}.{where}: {error}; name it there, or take one of {Resource.__name__}")
    if Action(0) != event.action & Action.UPDATE != Action.UPDATE:
        message = "of a kind that a plugin watches there are ADD, UPDATE and DELETE only"
        yield Problem(line, "", f"{cls.__name__}.{where}: {event.resource}: {message}")


def _init_problems(cls: type[Plugin]) -> Iterator[Problem]:
    if cls.__init__ is object.__init__:
        return
    for name, parameter in list(inspect.signature(cls.__init__).parameters.items())[1:]:
        is_free = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if name not in _OFFERED and not is_free and parameter.default is parameter.empty:
            message = f"{cls.__name__}.__init__ asks for {name}; it may take handle and args"
            yield Problem(_line(cls.__init__), "", message)


def _args_problems(cls: type[Plugin]) -> Iterator[Problem]:
    if cls.args_type is None:
        return
    if not dataclasses.is_dataclass(cls.args_type):
        yield Problem(
            class_line(cls), "", f"{cls.__name__}.args_type must be a frozen dataclass, not {cls.args_type!r}"
        )
        return
    try:
        unreadable = list(unreadable_fields(cls.args_type))
    except (NameError, RecursionError) as error:
        unreadable = []
        yield Problem(class_line(cls.args_type), "", f"{cls.args_type.__name__}: {error}")
    for path, hint in unreadable:
        message = f"{cls.args_type.__name__}.{path} has type {hint}, which configuration files cannot carry"
        yield Problem(class_line(cls.args_type), "", message)


def _methods(base: type) -> list[tuple[str, Callable[..., Any]]]:
    """What a subclass may override and the framework calls."""
    if base is Plugin:
        return [("sign", Plugin.sign), ("facts_version", Plugin.facts_version), ("close", Plugin.close)]
    return [(name, value) for name, value in vars(base).items() if inspect.isfunction(value)]


def _is_interface_method(name: str) -> bool:
    return any(name in vars(base) for base in _INTERFACES)


def _base_method(cls: type, name: str) -> tuple[type, Callable[..., Any]]:
    owner = next(base for base in cls.__mro__[1:] if name in vars(base))
    return owner, vars(owner)[name]


def _positional(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _accepts(function: Callable[..., Any], wanted: tuple[str, ...]) -> bool:
    """Whether it can be called with as many arguments, by position: that is how the framework calls."""
    try:
        inspect.signature(function).bind(*wanted)
    except TypeError:
        return False
    return True


def _parameters(function: Callable[..., Any]) -> str:
    return f"({', '.join(inspect.signature(function).parameters)})"


def _line(function: Any) -> int:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code.co_firstlineno if code is not None else 0
