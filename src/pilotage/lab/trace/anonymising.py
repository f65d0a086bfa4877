"""The same trace without its names: what happened stays, what things are called does not.

Every name becomes a few letters that only a key leads to: the seed. Equal names become equal letters everywhere, so
that selectors select, and nodes are found, as before; without the seed a name cannot be found out, except by
guessing names and seeds. What stays: amounts, times, names of resources and drivers, priorities, operators, keys of
labels that Kubernetes or cloud providers define, and what devices say of themselves (expressions ask for it).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Final

import msgspec
from msgspec.structs import replace

from pilotage.lab.trace.format import TraceRecord
from pilotage.lab.trace.renaming import rename, renamed_object

_PUBLIC_DOMAINS: Final = ("kubernetes.io", "k8s.io", "x-k8s.io", "pilotage.dev")
_PUBLIC_VALUES: Final = frozenset({"true", "false", "linux", "windows", "amd64", "arm64"})
_PUBLIC_NAMES: Final = re.compile(r"system-(node|cluster)-critical|default|kube-system|kube-public|kube-node-lease")
_KEPT_KINDS: Final = frozenset({"CSIDriver"})
_NUMBER: Final = re.compile(r"-?[0-9]+")
_VALUES_STAY: Final = frozenset({"kubernetes.io/os", "kubernetes.io/arch", "node.kubernetes.io/exclude-from"})
_SHORT: Final[dict[str, str]] = {
    "Namespace": "ns",
    "Node": "node",
    "Pod": "pod",
    "ReplicaSet": "rs",
    "StatefulSet": "sts",
    "PersistentVolume": "pv",
    "PersistentVolumeClaim": "pvc",
    "StorageClass": "sc",
    "PriorityClass": "priority",
}


class SecretNames:
    """Names by a keyed hash: nothing is remembered, so the length of the trace costs nothing."""

    def __init__(self, seed: int) -> None:
        self._key = seed.to_bytes(16, "little", signed=True)
        self._letters = lru_cache(maxsize=100_000)(self._hashed)

    def _hashed(self, what: str, text: str) -> str:
        return blake2b(f"{what}\0{text}".encode(), key=self._key, digest_size=5).hexdigest()

    def name(self, kind: str, name: str) -> str:
        if kind in _KEPT_KINDS or _PUBLIC_NAMES.fullmatch(name):
            return name
        # A CSINode is called like its node.
        kind = "Node" if kind == "CSINode" else kind
        return f"{_SHORT.get(kind, kind.lower())}-{self._letters(kind, name)}"

    def key(self, key: str) -> str:
        domain = key.rpartition("/")[0]
        is_public = any(domain == one or domain.endswith(f".{one}") for one in _PUBLIC_DOMAINS)
        return key if is_public or not key else f"key-{self._letters('key', key)}"

    def value(self, key: str, value: str) -> str:
        # Numbers are compared with Gt and Lt.
        if key in _VALUES_STAY or value in _PUBLIC_VALUES or _NUMBER.fullmatch(value):
            return value
        return f"value-{self._letters('value', value)}"

    def other(self, what: str, text: str) -> str:
        if what == "uid":
            digits = blake2b(text.encode(), key=self._key, digest_size=16).hexdigest()
            return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
        tag = ":latest" if what == "image" else ""
        return f"{what}-{self._letters(what, text)}{tag}"


def anonymised(records: Iterator[TraceRecord], seed: int) -> Iterator[TraceRecord]:
    """The records under other names; annotations are gone but for those of the trace itself."""
    names = SecretNames(seed)
    for record in records:
        if record.delete is not None:
            yield replace(record, delete=renamed_object(record.delete, names))
        elif record.gap is not None:
            yield replace(record, gap=replace(record.gap, reason=""))
        else:
            obj = rename(record.put_object(), names)
            annotations = obj["metadata"].get("annotations") or {}
            kept = {key: value for key, value in annotations.items() if key.partition("/")[0].endswith("pilotage.dev")}
            obj["metadata"].pop("annotations", None)
            if kept:
                obj["metadata"]["annotations"] = kept
            yield replace(record, put=msgspec.Raw(msgspec.json.encode(obj)))
