"""Simulated nodes from a template: `make_nodes(1000)` or a YAML file of Node manifests.

A template is a Node manifest. The annotation `sandbox.pilotage.dev/count` says how many nodes to make of it, and
placeholders in its name, labels, annotations and addresses distinguish them:

    {index}     1, 2, 3, ...        {index:05}  00001, 00002, ...       {index%3}   1, 2, 0, 1, ...

What a manifest leaves out (capacity, conditions, the usual labels) is filled in, so `kind: Node` with a name is enough.
A file that makes no sense raises TemplateError, which names the file, the document and the field.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from pilotage.kube_yaml import YamlError, documents
from pilotage.model.quantity import QuantityError, parse_quantity
from pilotage.sandbox.life.facts import SIMULATED

Object: TypeAlias = dict[str, Any]

COUNT: Final = "sandbox.pilotage.dev/count"
DEFAULT_CAPACITY: Final[Mapping[str, str]] = {
    "cpu": "4",
    "memory": "32Gi",
    "ephemeral-storage": "100Gi",
    "pods": "110",
}

_HOSTNAME: Final = "kubernetes.io/hostname"
_PLACEHOLDER: Final = re.compile(r"\{index(?:%(\d+))?(?::0(\d+))?\}")
_DEFAULT_TEMPLATE: Final[Mapping[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "node-{index:05}",
        "labels": {"topology.kubernetes.io/region": "sandbox", "topology.kubernetes.io/zone": "zone-{index%3}"},
    },
}


class TemplateError(ValueError):
    """A template that cannot be used; the message names file, document and field."""


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """A Node manifest with placeholders, and how many nodes it asks for (None: it does not say)."""

    manifest: Object
    count: int | None = None


def make_nodes(count: int, template: Object | None = None, *, now: str | None = None) -> Iterator[Object]:
    """`count` complete Node objects, ready to be created; without a template, small ones spread over three zones.

    `now` is the timestamp for their conditions.
    """
    manifest = _completed(dict(_DEFAULT_TEMPLATE) if template is None else template, count)
    if now is not None:
        for condition in manifest["status"]["conditions"]:
            condition.setdefault("lastHeartbeatTime", now)
            condition.setdefault("lastTransitionTime", now)
    for index in range(1, count + 1):
        yield _numbered(manifest, index)


def nodes_from_templates(
    templates: Sequence[NodeTemplate], count: int | None = None, *, now: str | None = None
) -> Iterator[Object]:
    """The nodes of all templates; those without a count of their own share what is left of `count` (else one each)."""
    silent = sum(template.count is None for template in templates)
    given = sum(template.count or 0 for template in templates)
    left = silent if count is None else max(count - given, 0)
    for template in templates:
        share = template.count
        if share is None:
            share = -(-left // silent)  # the first ones take what does not divide
            left, silent = left - share, silent - 1
        yield from make_nodes(share, template.manifest, now=now)


def load_node_template(path: str | Path) -> list[NodeTemplate]:
    """The templates in a YAML file; TemplateError if it cannot be read or understood."""
    try:
        found = list(documents(Path(path).read_bytes()))
    except OSError as error:
        raise TemplateError(f"{path}: cannot be read: {error.strerror}") from error
    except YamlError as error:
        raise TemplateError(f"{path}: {error}") from error
    if not found:
        raise TemplateError(f"{path}: holds no Node manifest")
    return [_template(f"{path}: document {number}", document) for number, document in found]


def _template(where: str, document: object) -> NodeTemplate:
    manifest = _mapping(where, "", document)
    if manifest.get("kind") != "Node":
        raise TemplateError(f'{where}: kind: expected "Node", got {_shown(manifest.get("kind"))}')
    if manifest.get("apiVersion", "v1") != "v1":
        raise TemplateError(f'{where}: apiVersion: expected "v1", got {_shown(manifest["apiVersion"])}')
    metadata = _mapping(where, "metadata", manifest.get("metadata"))
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise TemplateError(f"{where}: metadata.name: expected a name such as worker-{{index}}, got {_shown(name)}")
    for field in ("labels", "annotations"):
        _check_texts(where, f"metadata.{field}", metadata.get(field))
    for field in ("spec", "status"):
        _mapping(where, field, manifest.get(field, {}))
    for field in ("capacity", "allocatable"):
        _check_quantities(where, f"status.{field}", manifest.get("status", {}).get(field))
    return NodeTemplate(manifest, _count(where, metadata))


def _mapping(where: str, field: str, value: object) -> Object:
    if not isinstance(value, dict):
        raise TemplateError(f"{where}: {field + ': ' if field else ''}expected an object, got {_shown(value)}")
    return value


def _check_texts(where: str, field: str, value: object) -> None:
    if value is None:
        return
    for key, text in _mapping(where, field, value).items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise TemplateError(f"{where}: {field}[{key}]: expected a text (put it in quotes), got {_shown(text)}")


def _check_quantities(where: str, field: str, value: object) -> None:
    if value is None:
        return
    for resource, quantity in _mapping(where, field, value).items():
        if not isinstance(quantity, (str, int, float)) or isinstance(quantity, bool):
            raise TemplateError(f"{where}: {field}.{resource}: expected a quantity, got {_shown(quantity)}")
        try:
            amount = parse_quantity(quantity)
        except QuantityError as error:
            raise TemplateError(f"{where}: {field}.{resource}: {error}") from error
        if amount < 0:
            raise TemplateError(f"{where}: {field}.{resource}: must not be negative, got {_shown(quantity)}")


def _count(where: str, metadata: Object) -> int | None:
    text = (metadata.get("annotations") or {}).get(COUNT)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise TemplateError(f"{where}: metadata.annotations[{COUNT}]: expected a number above 0, got {_shown(text)}")
    return int(text)


def _shown(value: object) -> str:
    return "nothing" if value is None else f'"{value}"'


def _completed(template: Object, count: int) -> Object:
    """The template with everything that a node needs; what it says itself stays."""
    manifest = copy.deepcopy(template)
    manifest.setdefault("apiVersion", "v1")
    metadata = manifest["metadata"]
    if count > 1 and not _PLACEHOLDER.search(metadata["name"]):
        metadata["name"] += "-{index}"
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **(metadata.get("labels") or {})}
    metadata["labels"] = {_HOSTNAME: metadata["name"], **labels}
    annotations = {name: text for name, text in (metadata.get("annotations") or {}).items() if name != COUNT}
    metadata["annotations"] = {SIMULATED: "true", **annotations}
    manifest.setdefault("spec", {})
    manifest["status"] = complete_status(manifest.get("status") or {})
    return manifest


def complete_status(status: Object) -> Object:
    """The status of a node that is up, with what `status` says already."""
    capacity = status.get("capacity") or status.get("allocatable") or dict(DEFAULT_CAPACITY)
    capacity = {resource: str(quantity) for resource, quantity in capacity.items()}
    capacity.setdefault("pods", DEFAULT_CAPACITY["pods"])
    allocatable = status.get("allocatable") or capacity
    return {
        **status,
        "capacity": capacity,
        "allocatable": {resource: str(quantity) for resource, quantity in allocatable.items()},
        "conditions": status.get("conditions") or [_condition(*row) for row in _CONDITIONS],
        "nodeInfo": status.get("nodeInfo") or dict(_NODE_INFO),
    }


_CONDITIONS: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "simulated kubelet is posting ready status"),
)
_NODE_INFO: Final[Mapping[str, str]] = {
    "architecture": "amd64",
    "bootID": "",
    "containerRuntimeVersion": "sandbox://1.0",
    "kernelVersion": "sandbox",
    "kubeProxyVersion": "",
    "kubeletVersion": "v1.37.0-sandbox",
    "machineID": "",
    "operatingSystem": "linux",
    "osImage": "Pilotage sandbox",
    "systemUUID": "",
}


def _condition(kind: str, truth: str, reason: str, message: str) -> Object:
    return {"type": kind, "status": truth, "reason": reason, "message": message}


def _numbered(manifest: Object, index: int) -> Object:
    node: Object = {**manifest, "metadata": _filled(manifest["metadata"], index)}
    node["spec"] = copy.deepcopy(manifest["spec"])
    status = node["status"] = copy.deepcopy(manifest["status"])
    hostname, address = node["metadata"]["name"], f"172.{16 + (index >> 16) % 16}.{index >> 8 & 0xFF}.{index & 0xFF}"
    addresses = _filled(status.get("addresses"), index)
    status["addresses"] = addresses or [
        {"type": "InternalIP", "address": address},
        {"type": "Hostname", "address": hostname},
    ]
    return node


def _filled(value: Any, index: int) -> Any:
    """A copy of `value` with all placeholders replaced."""
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda found: _number(found, index), value)
    if isinstance(value, dict):
        return {_filled(key, index): _filled(item, index) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, index) for item in value]
    return value


def _number(found: re.Match[str], index: int) -> str:
    modulus, width = found[1], found[2]
    number = index % int(modulus) if modulus else index
    return str(number).zfill(int(width or 0))
