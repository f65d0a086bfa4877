"""Manifests from files: what `-f` names, read completely before anything is done with it.

A path is a file (YAML with any number of documents, or JSON) or a directory, of which the .yaml, .yml and .json files
are taken in order of their names, without going deeper. A document of kind List stands for its items. All problems of
all files are collected, so that one run shows everything that is to be fixed; each names file, document and field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from pilotage.kube_yaml import YamlError, documents

Object: TypeAlias = dict[str, Any]

_SUFFIXES: Final = (".json", ".yaml", ".yml")


class ManifestError(Exception):
    """Manifests that cannot be used; one line per problem, nothing has been done with any of them."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object as a file has it. `where` names file and document for messages."""

    where: str
    obj: Object

    @property
    def kind(self) -> str:
        return str(self.obj["kind"])

    @property
    def api_version(self) -> str:
        return str(self.obj["apiVersion"])

    @property
    def name(self) -> str:
        return str(self.obj["metadata"]["name"])


def read_manifests(paths: Iterable[Path]) -> list[Manifest]:
    """The objects of all files, in the order in which they stand there; ManifestError with every problem."""
    reader = _Reader()
    for path in paths:
        reader.read(path)
    if reader.problems:
        raise ManifestError(reader.problems)
    return reader.manifests


class _Reader:
    def __init__(self) -> None:
        self.manifests: list[Manifest] = []
        self.problems: list[str] = []

    def read(self, path: Path) -> None:
        try:
            files = list(_files(path))
        except OSError as error:
            self.problems.append(f"{path}: cannot be read: {_reason(error)}")
            return
        if not files:
            self.problems.append(f"{path}: has no {', '.join(_SUFFIXES)} file")
        for file in files:
            self._read_file(file)

    def _read_file(self, file: Path) -> None:
        try:
            for document in documents(file.read_bytes()):
                self._take(f"{file}: document {document.number}", document.value)
        except OSError as error:
            self.problems.append(f"{file}: cannot be read: {_reason(error)}")
        except YamlError as error:
            self.problems.append(f"{file}: {error}")

    def _take(self, where: str, value: Any) -> None:
        if not isinstance(value, dict):
            self.problems.append(f"{where}: expected an object, got {_type_name(value)}")
            return
        kind = value.get("kind")
        if isinstance(kind, str) and kind.endswith("List") and isinstance(value.get("items"), list):
            for at, item in enumerate(value["items"]):
                self._take(f"{where}: items[{at}]", _typed(item, value))
            return
        problem = _problem(value)
        if problem:
            self.problems.append(f"{where}: {problem}")
        else:
            self.manifests.append(Manifest(where, value))


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES and file.is_file())
    else:
        yield path


def _typed(item: Any, container: Object) -> Any:
    """The items of a PodList need not say that they are Pods."""
    kind = str(container["kind"]).removesuffix("List")
    if kind and isinstance(item, dict) and "kind" not in item:
        return {"apiVersion": container.get("apiVersion"), "kind": kind, **item}
    return item


def _problem(obj: Object) -> str:
    """Why this cannot be an object with an identity, "" if it can."""
    for field in ("apiVersion", "kind"):
        value = obj.get(field)
        if not isinstance(value, str) or not value:
            return f"{field}: expected a text, got {_shown(value)}"
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return f"{obj['kind']}: metadata: expected an object, got {_shown(metadata)}"
    name = metadata.get("name")
    if name is None and metadata.get("generateName"):
        return f"{obj['kind']}: metadata.generateName: would make another object at every start; write metadata.name"
    if not isinstance(name, str) or not name:
        return f"{obj['kind']}: metadata.name: expected a text, got {_shown(name)}"
    namespace = metadata.get("namespace", "")
    if not isinstance(namespace, str):
        return f"{obj['kind']} {name}: metadata.namespace: expected a text, got {_shown(namespace)}"
    return ""


def _shown(value: Any) -> str:
    if value is None or value == "":
        return "nothing"
    return f"{_type_name(value)} {value!r}" if isinstance(value, (bool, int, float, str)) else _type_name(value)


def _type_name(value: Any) -> str:
    names = {str: "text", bool: "boolean", int: "number", float: "number", list: "a list", dict: "an object"}
    return names.get(type(value), "nothing")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
