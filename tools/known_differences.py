"""Differences from kube-scheduler that are known, each with its reason and a narrow way to recognise it.

Either the release has another rule than the version that was recorded, or a problem has no single answer, or what
kube-scheduler does there is a fault that Pilotage does not share. Whatever fits no class here is a finding.
"""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

import msgspec
from answer_differences import Answer, Case, Difference, differences

from pilotage.framework.preemption.budgets import DisruptionBudgets
from pilotage.model.quantity import quantity_nanos
from pilotage.model.selectors import LabelSelector
from pilotage.plugins.device_classes import IMPLICIT_PREFIX

Object = dict[str, Any]
OwnAnswer = Callable[[Case], Answer]


def known_reason(case: Case, theirs: Answer, problems: Sequence[Difference], answer: OwnAnswer) -> str | None:
    """Why the answers differ, if that is known; `answer` asks Pilotage again."""
    for reason, recognises in CLASSES.items():
        if recognises(case, theirs, problems, answer):
            return reason
    return None


def _pods(case: Case) -> Iterator[Object]:
    return (obj for obj in case["objects"] if obj["kind"] == "Pod")


def _asked(case: Case) -> Object:
    return next(p for p in _pods(case) if f"{p['metadata']['namespace']}/{p['metadata']['name']}" == case["pod"])


# --- images -----------------------------------------------------------------------------------------------------------


def _only_scores_of(plugin: str, problems: Sequence[Difference]) -> bool:
    """Nothing differs but what one plugin gives, and the totals with it."""
    for what, theirs, ours in problems:
        if what.startswith("scores of "):
            if theirs is None or ours is None or theirs.keys() != ours.keys():
                return False
            if any(theirs[name] != ours[name] for name in theirs if name != plugin):
                return False
        elif not what.startswith("total of "):
            return False
    return True


def _images_of(pod: Object) -> Iterator[str]:
    spec = pod["spec"]
    for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
        yield _full_name(container.get("image", ""))
    for volume in spec.get("volumes", ()):
        if "image" in volume:
            yield _full_name(volume["image"].get("reference", ""))


def _full_name(image: str) -> str:
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _image_of_several_sizes(case: Case, theirs: Answer, problems: Sequence[Difference], answer: OwnAnswer) -> bool:
    sizes: defaultdict[str, set[int]] = defaultdict(set)
    for node in case["objects"]:
        for image in node.get("status", {}).get("images") or () if node["kind"] == "Node" else ():
            for name in image.get("names") or ():
                sizes[name].add(image.get("sizeBytes", 0))
    return _only_scores_of("ImageLocality", problems) and any(len(sizes[name]) > 1 for name in _images_of(_asked(case)))


def _image_volume(case: Case, theirs: Answer, problems: Sequence[Difference], answer: OwnAnswer) -> bool:
    has_one = any("image" in volume for volume in _asked(case)["spec"].get("volumes", ()))
    return has_one and _only_scores_of("ImageLocality", problems)


# --- volumes ----------------------------------------------------------------------------------------------------------


def _several_capacities(case: Case, theirs: Answer, problems: Sequence[Difference], answer: OwnAnswer) -> bool:
    """Storage of one class for a node is announced twice: which of both is scored depends on their order."""
    differing = {what.removeprefix("scores of ") for what, *_ in problems if what.startswith("scores of ")}
    nodes = [obj for obj in case["objects"] if obj["kind"] == "Node" and obj["metadata"]["name"] in differing]
    capacities = [obj for obj in case["objects"] if obj["kind"] == "CSIStorageCapacity" and "nodeTopology" in obj]
    return _only_scores_of("VolumeBinding", problems) and all(
        max(_by_class(capacities, node["metadata"].get("labels", {})).values(), default=0) > 1 for node in nodes
    )


def _by_class(capacities: list[Object], labels: dict[str, str]) -> Counter[str]:
    """How many of them are within reach of a node with these labels."""
    return Counter(
        capacity["storageClassName"]
        for capacity in capacities
        if msgspec.convert(capacity["nodeTopology"], LabelSelector).matches(labels)
    )


# --- preemption -------------------------------------------------------------------------------------------------------


def _protected_by_each(self: DisruptionBudgets, pods: Sequence[Any], cycle: Any = None) -> set[str]:
    """The rule of the release: a pod counts in all its budgets, even after one of them has protected it."""
    left: Counter[str] = Counter()
    protected = set()
    for pod in pods:
        for budget in self._counting(pod):
            left[budget.key] += 1
            if left[budget.key] > budget.status.disruptions_allowed:
                protected.add(pod.uid)
    return protected


def _several_budgets(case: Case, theirs: Answer, problems: Sequence[Difference], answer: OwnAnswer) -> bool:
    """Pilotage would say the same under the rule of the release."""
    if case["kind"] != "preemption":
        return False
    with patch.object(DisruptionBudgets, "protected", _protected_by_each):
        return not differences(case, theirs, answer(case))


# --- nodes ------------------------------------------------------------------------------------------------------------


def _agrees_on(
    changed: Callable[[Object], Object], case: Case, theirs: Answer, problems: Sequence[Difference], answer: OwnAnswer
) -> bool:
    """Of the pods after `changed` Pilotage says what the release says of them as they are."""
    objects = [changed(copy.deepcopy(obj)) if obj["kind"] == "Pod" else obj for obj in case["objects"]]
    event = {
        field: changed(copy.deepcopy(case[field]))
        for field in ("oldObject", "newObject")
        if case.get(field) and case[field]["kind"] == "Pod"
    }
    other = {**case, "objects": objects, **event}
    return other != case and not differences(case, theirs, answer(other))


