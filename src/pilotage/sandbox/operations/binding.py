"""Bind: a scheduler's decision becomes the pod's node.

The API server takes a binding once, for the pod that the scheduler saw (by uid), and not for a pod that is on its way
out or held by gates. It does not ask whether the node exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pilotage.sandbox.errors import ApiError, FieldError, conflict, invalid, not_found
from pilotage.sandbox.operations.backend import Backend, Object
from pilotage.sandbox.storage.records import Key, decode_fields

_NOT_CARRIED: Final = ("reason", "message", "lastProbeTime")
_NODE_NAME: Final = b'"nodeName"'
_GATES: Final = b'"schedulingGates"'

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def bind_pod(
    backend: Backend, namespace: str, name: str, node_name: str, *, uid: str | None = None, dry_run: bool = False
) -> None:
    """Assign the pod; ApiError 404 or 409 when that cannot be."""
    record = backend.store.get(Key("pods", namespace, name))
    if record is None:
        raise not_found("pods", name)
    pod = record.outline()
    problem = _problem(pod, name, record.uid, uid)
    if problem:
        raise conflict("pods/binding", name, problem)
    pod["spec"] = _assigned(bytes(pod["spec"]), node_name)
    status = pod.get("status") or {}
    pod["status"] = status
    status.pop("nominatedNodeName", None)
    _set_scheduled(status, backend.now())
    if not dry_run:
        backend.store.update(record.key, pod)


def target_of(binding: Mapping[str, Any]) -> str:
    """The node that a Binding object names; ApiError 422 when it names none."""
    target = binding.get("target") or {}
    kind, name = target.get("kind"), target.get("name")
    if kind not in (None, "", "Node"):
        error = FieldError("target.kind", 'supported values: "Node", "<empty>"', kind, "FieldValueNotSupported")
        raise _invalid_binding(binding, error)
    if not name:
        raise _invalid_binding(binding, FieldError("target.name", type="FieldValueRequired"))
    return str(name)


def _problem(pod: Mapping[str, Any], name: str, actual_uid: str, uid: str | None) -> str:
    if uid and uid != actual_uid:
        return f"Precondition failed: UID in precondition: {uid}, UID in object meta: {actual_uid}"
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    return _hold(bytes(pod["spec"]), name)


def _hold(spec: bytes, name: str) -> str:
    # Looking for the words takes less time than decoding, and most pods that are bound have none of them.
    if _NODE_NAME not in spec and _GATES not in spec:
        return ""
    fields = decode_fields(spec)
    node_name = _decode(fields["nodeName"]) if "nodeName" in fields else ""
    if node_name:
        return f'pod {name} is already assigned to node "{node_name}"'
    if "schedulingGates" in fields and _decode(fields["schedulingGates"]):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _assigned(spec: bytes, node_name: str) -> msgspec.Raw | Object:
    """The spec with its node: added at the end, unless the spec may have one already (an empty one, for instance)."""
    if _NODE_NAME in spec or spec == b"{}":
        return {**decode_fields(spec), "nodeName": node_name}
    return msgspec.Raw(b'%b,"nodeName":%b}' % (spec[:-1], _encode(node_name)))


def _set_scheduled(status: Object, now: str) -> None:
    conditions = status.setdefault("conditions", [])
    for condition in conditions:
        if condition.get("type") == "PodScheduled":
            for field in _NOT_CARRIED:
                condition.pop(field, None)
            if condition.get("status") != "True":
                condition["lastTransitionTime"] = now
            condition["status"] = "True"
            return
    conditions.append({"type": "PodScheduled", "status": "True", "lastTransitionTime": now})


def _invalid_binding(binding: Mapping[str, Any], error: FieldError) -> ApiError:
    return invalid("Binding", "", (binding.get("metadata") or {}).get("name") or "", [error])
