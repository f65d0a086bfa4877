"""A configuration file becomes a `SchedulerConfiguration`, or a `ConfigError` with everything that is wrong with it.

A file holds a KubeSchedulerConfiguration, a PilotageConfiguration, or both as two YAML documents. Also read is the form
of KEP-624: `plugins` and `pluginConfig` at the top, which is one profile for default-scheduler.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pilotage.config import obsolete
from pilotage.config.decode import decode_partly, description
from pilotage.config.kinds import (
    DEFAULT_SCHEDULER_NAME,
    KIND,
    PILOTAGE_API_VERSION,
    PILOTAGE_KIND,
    KubeSchedulerConfiguration,
    PilotageConfiguration,
    PluginArguments,
    PluginRef,
    PluginSet,
    Point,
    Problems,
    ProfileConfiguration,
    SchedulerConfiguration,
)
from pilotage.config.located import Located, located, read_documents
from pilotage.config.problems import ConfigError, Problem
from pilotage.model.suggestions import suggestion

_KEP_624_FIELDS: Final = ("plugins", "pluginConfig")


def default_configuration() -> SchedulerConfiguration:
    """What applies when there is no file."""
    return SchedulerConfiguration()


def load_configuration(path: Path | str) -> SchedulerConfiguration:
    """Read a file; ConfigError with all its problems."""
    return parse_configuration(read_text(path), str(path))


def parse_configuration(text: str, source: str = "") -> SchedulerConfiguration:
    """Read a configuration from its text; `source` names it in messages."""
    configuration, problems = examine_configuration(text, source)
    if problems:
        raise ConfigError(source, problems)
    return configuration


def examine_configuration(text: str, source: str = "") -> tuple[SchedulerConfiguration, list[Problem]]:
    """What could be read of a configuration, and everything that is wrong with it."""
    documents, problems = read_documents(text)
    if not documents and not problems:
        problems.append(Problem(0, "", f"is empty; it should hold a {KIND}"))
    return _ConfigurationLoader(source, problems).load(documents)


def configuration_of(value: Mapping[str, Any], source: str = "") -> SchedulerConfiguration:
    """Read a configuration that is already a JSON value."""
    configuration, problems = _ConfigurationLoader(source, []).load([located(value)])
    if problems:
        raise ConfigError(source, problems)
    return configuration


def read_text(path: Path | str) -> str:
    """The text of a configuration file; ConfigError if there is none."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        message = f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise ConfigError(str(path), [Problem(0, "", message)]) from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), [Problem(0, "", "cannot be read: is not UTF-8 text")]) from error


@dataclass(frozen=True, slots=True)
class _ConfigurationFile(KubeSchedulerConfiguration):
    """The fields that a file may have besides those that are kept."""

    api_version: str = ""
    kind: str = ""
    plugins: Mapping[Point, PluginSet | tuple[PluginRef, ...]] = dataclasses.field(default_factory=dict)
    plugin_config: tuple[PluginArguments, ...] = ()

    def __post_init__(self) -> None:
        KubeSchedulerConfiguration.__post_init__(self)
        if self.plugins or self.plugin_config:
            profile = ProfileConfiguration("", None, self.plugins, self.plugin_config)
            object.__setattr__(self, "profiles", (profile,))
        if not self.profiles:
            object.__setattr__(self, "profiles", (ProfileConfiguration(),))
        if len(self.profiles) == 1 and not self.profiles[0].scheduler_name:
            named = dataclasses.replace(self.profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME)
            object.__setattr__(self, "profiles", (named,))

    def problems(self) -> Problems:
        is_one_profile = bool(self.plugins or self.plugin_config)
        for path, message in KubeSchedulerConfiguration.problems(self):
            yield path.removeprefix("profiles[0].") if is_one_profile else path, message

    def kept(self) -> KubeSchedulerConfiguration:
        fields = dataclasses.fields(KubeSchedulerConfiguration)
        return KubeSchedulerConfiguration(**{field.name: getattr(self, field.name) for field in fields})


