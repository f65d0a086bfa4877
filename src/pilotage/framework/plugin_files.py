"""Plugins from outside: from a Python file, from installed packages, or handed over as classes.

A file is run as a module of its own and searched for plugin classes. What is wrong with it (it cannot be read, it is
no Python, others may write it, it cannot be imported, it has no plugin, a method is missing or takes other parameters)
is rejected here, with the line and the way out, and not when the first pod arrives.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import logging
import os
import re
import sys
import traceback
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Final

from msgspec import Struct

import pilotage.api
from pilotage.api import points
from pilotage.api.plugin import Plugin
from pilotage.config.problems import ConfigError, Problem
from pilotage.framework.plugin_checks import class_line, plugin_problems
from pilotage.framework.plugin_trust import distrust
from pilotage.model.suggestions import suggestion

log = logging.getLogger(__name__)

ENTRY_POINT_GROUP: Final = "pilotage.plugins"
_NOT_IN_OUR_API: Final = re.compile(r"cannot import name '(\w+)' from 'pilotage\.api'")
_HOW_TO_START: Final = "pilotage plugin new NAME writes a file to start from"


class PluginFileError(ConfigError):
    """A file, package or class that cannot be used as a plugin: every problem with its line and the way out."""


class LoadedPlugin(Struct, frozen=True):
    """A plugin class, where it comes from, in words, and the hash of the file that it was defined in."""

    cls: type[Plugin]
    origin: str
    sha256: str = ""
    """In hexadecimal; "" if there is no such file, or if it is our own."""

    @property
    def name(self) -> str:
        return self.cls.plugin_name()


def load_plugin_files(paths: Iterable[Path]) -> list[LoadedPlugin]:
    """The plugins of all files; PluginFileError for the first file that cannot be used."""
    loaded = []
    for path in paths:
        source = _source(path)
        digest = hashlib.sha256(source.encode()).hexdigest()
        loaded += [LoadedPlugin(cls, str(path), digest) for cls in _classes_of(path, source)]
    return loaded


def named_files(names: Iterable[str], folder: Path, more: Iterable[Path] = ()) -> list[Path]:
    """The files that a configuration in `folder` names, and more of them; each once."""
    return list({path.resolve(): path for path in (*(folder / name for name in names), *more)}.values())


def load_plugin_file(path: Path) -> list[type[Plugin]]:
    """The plugin classes of a file, in the order of their definition."""
    return [plugin.cls for plugin in load_plugin_files([path])]


def _classes_of(path: Path, source: str) -> list[type[Plugin]]:
    module = _run(path, source)
    classes = _plugin_classes(module)
    if not classes:
        raise PluginFileError(str(path), [_no_plugin(module)])
    problems = [problem for cls in classes for problem in plugin_problems(cls)]
    names = [cls.plugin_name() for cls in classes]
    for at, cls in enumerate(classes):
        if names[at] in names[:at]:
            problems.append(Problem(class_line(cls), "", f'a plugin named "{names[at]}" already exists in this file'))
    if problems:
        raise PluginFileError(str(path), problems)
    for problem in _overlooked(module, classes):
        log.warning("%s:%d: %s", path, problem.line, problem.message)
    return classes


def installed_plugins() -> list[LoadedPlugin]:
    """The plugins of installed packages, by their entry points."""
    return [_installed(entry) for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda e: e.name)]


def given_plugins(plugins: Iterable[type[Plugin] | LoadedPlugin]) -> list[LoadedPlugin]:
    """Classes from the user's own program, checked like those of a file, which may be among them."""
    return [plugin if isinstance(plugin, LoadedPlugin) else _given(plugin) for plugin in plugins]


def _given(cls: type[Plugin]) -> LoadedPlugin:
    where = f"{cls.__module__}.{cls.__qualname__}"
    _reject_unusable(cls, where)
    return LoadedPlugin(cls, where, _digest_of_module(cls))


def reject_duplicates(plugins: Sequence[LoadedPlugin]) -> None:
    """A name is given once; PluginFileError for the later one."""
    seen: dict[str, str] = {}
    for plugin in plugins:
        if plugin.name in seen:
            message = f'a plugin named "{plugin.name}" already exists ({seen[plugin.name]}); give this one another name'
            raise PluginFileError(plugin.origin, [Problem(class_line(plugin.cls), "", message)])
        seen[plugin.name] = plugin.origin


