"""Defaults and bounds of LimitRanges; sentences are those of the API server."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import pytest

from pilotage.model.limit_ranges import LimitRangeSpec, claim_breaches, container_defaults, pod_breaches
from pilotage.model.pod_spec import PodSpecFields

Json = dict[str, Any]


def limits(*items: Json) -> LimitRangeSpec:
    return msgspec.convert({"limits": list(items)}, LimitRangeSpec)


def container(name: str = "c", requests: Json | None = None, limits: Json | None = None, **fields: Any) -> Json:
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits or {}}, **fields}


def spec(*containers: Json, **fields: Any) -> PodSpecFields:
    return msgspec.convert({"containers": list(containers), **fields}, PodSpecFields)


def told(pod: PodSpecFields, *items: Json) -> list[str]:
    return [one.sentence for one in pod_breaches(pod, limits(*items))]


MIN = {"type": "Container", "min": {"cpu": "100m"}}
MAX = {"type": "Container", "max": {"cpu": "1000m"}}
RATIO = {"type": "Container", "maxLimitRequestRatio": {"cpu": "1500m"}}


@pytest.mark.parametrize(
    ("item", "requests", "limit", "sentence"),
    [
        (MIN, {"cpu": "100m"}, {}, ""),
        (MIN, {}, {}, "minimum cpu usage per Container is 100m.  No request is specified"),
        (MIN, {"cpu": "99m"}, {"cpu": "1"}, "minimum cpu usage per Container is 100m, but request is 99m"),
        (MIN, {"cpu": "0.1"}, {"cpu": "0.05"}, "minimum cpu usage per Container is 100m, but limit is 50m"),
        (MAX, {"cpu": "1"}, {"cpu": "1"}, ""),
        (MAX, {"cpu": "1"}, {}, "maximum cpu usage per Container is 1.  No limit is specified"),
        (MAX, {"cpu": "1"}, {"cpu": "2"}, "maximum cpu usage per Container is 1, but limit is 2"),
        (MAX, {"cpu": "1500m"}, {"cpu": "1"}, "maximum cpu usage per Container is 1, but request is 1500m"),
        (RATIO, {"cpu": "2"}, {"cpu": "3"}, ""),
        (RATIO, {}, {"cpu": "3"}, "but no request is specified or request is 0"),
        (RATIO, {"cpu": "0"}, {"cpu": "3"}, "but no request is specified or request is 0"),
        (RATIO, {"cpu": "3"}, {}, "but no limit is specified or limit is 0"),
        (
            RATIO,
            {"cpu": "300m"},
            {"cpu": "1"},
            "cpu max limit to request ratio per Container is 1500m, but provided ratio is 3.333333",
        ),
    ],
)
def test_a_container_is_held_against_each_bound(item: Json, requests: Json, limit: Json, sentence: str) -> None:
    said = told(spec(container(requests=requests, limits=limit)), item)
    assert [one.endswith(sentence) for one in said] == ([True] if sentence else [])


def test_every_container_and_every_bound_is_named() -> None:
    both = {"type": "Container", "max": {"memory": "1Gi", "cpu": "1"}}
    wide = container("wide", limits={"cpu": "2", "memory": "1024Mi"})
    init = container("init", limits={"cpu": "1", "memory": "1.5Gi"})
    found = pod_breaches(spec(wide, initContainers=[init]), limits(both))
    assert [(one.container, one.resource, one.amount) for one in found] == [
        ("wide", "cpu", Fraction(2)),
        ("init", "memory", Fraction(3 * 2**29)),
    ]
    assert found[1].sentence == "maximum memory usage per Container is 1Gi, but limit is 1536Mi"


POD_MAX = {"type": "Pod", "max": {"cpu": "2", "memory": "1Gi"}}


@pytest.mark.parametrize(
    ("pod", "sentences"),
    [
        (
            spec(container("a", limits={"cpu": "1", "memory": "1Gi"}), container("b", limits={"cpu": "1"})),
            [],
        ),
        (
            spec(*(container(name, limits={"cpu": "800m", "memory": "512Mi"}) for name in "abc")),
            ["cpu usage per Pod is 2, but limit is 2400m", "memory usage per Pod is 1Gi, but limit is 1536Mi"],
        ),
        (
            spec(
                container("a", limits={"cpu": "1", "memory": "1Mi"}),
                initContainers=[container("side", limits={"cpu": "1500m"}, restartPolicy="Always")],
            ),
            ["cpu usage per Pod is 2, but limit is 2500m"],
        ),
        (
            spec(container("a", limits={"cpu": "1", "memory": "1Mi"}), initContainers=[container(limits={"cpu": "3"})]),
            ["cpu usage per Pod is 2, but limit is 3"],
        ),
        (
            spec(container("a", limits={"cpu": "9"}), resources={"limits": {"cpu": "2", "memory": "1Gi"}}),
            [],
        ),
        (
            spec(container("a", limits={"cpu": "2", "memory": "1Gi"}), overhead={"cpu": "9"}),
            [],
        ),
        (
            spec(container("a", requests={"cpu": "1"})),
            ["cpu usage per Pod is 2.  No limit is specified", "memory usage per Pod is 1Gi.  No limit is specified"],
        ),
    ],
    ids=["fits", "sum", "sidecar", "init step", "pod level", "overhead does not count", "without limits"],
)
def test_a_pod_is_held_against_bounds_as_a_whole(pod: PodSpecFields, sentences: list[str]) -> None:
    assert told(pod, POD_MAX) == [f"maximum {one}" for one in sentences]


@pytest.mark.parametrize(
    ("item", "requests", "limit"),
    [
        ({"default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}, {"cpu": "1"}, {"cpu": "2"}),
        ({"default": {"cpu": "2"}}, {"cpu": "2"}, {"cpu": "2"}),
        ({"max": {"cpu": "3"}}, {"cpu": "3"}, {"cpu": "3"}),
        ({"max": {"cpu": "3"}, "default": {"cpu": "2"}}, {"cpu": "2"}, {"cpu": "2"}),
        ({"min": {"cpu": "1"}}, {"cpu": "1"}, {}),
        ({"min": {"cpu": "1"}, "max": {"cpu": "3"}}, {"cpu": "3"}, {"cpu": "3"}),
        ({"type": "Pod", "max": {"cpu": "3"}, "min": {"cpu": "1"}}, {}, {}),
    ],
)
def test_containers_get_defaults(item: Json, requests: Json, limit: Json) -> None:
    found = container_defaults(limits({"type": "Container", **item}))
    assert (found.requests, found.limits) == (requests, limit)


@pytest.mark.parametrize(
    ("storage", "sentences"),
    [
        ("2Gi", []),
        ("512Mi", ["minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 512Mi"]),
        ("5G", ["maximum storage usage per PersistentVolumeClaim is 4Gi, but request is 5G"]),
    ],
)
def test_claims_are_held_against_the_bounds_of_claims(storage: str, sentences: list[str]) -> None:
    item = {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "4Gi"}}
    found = claim_breaches({"storage": storage}, limits(item, {"type": "Container", "max": {"storage": "1"}}))
    assert [one.sentence for one in found] == sentences