@dataclass(frozen=True, slots=True)
class _PilotageFile(PilotageConfiguration):
    api_version: str = ""
    kind: str = ""

    def kept(self) -> PilotageConfiguration:
        fields = dataclasses.fields(PilotageConfiguration)
        return PilotageConfiguration(**{field.name: getattr(self, field.name) for field in fields})


class _ConfigurationLoader:
    def __init__(self, source: str, problems: list[Problem]) -> None:
        self._source = source
        self._problems = problems
        self._scheduler: KubeSchedulerConfiguration | None = None
        self._additions: PilotageConfiguration | None = None

    def load(self, documents: list[Located]) -> tuple[SchedulerConfiguration, list[Problem]]:
        for document in documents:
            self._read(document)
        scheduler = self._scheduler or KubeSchedulerConfiguration()
        configuration = SchedulerConfiguration(scheduler, self._additions or PilotageConfiguration(), self._source)
        return configuration, [_with_way_out(problem) for problem in self._problems]

    def _read(self, document: Located) -> None:
        if not isinstance(document.value, Mapping):
            self._reject(document, "", f"expected an object of kind {KIND}, got {description(document)}")
            return
        kind, version = self._text(document, "kind"), self._text(document, "apiVersion")
        if not kind and not version and any(name in document.value for name in _KEP_624_FIELDS):
            kind, version = KIND, obsolete.API_VERSION
        if kind == PILOTAGE_KIND:
            self._read_additions(document, version)
        elif kind == KIND:
            self._read_scheduler(document, version)
        else:
            self._reject_kind(document, kind)

    def _read_scheduler(self, document: Located, version: str) -> None:
        if self._scheduler is not None:
            self._reject(document, "kind", f"there is a second {KIND} in this file")
        problem = obsolete.version_problem(version) if version else "Required value"
        if problem is not None:
            self._reject(document, "apiVersion", problem)
        assert isinstance(document.value, Mapping)
        for name in _KEP_624_FIELDS:
            if name in document.value and "profiles" in document.value:
                self._reject(document, name, f"either profiles or {name} at the top (one profile), not both")
        read = decode_partly(_ConfigurationFile, document, self._problems)
        self._scheduler = read.kept() if read is not None else KubeSchedulerConfiguration()

    def _read_additions(self, document: Located, version: str) -> None:
        if self._additions is not None:
            self._reject(document, "kind", f"there is a second {PILOTAGE_KIND} in this file")
        if version != PILOTAGE_API_VERSION:
            problem = f'Unsupported value: "{version}": supported values: "{PILOTAGE_API_VERSION}"'
            self._reject(document, "apiVersion", problem)
        read = decode_partly(_PilotageFile, document, self._problems)
        self._additions = read.kept() if read is not None else PilotageConfiguration()

    def _reject_kind(self, document: Located, kind: str) -> None:
        if not kind:
            self._reject(
                document, "kind", f'Required value: write "kind: {KIND}" and "apiVersion: {obsolete.API_VERSION}"'
            )
            return
        known = (KIND, PILOTAGE_KIND)
        supported = ", ".join(f'"{name}"' for name in known)
        near = suggestion(kind, known)
        self._reject(document, "kind", f'Unsupported value: "{kind}"{near}: supported values: {supported}')

    def _text(self, document: Located, name: str) -> str:
        assert isinstance(document.value, Mapping)
        given = document.value.get(name)
        return given.value if given is not None and isinstance(given.value, str) else ""

    def _reject(self, document: Located, path: str, message: str) -> None:
        self._problems.append(Problem(document.line_of(path), path, message))


def _with_way_out(problem: Problem) -> Problem:
    """Fields of older versions are not just unknown: there is something to do instead."""
    instead = obsolete.FIELDS.get(problem.path)
    if instead is None or not problem.message.startswith("unknown field"):
        return problem
    return Problem(problem.line, problem.path, instead)