def _source(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            problem = distrust(path, os.fstat(file.fileno()))
            if problem:
                raise PluginFileError(str(path), [Problem(0, "", f"is not loaded: {problem}")])
            return file.read()
    except FileNotFoundError as error:
        raise PluginFileError(str(path), [Problem(0, "", f"there is no such file; {_HOW_TO_START}")]) from error
    except OSError as error:
        message = f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise PluginFileError(str(path), [Problem(0, "", message)]) from error
    except UnicodeDecodeError as error:
        raise PluginFileError(str(path), [Problem(0, "", "is no Python: it is not UTF-8 text")]) from error


def _run(path: Path, source: str) -> ModuleType:
    """Import the file under a name of its own, so that two files of the same name do not meet."""
    full = path.resolve()
    name = f"pilotage_plugin_{full.stem}_{hashlib.sha256(str(full).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, full)
    if spec is None:
        raise PluginFileError(str(path), [Problem(0, "", "is no Python file: its name must end in .py")])
    module = importlib.util.module_from_spec(spec)
    if str(full.parent) not in sys.path:
        sys.path.append(str(full.parent))  # for modules that lie beside it
    sys.modules[name] = module
    try:
        exec(compile(source, str(full), "exec", dont_inherit=True), module.__dict__)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise PluginFileError(str(path), [_import_problem(error, full)]) from error
    return module


def _import_problem(error: BaseException, file: Path) -> Problem:
    if isinstance(error, SyntaxError) and (error.filename is None or Path(error.filename) == file):
        return Problem(error.lineno or 0, "", f"is no valid Python: {error.msg}")
    lines = [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    unknown_name = _NOT_IN_OUR_API.match(str(error))
    message = f"cannot be imported: {type(error).__name__}: {error}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        message += f" (install it for {sys.executable}, or put it beside the file)"
    elif isinstance(error, ImportError) and unknown_name:
        near = suggestion(unknown_name[1], pilotage.api.__all__)
        message = f"cannot be imported: pilotage.api has no {unknown_name[1]}{near}"
    return Problem(lines[-1] if lines else 0, "", message)


def _plugin_classes(module: ModuleType) -> list[type[Plugin]]:
    """Plugins defined in the file itself; private names and bases of others are the author's own business."""
    own = _own_classes(module)
    plugins = [cls for cls in own if issubclass(cls, Plugin) and not cls.__name__.startswith("_")]
    return [cls for cls in plugins if not any(cls in other.__mro__[1:] for other in plugins)]


def _overlooked(module: ModuleType, plugins: Sequence[type[Plugin]]) -> list[Problem]:
    """Public classes that look like plugins and are none."""
    found = []
    for cls in _own_classes(module):
        if cls in plugins or cls.__name__.startswith("_") or not issubclass(cls, tuple(points.ALL_POINTS)):
            continue
        derived = [other.__name__ for other in _own_classes(module) if cls in other.__mro__[1:]]
        if issubclass(cls, Plugin) and not inspect.isabstract(cls):
            message = f"{cls.__name__} is no plugin itself, because {', '.join(derived)} derives from it"
            found.append(Problem(class_line(cls), "", f"{message}; call it _{cls.__name__} if that is meant"))
        elif not issubclass(cls, Plugin) and not derived:
            message = f"{cls.__name__} is no plugin, because it does not derive from Plugin"
            found.append(Problem(class_line(cls), "", f"{message}; call it _{cls.__name__} if that is meant"))
    return found


def _own_classes(module: ModuleType) -> list[type]:
    return list(
        dict.fromkeys(c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__)
    )


def _no_plugin(module: ModuleType) -> Problem:
    for cls in vars(module).values():
        if isinstance(cls, type) and cls.__module__ == module.__name__ and issubclass(cls, tuple(points.ALL_POINTS)):
            bases = ", ".join(["Plugin", *(base.__name__ for base in cls.__bases__)])
            message = f"{cls.__name__} does not derive from Plugin: write class {cls.__name__}({bases})"
            return Problem(class_line(cls), "", message)
    message = "has no plugin: no class in it derives from pilotage.api.Plugin and the points that it serves"
    return Problem(0, "", f"{message}; {_HOW_TO_START}")


def _installed(entry: EntryPoint) -> LoadedPlugin:
    origin = f"package {entry.dist.name} {entry.dist.version}" if entry.dist is not None else "an installed package"
    where = f"entry point {entry.name} of {origin} ({entry.value})"
    try:
        cls = entry.load()
    except Exception as error:  # the package may do anything when it is imported
        message = f"cannot be imported: {type(error).__name__}: {error}; repair or uninstall the package"
        raise PluginFileError(where, [Problem(0, "", message)]) from error
    _reject_unusable(cls, where)
    return LoadedPlugin(cls, origin, _digest_of_module(cls))


def _digest_of_module(cls: type[Plugin]) -> str:
    """Of the file that defines the class; the rest of a package is the business of the user who installed it."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else ""
    except OSError:
        return ""


def _reject_unusable(cls: object, where: str) -> None:
    if not (isinstance(cls, type) and issubclass(cls, Plugin)):
        raise PluginFileError(where, [Problem(0, "", "is no class that derives from pilotage.api.Plugin")])
    problems = plugin_problems(cls)
    if problems:
        raise PluginFileError(where, problems)
