"""Traces of SimKube (MessagePack, versions 1 to 3): owners of pods, and how long their pods ran.

SimKube notes when a Deployment (a Job, a custom resource) was applied and deleted, and for each of its pods when it
started and ended. So a pod is made of the owner's template for each of those lives. Where no lives were noted there are
as many pods as the owner asks for, until it is changed or deleted. There are no nodes in such a trace.

The format is one document; it is read as a whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from pilotage.clock import rfc3339_micro
from pilotage.lab.trace.content import RECORDED, Redaction, sighting
from pilotage.lab.trace.external_sort import in_order
from pilotage.lab.trace.format import VERSION, ObjectName, TraceHeader, TraceRecord
from pilotage.lab.trace.openb import ImportProblem
from pilotage.model.errors import DecodeError
from pilotage.model.kinds import KINDS, kind_of

_TEMPLATES: Final = dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet", "Job"), "/spec/template")
_MOST_PODS: Final = 100_000
"""Of one owner at a time."""

_Tree = Mapping[str, Any]
_Owner = tuple[str, str]
"""Group, version and kind as in "apps/v1.Deployment", and "namespace/name"."""


class _Life(msgspec.Struct, frozen=True):
    start: float
    end: float | None


class _Version(msgspec.Struct, frozen=True):
    """An owner as it was applied at some time; no object: it was deleted then."""

    at: float
    obj: _Tree | None


class SimKubeTrace:
    """A trace that was read; ImportProblem if it is none."""

    def __init__(self, path: Path, redaction: Redaction) -> None:
        self._path = path
        self._redaction = redaction
        document = self._document()
        self._paths = _template_paths(document.get("config") or {})
        events: Sequence[_Tree] = document.get("events") or ()
        self._start = min((float(event.get("ts", 0)) for event in events), default=0.0)
        self._lives = _lives(document)
        self._owners = self._versions(events)
        self.header = TraceHeader(pilotage_trace=VERSION, start=rfc3339_micro(self._start), source="simkube")
        self.left_out: Counter[str] = Counter()
        """Objects that neither own pods nor matter to scheduling, by kind."""

    def records(self) -> Iterator[TraceRecord]:
        return in_order(record for owner, versions in self._owners.items() for record in self._owned(owner, versions))

    # --- reading ---------------------------------------------------------------------------------------------------

    def _document(self) -> dict[str, Any]:
        try:
            document = msgspec.msgpack.decode(self._path.read_bytes())
        except OSError as error:
            raise ImportProblem(f"{self._path}: cannot be read: {error.strerror or error}") from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ImportProblem(f"{self._path}: is no SimKube trace (MessagePack): {error}") from error
        if isinstance(document, list) and len(document) == 4:
            keys = ("config", "events", "index", "pod_lifecycles")
            return {"version": 1, **dict(zip(keys, document, strict=True))}
        if not isinstance(document, dict) or not isinstance(document.get("events"), list):
            raise ImportProblem(f"{self._path}: is no SimKube trace: it has no list of events")
        version = document.get("version")
        if version not in (2, 3):
            raise ImportProblem(f"{self._path}: is of version {version}; versions 1, 2 and 3 are known")
        return document

    def _versions(self, events: Sequence[_Tree]) -> dict[_Owner, list[_Version]]:
        owners: dict[_Owner, list[_Version]] = {}
        for number, event in enumerate(events, start=1):
            try:
                at = float(event["ts"]) - self._start
                for obj in event.get("applied_objs") or ():
                    owners.setdefault(_key(obj), []).append(_Version(at, obj))
                for obj in event.get("deleted_objs") or ():
                    owners.setdefault(_key(obj), []).append(_Version(at, None))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise ImportProblem(f"{self._path}: event {number}: cannot be understood: {error!r}") from error
        return owners

    # --- from owners to pods ---------------------------------------------------------------------------------------

    def _owned(self, owner: _Owner, versions: list[_Version]) -> Iterator[TraceRecord]:
        gvk, name = owner
        kind = gvk.rpartition(".")[2]
        path = self._paths.get(gvk) or _TEMPLATES.get(kind)
        # The first version of the format does not say of which kind an owner is.
        lives = sorted(self._lives.get(owner) or self._lives.get(("", name)) or [], key=_by_start)
        if path is None and kind != "Pod":
            yield from self._plain(kind, name, versions)
        elif lives:
            yield from self._by_lives(owner, path, versions, lives)
        else:
            yield from self._by_count(owner, path, versions)

    def _plain(self, kind: str, key: str, versions: list[_Version]) -> Iterator[TraceRecord]:
        """An object that owns no pods, such as a disruption budget."""
        info = kind_of(kind)
        if info is None or info.plural not in RECORDED:
            self.left_out[kind] += len(versions)
            return
        namespace, _, name = key.rpartition("/")
        for version in versions:
            if version.obj is None:
                yield TraceRecord(version.at, delete=ObjectName(info.api_version, kind, name, namespace))
            else:
                yield self._put(info.plural, version.at, version.obj)

    def _by_lives(
        self, owner: _Owner, path: str | None, versions: list[_Version], lives: list[_Life]
    ) -> Iterator[TraceRecord]:
        applied = [version for version in versions if version.obj is not None]
        gone = next((version.at for version in reversed(versions) if version.obj is None), None)
        for number, life in enumerate(lives):
            at = max(life.start - self._start, 0.0)
            version = next((one for one in reversed(applied) if one.at <= at), applied[0] if applied else None)
            if version is None or version.obj is None:
                self.left_out["pods of owners that are not in the trace"] += 1
                continue
            name = f"{owner[1]}-{number:05}"
            runs = None if life.end is None else max(life.end - self._start - at, 0.0)
            yield self._pod(version.obj, path, name, at, runs)
            if runs is None and gone is not None and gone > at:
                yield _end(name, gone)

    def _by_count(self, owner: _Owner, path: str | None, versions: list[_Version]) -> Iterator[TraceRecord]:
        alive: list[str] = []
        template: Any = None
        number = 0
        for version in versions:
            before, template = template, None if version.obj is None else _template(version.obj, path)
            wanted = 0 if version.obj is None else self._replicas(version.obj)
            if before != template and alive:
                yield from (_end(name, version.at) for name in alive)
                alive.clear()
            while len(alive) > wanted:
                yield _end(alive.pop(), version.at)
            while len(alive) < wanted and version.obj is not None:
                alive.append(f"{owner[1]}-{number:05}")
                number += 1
                yield self._pod(version.obj, path, alive[-1], version.at, None)

    def _replicas(self, obj: _Tree) -> int:
        spec = obj.get("spec") or {}
        if obj.get("kind") == "Pod":
            return 1
        counts = [spec.get(field) for field in ("replicas", "parallelism", "completions")]
        wanted = min((count for count in counts if isinstance(count, int)), default=1)
        if wanted > _MOST_PODS:
            raise ImportProblem(f"{self._path}: {_key(obj)[1]}: wants {wanted:,} pods; {_MOST_PODS:,} are the most")
        return wanted

    def _pod(self, owner: _Tree, path: str | None, key: str, at: float, runs: float | None) -> TraceRecord:
        template = _template(owner, path)
        namespace, _, name = key.rpartition("/")
        metadata = template.get("metadata") or {}
        labels = {field: metadata[field] for field in ("labels", "annotations") if metadata.get(field)}
        reference = {**_type_of(owner), "name": (owner.get("metadata") or {}).get("name", ""), "controller": True}
        owners = {} if owner.get("kind") == "Pod" else {"ownerReferences": [reference]}
        spec = {"schedulerName": "default-scheduler", **(template.get("spec") or {})}
        spec.pop("nodeName", None)
        pod = {
            "metadata": {"name": name, "namespace": namespace or "default", "uid": key, **labels, **owners},
            "spec": spec,
        }
        return self._put("pods", at, pod, runs)

    def _put(self, plural: str, at: float, obj: _Tree, runs: float | None = None) -> TraceRecord:
        try:
            content = sighting(KINDS[plural], msgspec.json.encode(obj), self._redaction).content
        except DecodeError as error:
            raise ImportProblem(f"{self._path}: {error}") from error
        return TraceRecord(at, put=msgspec.Raw(msgspec.json.encode(content)), runs=runs)


def _end(key: str, at: float) -> TraceRecord:
    namespace, _, name = key.rpartition("/")
    return TraceRecord(at, delete=ObjectName("v1", "Pod", name, namespace or "default"))


def _template(obj: _Tree, path: str | None) -> _Tree:
    """What stands at a JSON pointer; a bare pod is its own template."""
    found: Any = obj
    for part in (path or "").strip("/").split("/"):
        if part:
            found = found.get(part) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _template_paths(config: _Tree) -> dict[str, str]:
    """Of custom resources; of several templates the first."""
    paths = {}
    for gvk, tracked in (config.get("trackedObjects") or {}).items():
        several = tracked.get("podSpecTemplatePaths") or [tracked.get("podSpecTemplatePath")]
        if several and several[0]:
            paths[gvk] = several[0]
    return paths


def _lives(document: _Tree) -> dict[_Owner, list[_Life]]:
    """When pods of an owner started and ended, whichever version says so."""
    if document["version"] == 3:
        found: dict[_Owner, list[_Life]] = {}
        for gvk, owners in (document.get("index") or {}).items():
            for name, by_time in owners.items():
                datas = [data.get("lifecycle") for entry in by_time.values() for data in entry]
                found[gvk, name] = [life for data in datas if (life := _life(data)) is not None]
        return found
    return {
        (str(owner[0]), str(owner[1])) if isinstance(owner, tuple) else ("", str(owner)): [
            life for lives in by_hash.values() for data in lives if (life := _life(data)) is not None
        ]
        for owner, by_hash in (document.get("pod_lifecycles") or {}).items()
    }


def _by_start(life: _Life) -> tuple[float, float]:
    return life.start, math.inf if life.end is None else life.end


def _life(data: Any) -> _Life | None:
    """Of `"Empty"`, `{"Running": start}` or `{"Finished": [start, end]}`; None if nothing is known."""
    if isinstance(data, dict) and "Finished" in data:
        start, end = data["Finished"]
        return _Life(float(start), float(end))
    if isinstance(data, dict) and "Running" in data:
        start = data["Running"]
        return _Life(float(start[0] if isinstance(start, list) else start), None)
    return None


def _type_of(obj: _Tree) -> dict[str, str]:
    """`apiVersion` and `kind`; early versions have them in a part of its own."""
    types = obj.get("types") or obj
    return {"apiVersion": str(types.get("apiVersion") or "v1"), "kind": str(types.get("kind") or "")}


def _key(obj: _Tree) -> _Owner:
    types, metadata = _type_of(obj), obj["metadata"]
    namespace = metadata.get("namespace")
    name = f"{namespace}/{metadata['name']}" if namespace else metadata["name"]
    return f"{types['apiVersion']}.{types['kind']}", name
