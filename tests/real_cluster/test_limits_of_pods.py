"""LimitRanges and RuntimeClasses: what both servers add to pods and claims, and in which words they refuse them."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from .client import Json, Refused
from .world import World

_numbers = count()


def limited(world: World, *items: Json) -> str:
    """A namespace of its own: the real server may remember the limits of a namespace for half a minute."""
    namespace = f"limited-{next(_numbers)}"
    world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    limits = {"kind": "LimitRange", "metadata": {"name": "bounds", "namespace": namespace}}
    world.create({"apiVersion": "v1", **limits, "spec": {"limits": list(items)}})
    return namespace


def container(name: str = "c", **resources: Json) -> Json:
    return {"name": name, "image": "pause", "resources": resources}


def pod(namespace: str, *containers: Json, **spec: Any) -> Json:
    metadata = {"name": "p", "namespace": namespace}
    body = {"containers": list(containers), "terminationGracePeriodSeconds": 0, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


def claim(namespace: str, storage: str) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    metadata = {"name": "claim", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def rejection(world: World, obj: Json) -> tuple[int, str]:
    with pytest.raises(Refused) as refused:
        world.api.create(obj)
    return refused.value.code, str(refused.value).partition(" ")[2]


DEFAULTS = {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "250m", "memory": "64Mi"}}
WRITTEN = "LimitRanger plugin set: cpu, memory request for container c; cpu limit for container c"


@pytest.mark.parametrize(
    ("item", "given", "requests", "limits", "note", "quality"),
    [
        (DEFAULTS, {}, {"cpu": "250m", "memory": "64Mi"}, {"cpu": "1"}, WRITTEN, "Burstable"),
        (
            DEFAULTS,
            {"limits": {"cpu": "500m"}},
            {"cpu": "500m", "memory": "64Mi"},
            {"cpu": "500m"},
            "LimitRanger plugin set: memory request for container c",
            "Burstable",
        ),
        (
            {"type": "Container", "max": {"cpu": "2", "memory": "1Gi"}},
            {},
            {"cpu": "2", "memory": "1Gi"},
            {"cpu": "2", "memory": "1Gi"},
            "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c",
            "Guaranteed",
        ),
        (
            {"type": "Container", "min": {"cpu": "10m"}},
            {},
            {"cpu": "10m"},
            {},
            "LimitRanger plugin set: cpu request for container c",
            "Burstable",
        ),
        ({"type": "Pod", "max": {"cpu": "4"}}, {"limits": {"cpu": "4"}}, {"cpu": "4"}, {"cpu": "4"}, None, "Burstable"),
    ],
    ids=["defaults", "own limit first", "maximum", "minimum", "pod"],
)
def test_containers_get_what_they_do_not_say(
    world: World, item: Json, given: Json, requests: Json, limits: Json, note: str | None, quality: str
) -> None:
    made = world.api.create(pod(limited(world, item), container(**given)))
    resources = made["spec"]["containers"][0]["resources"]
    assert (resources.get("requests", {}), resources.get("limits", {})) == (requests, limits)
    assert made["metadata"].get("annotations", {}).get("kubernetes.io/limit-ranger") == note
    assert made["status"]["qosClass"] == quality


def test_init_containers_are_completed_too(world: World) -> None:
    namespace = limited(world, {"type": "Container", "default": {"cpu": "1"}})
    made = world.api.create(pod(namespace, container(limits={"cpu": "2"}), initContainers=[container("i")]))
    assert made["spec"]["initContainers"][0]["resources"] == {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu request for init container i; cpu limit for init container i"
    )


BOTH = {"requests": {"cpu": "300m"}, "limits": {"cpu": "2"}}


@pytest.mark.parametrize(
    ("item", "given", "problem"),
    [
        (
            {"type": "Container", "max": {"cpu": "1"}},
            {"limits": {"cpu": "2000m"}},
            "maximum cpu usage per Container is 1, but limit is 2",
        ),
        (
            {"type": "Container", "min": {"cpu": "500m"}},
            BOTH,
            "minimum cpu usage per Container is 500m, but request is 300m",
        ),
        (
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "3"}},
            BOTH,
            "cpu max limit to request ratio per Container is 3, but provided ratio is 6.666667",
        ),
        (
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "3"}},
            {},
            "cpu max limit to request ratio per Container is 3, but no request is specified or request is 0",
        ),
        ({"type": "Pod", "max": {"cpu": "1"}}, BOTH, "maximum cpu usage per Pod is 1, but limit is 4"),
        ({"type": "Pod", "max": {"memory": "1Gi"}}, {}, "maximum memory usage per Pod is 1Gi.  No limit is specified"),
        ({"type": "Pod", "min": {"cpu": "1"}}, {}, "minimum cpu usage per Pod is 1.  No request is specified"),
        (
            {"type": "Pod", "min": {"memory": "1Gi"}},
            {"requests": {"memory": "100Mi"}},
            "minimum memory usage per Pod is 1Gi, but request is 200Mi",
        ),
        (
            {"type": "Container", "min": {"cpu": "1"}, "max": {"cpu": "1500m"}},
            BOTH,
            "[minimum cpu usage per Container is 1, but request is 300m, "
            "maximum cpu usage per Container is 1500m, but limit is 2]",
        ),
    ],
    ids=["max", "min", "ratio", "no ratio", "pod max", "no limit", "no request", "pod min", "two"],
)
def test_pods_beyond_the_limits_are_rejected_in_the_same_words(
    world: World, item: Json, given: Json, problem: str
) -> None:
    namespace = limited(world, item)
    told = rejection(world, pod(namespace, container("a", **given), container("b", **given)))
    assert told == (403, f'pods "p" is forbidden: {problem}')


def test_a_request_above_a_default_limit_is_an_invalid_pod(world: World) -> None:
    namespace = limited(world, {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}})
    code, message = rejection(world, pod(namespace, container(requests={"cpu": "2"})))
    assert code == 422 and message.endswith("must be less than or equal to cpu limit of 1")


def test_a_resize_keeps_to_the_limits(world: World) -> None:
    namespace = limited(world, {"type": "Container", "max": {"cpu": "1"}})
    world.api.create(pod(namespace, container(requests={"cpu": "1"}, limits={"cpu": "1"})))
    change = {"spec": {"containers": [container(requests={"cpu": "2"}, limits={"cpu": "2"})]}}
    with pytest.raises(Refused, match='pods "p" is forbidden: maximum cpu usage per Container is 1, but limit is 2'):
        world.api.patch("pods", "p", change, subresource="resize", namespace=namespace)


@pytest.mark.parametrize(
    ("storage", "problem"),
    [
        ("2Gi", ""),
        ("512Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 512Mi"),
        ("5G", "maximum storage usage per PersistentVolumeClaim is 4Gi, but request is 5G"),
    ],
)
def test_claims_keep_to_the_limits(world: World, storage: str, problem: str) -> None:
    item = {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "4Gi"}}
    wanted = claim(limited(world, item), storage)
    if problem:
        assert rejection(world, wanted) == (403, f'persistentvolumeclaims "claim" is forbidden: {problem}')
    else:
        assert world.api.create(wanted)["spec"]["resources"]["requests"] == {"storage": storage}


@pytest.mark.parametrize(
    ("item", "stored"),
    [
        (
            {"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1", "memory": "1Mi"}},
            {"default": {"cpu": "2"}, "defaultRequest": {"cpu": "2", "memory": "1Mi"}},
        ),
        (
            {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}},
            {"default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}},
        ),
        ({"type": "Pod", "max": {"cpu": "2"}}, {}),
    ],
)
def test_a_limit_range_is_completed(world: World, item: Json, stored: Json) -> None:
    namespace = limited(world, item)
    found = world.api.get("limitranges", "bounds", namespace)
    assert found is not None
    [limits] = found["spec"]["limits"]
    assert {name: value for name, value in limits.items() if name.startswith("default")} == stored


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        (
            [{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}],
            'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
        ),
        (
            [{"type": "Container", "defaultRequest": {"cpu": "2"}, "default": {"cpu": "1"}}],
            'spec.limits[0].defaultRequest[cpu]: Invalid value: "2": '
            "default request value 2 is greater than default limit value 1",
        ),
        (
            [{"type": "Container", "default": {"cpu": "3"}, "max": {"cpu": "1"}}],
            "default value 3 is greater than max value 1",
        ),
        (
            [{"type": "Container", "maxLimitRequestRatio": {"cpu": "500m"}}],
            'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1',
        ),
        (
            [{"type": "Pod", "min": {"cpu": "1"}, "max": {"cpu": "3"}, "maxLimitRequestRatio": {"cpu": "4"}}],
            "ratio 4 is greater than max/min = 3.000000",
        ),
        (
            [{"type": "Pod", "default": {"cpu": "1"}}],
            "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
        ),
        ([{"type": "Pod"}, {"type": "Pod"}], 'spec.limits[1].type: Duplicate value: "Pod"'),
        (
            [{"type": "Node"}],
            'spec.limits[0].type: Invalid value: "Node": must be a standard limit type or fully qualified',
        ),
        (
            [{"type": "PersistentVolumeClaim"}],
            "spec.limits[0].limits: Required value: either minimum or maximum storage value is required, "
            "but neither was provided",
        ),
        (
            [{"type": "Container", "default": {"a.com/b": "2"}, "defaultRequest": {"a.com/b": "1"}}],
            "default value 2 must equal to defaultRequest value 1 in a.com/b",
        ),
        ([{"type": "Container", "max": {"storage": "1"}}], "must be a standard resource for containers"),
    ],
    ids=["min", "request", "default", "ratio", "max/min", "pod", "twice", "type", "claim", "devices", "resource"],
)
def test_limits_that_make_no_sense_are_rejected(world: World, items: list[Json], problem: str) -> None:
    with pytest.raises(Refused) as refused:
        limited(world, *items)
    assert refused.value.code == 422 and problem in str(refused.value)


def runtime_class(name: str, **fields: Any) -> Json:
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": "h",
        **fields,
    }


def test_a_runtime_class_brings_overhead_and_placement(world: World) -> None:
    toleration = {"key": "boxed", "operator": "Exists"}
    scheduling = {"nodeSelector": {"boxed": "yes"}, "tolerations": [toleration]}
    world.create(runtime_class("kata", overhead={"podFixed": {"cpu": "250m"}}, scheduling=scheduling))
    made = world.api.create(pod("default", container(), runtimeClassName="kata", nodeSelector={"a": "b"}))["spec"]
    assert made["overhead"] == {"cpu": "250m"} and made["nodeSelector"] == {"a": "b", "boxed": "yes"}
    assert toleration in made["tolerations"]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"runtimeClassName": "none"}, 'pod rejected: RuntimeClass "none" not found'),
        (
            {"runtimeClassName": "kata", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            {"runtimeClassName": "plain", "overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            {"runtimeClassName": "kata", "nodeSelector": {"boxed": "no"}},
            "conflict: runtimeClass.scheduling.nodeSelector[boxed] = yes; pod.spec.nodeSelector[boxed] = no",
        ),
    ],
    ids=["unknown", "other overhead", "no class", "class without overhead", "elsewhere"],
)
def test_a_pod_that_contradicts_its_runtime_class_is_rejected(world: World, spec: Json, problem: str) -> None:
    scheduling = {"nodeSelector": {"boxed": "yes"}}
    world.create(runtime_class("kata", overhead={"podFixed": {"cpu": "250m"}}, scheduling=scheduling))
    world.create(runtime_class("plain"))
    assert rejection(world, pod("default", container(), **spec)) == (403, f'pods "p" is forbidden: {problem}')
