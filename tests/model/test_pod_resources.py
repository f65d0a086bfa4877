"""What a pod asks for: the rules of containers, init containers, sidecars, pod level, overhead and resizes."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from pilotage.model.pod import Pod, PodSpec, PodStatus, shared_spec
from pilotage.model.pod_resources import (
    assigned_non_zero_requests,
    assigned_requests,
    non_zero_requests,
    pod_limits,
    pod_requests,
)
from pilotage.model.pod_spec import PodSpecFields

MIB = 1024 * 1024
DEFAULT = (100, 200 * MIB)


def _container(name: str = "app", *, sidecar: bool = False, **requests: Any) -> dict[str, Any]:
    renamed = {key.replace("__", "/").replace("_", "-"): value for key, value in requests.items()}
    container: dict[str, Any] = {"name": name, "resources": {"requests": renamed}}
    return container | ({"restartPolicy": "Always"} if sidecar else {})


def _spec(*containers: dict[str, Any], init: list[dict[str, Any]] | None = None, **more: Any) -> PodSpec:
    body = {"containers": list(containers), "initContainers": init or [], **more}
    return shared_spec(msgspec.convert(body, PodSpecFields))


REQUESTS: dict[str, tuple[PodSpec, dict[str, int]]] = {
    "nothing asked": (_spec(_container()), {}),
    "containers add up": (
        _spec(_container(cpu="100m", memory="1Mi"), _container(cpu="1", memory="2Mi")),
        {"cpu": 1100, "memory": 3 * MIB},
    ),
    "numbers instead of strings": (_spec(_container(cpu=1, memory=5)), {"cpu": 1000, "memory": 5}),
    "sums are exact and rounded once": (
        _spec(_container(cpu="0.1m", memory="100m"), _container(cpu="0.4m", memory="300m")),
        {"cpu": 1, "memory": 1},
    ),
    "any resource": (
        _spec(_container(example_com__gpu="2", ephemeral_storage="1Gi"), _container(example_com__gpu="1")),
        {"example-com/gpu": 3, "ephemeral-storage": 1024 * MIB},
    ),
    "a large init container counts alone": (
        _spec(_container(cpu="1", memory="1Mi"), init=[_container(cpu="2"), _container(cpu="3")]),
        {"cpu": 3000, "memory": MIB},
    ),
    "a small init container does not count": (_spec(_container(cpu="4"), init=[_container(cpu="2")]), {"cpu": 4000}),
    "sidecars run beside the containers": (
        _spec(_container(cpu="1"), init=[_container(cpu="2", sidecar=True)]),
        {"cpu": 3000},
    ),
    "an init container runs beside the sidecars before it": (
        _spec(_container(cpu="1"), init=[_container(cpu="2", sidecar=True), _container(cpu="5")]),
        {"cpu": 7000},
    ),
    "an init container does not see the sidecars after it": (
        _spec(_container(cpu="1"), init=[_container(cpu="5"), _container(cpu="2", sidecar=True)]),
        {"cpu": 5000},
    ),
    "two sidecars around an init container": (
        _spec(
            _container(cpu="1"),
            init=[_container(cpu="1", sidecar=True), _container(cpu="3"), _container(cpu="2", sidecar=True)],
        ),
        {"cpu": 4000},
    ),
    "resources are judged one by one": (
        _spec(_container(cpu="1", memory="8Mi"), init=[_container(cpu="2", memory="4Mi")]),
        {"cpu": 2000, "memory": 8 * MIB},
    ),
    "overhead comes on top": (
        _spec(_container(cpu="1"), init=[_container(cpu="3")], overhead={"cpu": "250m", "memory": "1Mi"}),
        {"cpu": 3250, "memory": MIB},
    ),
    "pod level replaces cpu, memory and huge pages": (
        _spec(
            _container(cpu="1", memory="8Mi", hugepages_2Mi="2Mi"),
            resources={"requests": {"cpu": "500m", "memory": "16Mi", "hugepages-2Mi": "4Mi"}},
        ),
        {"cpu": 500, "memory": 16 * MIB, "hugepages-2Mi": 4 * MIB},
    ),
    "pod level leaves the rest alone": (
        _spec(_container(cpu="1", memory="8Mi"), resources={"requests": {"memory": "16Mi", "example.com/gpu": "9"}}),
        {"cpu": 1000, "memory": 16 * MIB},
    ),
    "overhead comes on top of the pod level": (
        _spec(_container(cpu="1"), resources={"requests": {"cpu": "2"}}, overhead={"cpu": "100m"}),
        {"cpu": 2100},
    ),
    "pod level replaces the init containers too": (
        _spec(_container(cpu="1"), init=[_container(cpu="9")], resources={"requests": {"cpu": "2"}}),
        {"cpu": 2000},
    ),
    "a request of zero is kept": (_spec(_container(cpu="0")), {"cpu": 0}),
}


@pytest.mark.parametrize(("spec", "expected"), REQUESTS.values(), ids=REQUESTS.keys())
def test_pod_requests(spec: PodSpec, expected: dict[str, int]) -> None:
    assert pod_requests(spec) == expected


NON_ZERO: dict[str, tuple[PodSpec, tuple[int, int]]] = {
    "nothing asked": (_spec(_container()), DEFAULT),
    "per container": (_spec(_container(), _container(cpu="1")), (1100, 400 * MIB)),
    "an explicit zero stays zero": (_spec(_container(cpu="0", memory="0")), (0, 0)),
    "init containers too": (_spec(_container(cpu="0"), init=[_container(memory="1Mi")]), (100, 200 * MIB)),
    "sidecars too": (_spec(_container(cpu="1"), init=[_container(sidecar=True)]), (1100, 400 * MIB)),
    "overhead": (_spec(_container(), overhead={"cpu": "1"}), (1100, 200 * MIB)),
    "pod level names both": (
        _spec(_container(), resources={"requests": {"cpu": "10m", "memory": "1Mi"}}),
        (10, MIB),
    ),
    "pod level names one, nobody the other": (
        _spec(_container(), _container(), resources={"requests": {"cpu": "10m"}}),
        (10, 400 * MIB),
    ),
    "pod level names one, a container the other": (
        _spec(_container(), _container(memory="1Mi"), resources={"requests": {"cpu": "10m"}}),
        (10, MIB),
    ),
    "pod level names neither": (_spec(_container(), resources={"requests": {"example.com/gpu": "1"}}), DEFAULT),
    "no containers": (_spec(), (0, 0)),
}


@pytest.mark.parametrize(("spec", "expected"), NON_ZERO.values(), ids=NON_ZERO.keys())
def test_non_zero_requests(spec: PodSpec, expected: tuple[int, int]) -> None:
    assert non_zero_requests(spec) == expected


def _limited(**limits: str) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": "1m"}, "limits": limits}}


LIMITS: dict[str, tuple[PodSpec, dict[str, int]]] = {
    "requests are no limits": (_spec(_container(cpu="1")), {}),
    "containers add up, one without a limit counts with none": (
        _spec(_limited(cpu="1"), _limited(cpu="500m", memory="1Mi"), _container(cpu="4")),
        {"cpu": 1500, "memory": MIB},
    ),
    "the largest init container": (_spec(_limited(cpu="1"), init=[_limited(cpu="2")]), {"cpu": 2000}),
    "the pod's own level replaces": (_spec(_limited(cpu="1"), resources={"limits": {"cpu": "3"}}), {"cpu": 3000}),
    "overhead raises limits and makes none": (
        _spec(_limited(cpu="1"), overhead={"cpu": "100m", "memory": "1Mi"}),
        {"cpu": 1100},
    ),
}


@pytest.mark.parametrize(("spec", "expected"), LIMITS.values(), ids=LIMITS.keys())
def test_pod_limits(spec: PodSpec, expected: dict[str, int]) -> None:
    assert pod_limits(spec) == expected


def test_results_are_worked_out_once_per_spec() -> None:
    spec = _spec(_container(cpu="321m"))
    assert pod_requests(spec) is pod_requests(spec)
    assert non_zero_requests(spec) is non_zero_requests(spec)


def _status(granted: str = "", in_effect: str = "", *, infeasible: bool = False, **more: Any) -> dict[str, Any]:
    reported: dict[str, Any] = {"name": "app"}
    if granted:
        reported["allocatedResources"] = {"cpu": granted}
    if in_effect:
        reported["resources"] = {"requests": {"cpu": in_effect}}
    pending = {"type": "PodResizePending", "status": "True", "reason": "Infeasible" if infeasible else "Deferred"}
    return {"containerStatuses": [reported], "conditions": [pending], **more}


_POD_LEVEL = {"requests": {"cpu": "4"}}

RESIZES: dict[str, tuple[PodSpec, dict[str, Any], int]] = {
    "no report": (_spec(_container(cpu="2")), {}, 2000),
    "growing: asked for": (_spec(_container(cpu="2")), _status("1", "1"), 2000),
    "shrinking: granted": (_spec(_container(cpu="1")), _status("3", "1"), 3000),
    "shrinking: in effect": (_spec(_container(cpu="1")), _status("1", "3"), 3000),
    "impossible: what was asked for is left out": (
        _spec(_container(cpu="9")),
        _status("1", "2", infeasible=True),
        2000,
    ),
    "in effect unknown: granted": (_spec(_container(cpu="9")), _status("3", infeasible=True), 3000),
    "granted unknown, asked for impossible: in effect": (
        _spec(_container(cpu="3")),
        _status("", "1", infeasible=True),
        1000,
    ),
    "nothing known of a container, asked for impossible": (
        _spec(_container(cpu="3"), initContainers=[_container(cpu="5") | {"name": "other"}]),
        _status("1", "1", infeasible=True),
        1000,
    ),
    "overhead once": (_spec(_container(cpu="1"), overhead={"cpu": "1"}), _status("3", "3"), 4000),
    "pod level: largest": (
        _spec(_container(cpu="1"), resources=_POD_LEVEL),
        _status("1", "1", allocatedResources={"cpu": "6"}, resources={"requests": {"cpu": "5"}}),
        6000,
    ),
    "pod level: impossible": (
        _spec(_container(cpu="1"), resources=_POD_LEVEL),
        _status("1", "1", infeasible=True, allocatedResources={"cpu": "2"}),
        2000,
    ),
}


@pytest.mark.parametrize(("spec", "status", "cpu"), RESIZES.values(), ids=RESIZES.keys())
def test_assigned_pod_counts_with_the_largest_during_a_resize(spec: PodSpec, status: dict[str, Any], cpu: int) -> None:
    pod = Pod(name="a", spec=spec, status=msgspec.convert(status, PodStatus))
    assert assigned_requests(pod)["cpu"] == cpu
    assert assigned_non_zero_requests(pod) == (cpu, 200 * MIB)


def test_assigned_pods_of_one_spec_are_distinguished_by_their_status() -> None:
    spec = _spec(_container(cpu="1"), resources=_POD_LEVEL)
    status = msgspec.convert(_status("1", "1"), PodStatus)
    statuses = [status, *(replace(status, allocated_resources={"cpu": str(cores)}) for cores in range(5, 105))]
    pods = [Pod(name="a", spec=spec, status=status) for status in statuses]
    expected = [4000, *range(5000, 105000, 1000)]
    assert [assigned_requests(pod)["cpu"] for pod in pods] == expected
    assert [assigned_requests(pod)["cpu"] for pod in pods] == expected


def test_sidecars_are_resized_too() -> None:
    spec = _spec(_container(cpu="1"), init=[_container("side", cpu="1", sidecar=True)])
    reported = {"initContainerStatuses": [{"name": "side", "allocatedResources": {"cpu": "4"}}]}
    pod = Pod(name="a", spec=spec, status=msgspec.convert(reported, PodStatus))
    assert assigned_requests(pod) == {"cpu": 5000}


def test_requests_are_those_of_the_largest_step_whatever_order_sidecars_come_in() -> None:
    """Against the rule as it is written: each init container runs beside the sidecars that were started before it."""
    rng = random.Random(4)
    names = ("cpu", "memory", "a__x", "b__x")
    for _ in range(300):
        wanted = [{name: str(rng.randrange(5)) for name in names if rng.random() < 0.5} for _ in range(6)]
        sidecars = [rng.random() < 0.5 for _ in range(5)]
        steps = [_container(f"i{at}", sidecar=one, **wanted[at]) for at, one in enumerate(sidecars)]
        spec = _spec(_container(**wanted[5]), initContainers=steps)
        expected = {}
        for name in names:
            amounts = [int(one.get(name, "0")) for one in wanted]
            beside = [
                sum(a for a, is_sidecar in zip(amounts[:at], sidecars, strict=False) if is_sidecar) for at in range(5)
            ]
            running = amounts[5] + sum(a for a, is_sidecar in zip(amounts, sidecars, strict=False) if is_sidecar)
            expected[name.replace("__", "/")] = max(running, *(a + b for a, b in zip(amounts, beside, strict=False)))
        expected["cpu"] *= 1000
        assert {name: amount for name, amount in expected.items() if amount} == {
            name: amount for name, amount in pod_requests(spec).items() if amount
        }