def _resized(pod: Object) -> Object:
    """Each container requests what the release counts: the most of what is asked, allocated and in use there."""
    found = {status["name"]: status for status in pod.get("status", {}).pop("containerStatuses", None) or ()}
    for container in pod["spec"]["containers"] if pod["spec"].get("nodeName") else ():
        status = found.get(container["name"], {})
        requests = container.setdefault("resources", {}).setdefault("requests", {})
        if status.get("resources") is not None:
            for more in (status["resources"].get("requests", {}), status.get("allocatedResources", {})):
                for name, amount in more.items():
                    requests[name] = max(requests.get(name, "0"), amount, key=quantity_nanos)
    return pod


def _without_mount_options(pod: Object) -> Object:
    """The release knows nothing of a node feature for options of bind mounts."""
    for container in (*pod["spec"].get("initContainers", ()), *pod["spec"].get("containers", ())):
        for mount in container.get("volumeMounts", ()):
            mount.pop("bindMountOptions", None)
    return pod


def _filters_that_differ(problems: Sequence[Difference]) -> dict[str, set[str]]:
    """Nodes of which something else is said, with the plugins that say it on either side."""
    return {
        what.removeprefix("filter of "): {verdict.get("plugin", "") for verdict in (theirs, ours)} - {""}
        for what, theirs, ours in problems
        if what.startswith("filter of ")
    }


def _slices_disagree(case: Case, theirs: Answer, problems: Sequence[Difference], answer: OwnAnswer) -> bool:
    """A pool with slices that announce different numbers of them: which one counts depends on their order."""
    counts: defaultdict[tuple[str, str, int], set[int]] = defaultdict(set)
    for obj in case["objects"]:
        if obj["kind"] == "ResourceSlice":
            pool = obj["spec"]["pool"]
            counts[obj["spec"]["driver"], pool["name"], pool["generation"]].add(pool["resourceSliceCount"])
    differing = _filters_that_differ(problems)
    is_about_devices = bool(differing) and all(plugins == {"DynamicResources"} for plugins in differing.values())
    return is_about_devices and any(len(announced) > 1 for announced in counts.values())


def _shared_resource_name(case: Case, theirs: Answer, problems: Sequence[Difference], answer: OwnAnswer) -> bool:
    """The pod asks for a class by its implicit name, and a newer class has the resource name of that class.

    Whether the older one is known by its implicit name depends on which of both kube-scheduler saw first.
    """
    classes = [obj for obj in case["objects"] if obj["kind"] == "DeviceClass"]
    classes.sort(key=lambda obj: obj["metadata"]["name"])
    classes.sort(key=lambda obj: obj["metadata"].get("creationTimestamp", ""), reverse=True)
    named: set[str] = set()
    losing: set[str] = set()
    for each in classes:
        resource = each["spec"].get("extendedResourceName")
        if resource in named:
            losing.add(IMPLICIT_PREFIX + each["metadata"]["name"])
        elif resource is not None:
            named.add(resource)
    spec = _asked(case)["spec"]
    containers = (*spec.get("initContainers", ()), *spec.get("containers", ()))
    return any(losing & container.get("resources", {}).get("requests", {}).keys() for container in containers)


def _host_ports(pod: Object) -> Iterator[tuple[str, int]]:
    for container in (*pod["spec"].get("containers", ()), *pod["spec"].get("initContainers", ())):
        for port in container.get("ports", ()):
            if port.get("hostPort"):
                yield port.get("protocol", "TCP"), port["hostPort"]


def _same_host_port(case: Case, theirs: Answer, problems: Sequence[Difference], answer: OwnAnswer) -> bool:
    """Two pods of a node in question hold a port that the pod wants: when one leaves, both are forgotten there."""
    nodes = {node for node, plugins in _filters_that_differ(problems).items() if plugins == {"NodePorts"}}
    if case["kind"] == "preemption":
        nodes |= {node for what, *chosen in problems if what == "nominated node" for node in chosen}
    wanted = set(_host_ports(_asked(case)))
    held = Counter(
        (pod["spec"]["nodeName"], port)
        for pod in _pods(case)
        if pod["spec"].get("nodeName") in nodes
        for port in set(_host_ports(pod)) & wanted
    )
    return any(count > 1 for count in held.values())


# --- hints ------------------------------------------------------------------------------------------------------------


def _deleted_claim(case: Case, theirs: Answer, problems: Sequence[Difference], answer: OwnAnswer) -> bool:
    if case["kind"] != "hint" or case["plugin"] != "DynamicResources" or case["event"]["action"] != "Delete":
        return False
    return case["event"]["resource"] == "ResourceClaim" and problems[0][1:] == ("QueueSkip", "Queue")


CLASSES: dict[str, Callable[[Case, Answer, Sequence[Difference], OwnAnswer], bool]] = {
    "no single answer: nodes report an image with different sizes": _image_of_several_sizes,
    "no single answer: storage of one class for a node is announced twice": _several_capacities,
    "newer rule: image volumes count as containers in ImageLocality": _image_volume,
    "newer rule: a pod that one budget protects does not use up the others": _several_budgets,
    "newer rule: of a pod that is resized the larger sums count, not the larger requests of each container": partial(
        _agrees_on, _resized
    ),
    "newer rule: options of bind mounts are a feature that nodes declare": partial(_agrees_on, _without_mount_options),
    "no single answer: slices of a pool announce different numbers of slices": _slices_disagree,
    "no single answer: the pod asks by its implicit name for a class that shares its resource name with a newer one": (
        _shared_resource_name
    ),
    "fault of kube-scheduler: of two pods with the same host port one is forgotten": _same_host_port,
    "newer rule: the deletion of an allocated ResourceClaim may help any pod": _deleted_claim,
}
