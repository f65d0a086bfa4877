"""New scheduling problems, made out of recorded ones by chance.

Objects get parts of other objects of their kind, objects come and go, pods move to other nodes. What results is close
enough to the recorded problems to mean something, and new.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from targeted_alterations import TARGETED, tweak

Object = dict[str, Any]
Case = dict[str, Any]
Place = tuple[str, ...]

MOST_ALTERATIONS = 6
KEPT_FIELDS = frozenset({"nodeName", "schedulerName", "claimRef", "volumeName", "phase"})
"""What ties objects together, or makes a pod one that nobody schedules."""
SERVED = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
"""A ResourceSlice has exactly one of these."""
MERGED = "LabelKeys"
"""The recorded selectors have these merged in; elsewhere they would say something else."""


def altered(cases: Sequence[Case], seed: int) -> Iterator[Case]:
    """New cases without end; the same seed gives the same ones."""
    rng = random.Random(seed)
    number = 0
    while True:
        case, other = copy.deepcopy(rng.choice(cases)), rng.choice(cases)
        change = _change_hint if case["kind"] == "hint" else _change_cluster
        for _ in range(rng.randint(1, MOST_ALTERATIONS)):
            change(rng, case, other)
        del case["expected"]
        if _is_sound(case):
            case["name"] = f"altered-{seed}-{number:05}"
            number += 1
            yield case


def key(obj: Object) -> tuple[str, str, str]:
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _is_sound(case: Case) -> bool:
    keys = {key(obj) for obj in case["objects"]}
    has_nodes = any(kind == "Node" for kind, _, _ in keys)
    return has_nodes and len(keys) == len(case["objects"]) and not any(map(_is_impossible, case["objects"]))


def _is_impossible(obj: Object) -> bool:
    """A pod without a node whose containers a kubelet has reported on; a slice that says in two ways whom it serves."""
    if obj["kind"] == "ResourceSlice":
        return sum(bool(obj["spec"].get(field)) for field in SERVED) != 1
    if obj["kind"] != "Pod" or obj["spec"].get("nodeName"):
        return False
    return any("ontainerStatuses" in field for field in obj.get("status", {}))


def _pending(case: Case) -> Object:
    namespace, name = case["pod"].split("/")
    return next(obj for obj in case["objects"] if key(obj) == ("Pod", namespace, name))


# --- parts of objects -------------------------------------------------------------------------------------------------


def _places(obj: Object) -> Iterator[Place]:
    for top in ("spec", "status"):
        if isinstance(obj.get(top), dict):
            yield from ((top, field) for field in obj[top] if field not in KEPT_FIELDS)
    yield from ((field,) for field in obj if field not in ("apiVersion", "kind", "metadata", "spec", "status"))
    yield from (("metadata", field) for field in ("labels", "annotations") if field in obj["metadata"])


def _part(obj: Object, place: Place) -> Any:
    found: Any = obj
    for field in place:
        found = found.get(field) if isinstance(found, dict) else None
    return found


def _put(obj: Object, place: Place, part: Any) -> None:
    *path, last = place
    for field in path:
        obj = obj.setdefault(field, {})
    if part is None:
        obj.pop(last, None)
    else:
        obj[last] = copy.deepcopy(part)


def _take_part(rng: random.Random, obj: Object, donors: Sequence[Object]) -> None:
    """One part of `obj` becomes like that of another object of its kind."""
    alike = [donor for donor in donors if donor["kind"] == obj["kind"] and donor is not obj]
    if not alike:
        return
    donor = rng.choice(alike)
    places = [place for place in _places(donor) if MERGED not in json.dumps(_part(donor, place))]
    if places:
        place = rng.choice(places)
        _put(obj, place, _part(donor, place))


# --- clusters ---------------------------------------------------------------------------------------------------------


def _change_cluster(rng: random.Random, case: Case, other: Case) -> None:
    rng.choices(list(_CLUSTER_CHANGES), weights=list(_CLUSTER_CHANGES.values()))[0](rng, case, other)


def _change_something(rng: random.Random, case: Case, other: Case) -> None:
    target = _pending(case) if rng.random() < 0.4 else rng.choice(case["objects"])
    _take_part(rng, target, other["objects"] if rng.random() < 0.6 else case["objects"])


def _remove(rng: random.Random, case: Case, other: Case) -> None:
    pending = key(_pending(case))
    kinds = sorted({obj["kind"] for obj in case["objects"]} - {"Namespace"})
    kind = rng.choice(kinds)
    alike = [obj for obj in case["objects"] if obj["kind"] == kind]
    gone = rng.choice(alike)
    if key(gone) == pending or (kind == "Node" and len(alike) == 1):
        return
    case["objects"].remove(gone)
    if kind == "Node":
        name = gone["metadata"]["name"]
        case["objects"] = [obj for obj in case["objects"] if obj.get("spec", {}).get("nodeName") != name]


def _add(rng: random.Random, case: Case, other: Case) -> None:
    added = copy.deepcopy(rng.choice(other["objects"]))
    if added["kind"] in ("Pod", "Namespace") and key(added) == ("Pod", *other["pod"].split("/")):
        return
    if key(added) in {key(obj) for obj in case["objects"]}:
        added["metadata"]["name"] += "-x"
        added["metadata"]["uid"] = added["metadata"].get("uid", "") + "-x"
    case["objects"].append(added)
    if added["kind"] == "Pod":
        _settle(rng, case, added)


def _settle(rng: random.Random, case: Case, pod: Object) -> None:
    nodes = [obj["metadata"]["name"] for obj in case["objects"] if obj["kind"] == "Node"]
    if pod["spec"].get("nodeName") and nodes:
        pod["spec"]["nodeName"] = rng.choice(nodes)


def _move(rng: random.Random, case: Case, other: Case) -> None:
    _settle(rng, case, rng.choice([obj for obj in case["objects"] if obj["kind"] == "Pod"]))


def _reprioritize(rng: random.Random, case: Case, other: Case) -> None:
    rng.choice([obj for obj in case["objects"] if obj["kind"] == "Pod"])["spec"]["priority"] = rng.choice(
        [-5, 0, 10, 1000]
    )


_CLUSTER_CHANGES: dict[Callable[[random.Random, Case, Case], None], int] = {
    _change_something: 6,
    _remove: 2,
    _add: 3,
    _move: 1,
    _reprioritize: 1,
    **TARGETED,
}


# --- events -----------------------------------------------------------------------------------------------------------


def _change_hint(rng: random.Random, case: Case, other: Case) -> None:
    """Another object before or after the event, another pod, another plugin, or another cluster around them."""
    event = [obj for obj in (case["oldObject"], case["newObject"]) if obj is not None]
    donors = [*other["objects"], *(obj for obj in (other["oldObject"], other["newObject"]) if obj is not None)]
    chance = rng.random()
    if chance < 0.5:
        _take_part(rng, rng.choice(event), donors)
    elif chance < 0.6 and len(event) == 2:
        place = rng.choice(list(_places(event[1])))
        _put(event[1], place, _part(event[0], place))
    elif chance < 0.8:
        _take_part(rng, _pending(case), donors)
    elif chance < 0.85:
        tweak(rng, case, other)
    elif chance < 0.9:
        case["plugin"] = other["plugin"]
    else:
        _take_part(rng, rng.choice(case["objects"]), donors)
    _let_it_have_happened(case)


def _let_it_have_happened(case: Case) -> None:
    """The cluster is the one after the event."""
    new = case["newObject"]
    if new is not None:
        case["objects"] = [copy.deepcopy(new) if key(obj) == key(new) else obj for obj in case["objects"]]
