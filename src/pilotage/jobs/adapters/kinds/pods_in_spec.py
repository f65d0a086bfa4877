"""Where the spec of a custom job describes pods, and how admission writes into it.

A spec is a tree of JSON that its own operator understands. Of it queueing needs the places that describe pods: labels,
annotations, node selector and tolerations of each are read, added to when the job starts, and put back when it stops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from pilotage.jobs.adapters import marks
from pilotage.jobs.adapters.kinds.job_kind import CannotQueue
from pilotage.jobs.adapters.pod_set_info import PodSetInfo
from pilotage.jobs.adapters.pod_templates import is_job_controllers, queued_template
from pilotage.model.kueue import PodSet
from pilotage.model.workloads import PodTemplate

Json = dict[str, Any]
Path = tuple[str | int, ...]
Form = Literal["template", "flat", "added"]
"""template: a PodTemplateSpec; flat: its own fields `labels`, `annotations`, `nodeSelector` and `tolerations`; added:
the same, and nobody but us writes there."""

MOST_PODS: Final = 2**31 - 1


class PodsInSpec(msgspec.Struct, frozen=True):
    """One pod set of a job."""

    name: str
    count: int
    path: Path = ()
    """Into the spec; empty if nothing there can be written, because the operator makes these pods up."""
    form: Form = "template"
    template: PodTemplate | None = None
    """What the pods are like, if the place does not say it as a template."""


def pod_set(pods: PodsInSpec, spec: Json) -> PodSet:
    if not 0 <= pods.count <= MOST_PODS:
        raise CannotQueue(f"pod set {pods.name}: {pods.count} is no number of pods")
    template = pods.template or _template_at(spec, pods.path)
    shown = queued_template(template.metadata.labels, template.metadata.annotations, template.spec)
    return PodSet(name=pods.name, template=shown, count=pods.count)


def _template_at(spec: Json, path: Path) -> PodTemplate:
    where = ".".join(map(str, path))
    template = read_template(at(spec, path), where)
    if not template.spec.containers:
        raise CannotQueue(f"spec.{where} is no template of pods: it has no containers")
    return template


def read_template(value: Any, where: str) -> PodTemplate:
    try:
        return msgspec.convert(value or {}, PodTemplate, strict=True)
    except msgspec.ValidationError as error:
        raise CannotQueue(f"spec.{where} is no template of pods: {error}") from error


def is_steered(all_pods: Sequence[PodsInSpec], spec: Json) -> bool:
    return any(marks.POD_SET in _map(spec, pods, "labels") for pods in all_pods if pods.path)


def steer(all_pods: Sequence[PodsInSpec], spec: Json, infos: Sequence[PodSetInfo]) -> None:
    """Write into a spec of one's own what admission adds."""
    for pods, info in zip(all_pods, infos, strict=True):
        if not pods.path:
            continue
        tolerations = list(_list(spec, pods))
        tolerations += [one for one in map(_plain, info.tolerations) if one not in tolerations]
        _write(spec, pods, "labels", {**_map(spec, pods, "labels"), **info.labels})
        _write(spec, pods, "annotations", {**_map(spec, pods, "annotations"), **info.annotations})
        _write(spec, pods, "nodeSelector", {**_map(spec, pods, "nodeSelector"), **info.node_selector})
        _write(spec, pods, "tolerations", tolerations)


def restore(all_pods: Sequence[PodsInSpec], spec: Json, original: Sequence[PodSet]) -> None:
    """Put back what was there before the start."""
    wanted = {one.name: one.template for one in original}
    for pods in all_pods:
        template = wanted.get(pods.name)
        if not pods.path or template is None:
            continue
        if pods.form == "added":
            template = PodTemplate()
        theirs = {key: value for key, value in _map(spec, pods, "labels").items() if is_job_controllers(key)}
        _write(spec, pods, "labels", theirs | template.metadata.labels)
        _write(spec, pods, "annotations", dict(template.metadata.annotations))
        _write(spec, pods, "nodeSelector", dict(template.spec.node_selector))
        _write(spec, pods, "tolerations", [_plain(one) for one in template.spec.tolerations])


def merge_patch(before: Json, after: Json) -> Json:
    """What makes one of the other; lists are whole."""
    patch: Json = dict.fromkeys(before.keys() - after.keys())
    for key, value in after.items():
        if key not in before:
            patch[key] = value
        elif type(value) is dict and type(before[key]) is dict:
            if inner := merge_patch(before[key], value):
                patch[key] = inner
        elif value != before[key]:
            patch[key] = value
    return patch


def at(value: Any, path: Path) -> Any:
    """What is there; None if nothing is."""
    for key in path:
        if isinstance(key, int):
            value = value[key] if type(value) is list and key < len(value) else None
        else:
            value = value.get(key) if type(value) is dict else None
    return value


def maps_at(value: Any, *path: str) -> list[Json]:
    """The objects of a list."""
    found = at(value, path)
    return [one for one in found if type(one) is dict] if type(found) is list else []


def numbered_maps_at(value: Any, *path: str) -> list[tuple[int, Json]]:
    """The objects of a list with their places in it."""
    found = at(value, path)
    return [(index, one) for index, one in enumerate(found) if type(one) is dict] if type(found) is list else []


def map_at(value: Any, *path: str) -> Json:
    found = at(value, path)
    return found if type(found) is dict else {}


def number_at(value: Any, default: int, *path: str) -> int:
    found = at(value, path)
    return found if type(found) is int else default


def text_at(value: Any, *path: str) -> str:
    found = at(value, path)
    return found if type(found) is str else ""


_HOLDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "labels": ("metadata",),
    "annotations": ("metadata",),
    "nodeSelector": ("spec",),
    "tolerations": ("spec",),
}


def _place(pods: PodsInSpec, field: str) -> Path:
    return (*pods.path, *(_HOLDERS[field] if pods.form == "template" else ()), field)


def _map(spec: Json, pods: PodsInSpec, field: str) -> Json:
    found = at(spec, _place(pods, field))
    return found if type(found) is dict else {}


def _list(spec: Json, pods: PodsInSpec) -> list[Any]:
    found = at(spec, _place(pods, "tolerations"))
    return found if type(found) is list else []


def _write(spec: Json, pods: PodsInSpec, field: str, value: Any) -> None:
    """Empty values are taken away."""
    holder: Any = spec
    for key, following in zip((path := _place(pods, field))[:-1], path[1:], strict=True):
        if isinstance(key, int):
            while len(holder) <= key:
                holder.append({})
        elif holder.get(key) is None:
            if not value:
                return
            holder[key] = [] if isinstance(following, int) else {}
        holder = holder[key]
        if type(holder) is not (list if isinstance(following, int) else dict):
            raise CannotQueue(f"spec.{'.'.join(map(str, path))} cannot be written: something else is in its way")
    if value:
        holder[path[-1]] = value
    else:
        holder.pop(path[-1], None)


def _plain(toleration: Any) -> Json:
    plain: Json = msgspec.to_builtins(toleration)
    return plain
