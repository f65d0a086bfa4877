"""A file with Kueue's `Configuration` becomes a `QueueingConfiguration`, or a `ConfigError` with all that is wrong.

The document may stand alone, or in the ConfigMap in which Kueue's installation keeps it. Two versions are read,
v1beta2 and v1beta1 (see `written` for how they differ). Also read is the spelling of KEP-1282's first draft,
`waitForPodsReady.requeuingTimestamp`.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pilotage.config.decode import camel, decode_partly, description
from pilotage.config.load import read_text
from pilotage.config.located import Located, located, read_documents
from pilotage.config.problems import ConfigError, Problem
from pilotage.config.render import plain
from pilotage.jobs.configuration.kinds import (
    API_GROUP,
    API_VERSION,
    KIND,
    OLDER_API_VERSION,
    QueueingConfiguration,
)
from pilotage.jobs.configuration.unserved import OF_THE_MANAGER, unserved
from pilotage.jobs.configuration.written import WrittenConfiguration
from pilotage.model.suggestions import suggestion

log = logging.getLogger(__name__)

_MAP_KIND: Final = "ConfigMap"
_MAP_KEY: Final = "controller_manager_config.yaml"


def load_queueing(path: Path | str) -> QueueingConfiguration:
    """Read a file; ConfigError with all its problems. What it asks for in vain is logged."""
    text = read_text(path)
    configuration = parse_queueing(text, str(path))
    for problem in unserved_queueing(text):
        log.warning("%s", problem.text(str(path)))
    return configuration


def unserved_queueing(text: str) -> list[Problem]:
    """What a configuration without other problems asks for in vain."""
    document = _configuration_in(text)
    written = None if document is None else decode_partly(WrittenConfiguration, document, [])
    if document is None or written is None:
        return []
    return [Problem(document.line_of(path), path, message) for path, message in unserved(written)]


def without_effect(text: str) -> list[str]:
    """Fields that only Kueue's own manager has a use for."""
    document = _configuration_in(text)
    given = document.value if document is not None and isinstance(document.value, Mapping) else {}
    return sorted(name for one in OF_THE_MANAGER if (name := camel(one)) in given)


def _configuration_in(text: str) -> Located | None:
    """The document itself, out of its ConfigMap if it is in one; lines count from where it begins."""
    documents, _ = read_documents(text)
    if not documents:
        return None
    if _text(documents[0], "kind") != _MAP_KIND:
        return documents[0]
    assert isinstance(documents[0].value, Mapping)
    data = documents[0].value.get("data")
    inner = data.value.get(_MAP_KEY) if data is not None and isinstance(data.value, Mapping) else None
    found, _ = read_documents(inner.value) if inner is not None and isinstance(inner.value, str) else ([], [])
    return found[0] if found else None


def parse_queueing(text: str, source: str = "") -> QueueingConfiguration:
    """Read a configuration from its text; `source` names it in messages."""
    configuration, problems = examine_queueing(text)
    if problems:
        raise ConfigError(source, problems)
    return configuration


def queueing_of(value: Mapping[str, Any], source: str = "") -> QueueingConfiguration:
    """Read a configuration that is already a JSON value; without apiVersion and kind it is a v1beta2 one."""
    full = {"apiVersion": API_VERSION, "kind": KIND, **value}
    configuration, problems = _examine(located(full))
    if problems:
        raise ConfigError(source, problems)
    return configuration


def queueing_document(configuration: QueueingConfiguration) -> dict[str, Any]:
    """As a file would say it; `queueing_of` reads the same back."""
    readiness = {} if configuration.wait_for_pods_ready is not None else {"waitForPodsReady": {"enable": False}}
    return {"apiVersion": API_VERSION, "kind": KIND, **plain(configuration), **readiness}


def examine_queueing(text: str) -> tuple[QueueingConfiguration, list[Problem]]:
    """What could be read of a configuration, and everything that is wrong with it."""
    documents, problems = read_documents(text)
    if not documents:
        return QueueingConfiguration(), problems or [Problem(0, "", f"is empty; it should hold a {KIND}")]
    configuration, found = _examine_document(documents[0])
    for extra in documents[1:]:
        found.append(Problem(extra.line, "", f"there is more than one document; a file holds one {KIND}"))
    return configuration, [*problems, *found]


def is_queueing_text(text: str) -> bool:
    """Whether a configuration file is meant for workload queueing and not for the scheduler."""
    documents, _ = read_documents(text)
    return bool(documents) and (
        _text(documents[0], "kind") in (KIND, _MAP_KIND) or _text(documents[0], "apiVersion").startswith(API_GROUP)
    )


def _examine_document(document: Located) -> tuple[QueueingConfiguration, list[Problem]]:
    if _text(document, "kind") == _MAP_KIND:
        return _examine_config_map(document)
    return _examine(document)


def _examine_config_map(document: Located) -> tuple[QueueingConfiguration, list[Problem]]:
    """The configuration is a text inside of the ConfigMap; its lines follow the line of its key."""
    assert isinstance(document.value, Mapping)
    data = document.value.get("data")
    text = data.value.get(_MAP_KEY) if data is not None and isinstance(data.value, Mapping) else None
    if text is None or not isinstance(text.value, str):
        problem = Problem(document.line_of("data"), f"data.{_MAP_KEY}", f"Required value: the text of a {KIND}")
        return QueueingConfiguration(), [problem]
    configuration, problems = examine_queueing(text.value)
    return configuration, [dataclasses.replace(one, line=text.line + one.line) for one in problems]


def _text(document: Located, name: str) -> str:
    given = document.value.get(name) if isinstance(document.value, Mapping) else None
    return given.value if given is not None and isinstance(given.value, str) else ""


def _examine(document: Located) -> tuple[QueueingConfiguration, list[Problem]]:
    if not isinstance(document.value, Mapping):
        problem = Problem(document.line, "", f"expected an object of kind {KIND}, got {description(document)}")
        return QueueingConfiguration(), [problem]
    problems = [*_type_problems(document)]
    read = decode_partly(WrittenConfiguration, document, problems)
    return read.effective() if read is not None else QueueingConfiguration(), problems


def _type_problems(document: Located) -> Iterator[Problem]:
    for name, supported in (("kind", (KIND,)), ("apiVersion", (API_VERSION, OLDER_API_VERSION))):
        given = _text(document, name)
        if not given:
            yield Problem(document.line, name, f'Required value: write "{name}: {supported[0]}"')
        elif given not in supported:
            choice = ", ".join(f'"{one}"' for one in supported)
            near = suggestion(given, supported)
            yield Problem(
                document.line_of(name), name, f'Unsupported value: "{given}"{near}: supported values: {choice}'
            )
