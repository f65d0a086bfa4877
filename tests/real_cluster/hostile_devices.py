"""Claims, slices and expressions that an API server accepts and that are hard to search or to evaluate."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from .client import Json
from .hostile_objects import HostileCase, claims_of, head, pod

DRIVER = "hostile.example.com"
_INDEX = f'device.attributes["{DRIVER}"].index'


def device_cases() -> Iterator[HostileCase]:
    yield from pattern_cases()
    yield from expression_cases()
    yield from counting_cases()
    yield from constraint_cases()
    yield from slice_cases()


# --- expressions ------------------------------------------------------------------------------------------------------


def pattern_cases() -> Iterator[HostileCase]:
    text = f'"{"a" * 40}!"'
    yield selecting("regex-find", f'{text}.find("^(a+)+$") == ""')
    yield selecting("regex-matches", f'!{text}.matches("^(a+)+$")')
    yield selecting("regex-find-all", f'{text}.findAll("(a|aa)+$").size() == 0')
    yield selecting("regex-find-some", f'{text}.findAll("(a*)*b", 2).size() == 0')
    long = f'"{"a" * 3_000}"'
    yield selecting("regex-long-text", f'{long}.findAll("a(.*b)?").size() > 0')
    yield selecting("regex-large-program", '"' + "é" * 64 + '".matches("([^x].{0,90}){1,9}y") == false')
    yield selecting("regex-many", " && ".join(f'!"a".matches("b{i}(c|d){{9}}")' for i in range(250)))


def expression_cases() -> Iterator[HostileCase]:
    long = " || ".join(f"{_INDEX} == {i}" for i in range(180))
    yield claimed("long-expressions", [exact(f"r{i}", selectors=[cel(long)] * 4) for i in range(2)])
    different = [exact(f"r{i}", selectors=[cel(f"{long} || {n} == {i}") for n in range(6)]) for i in range(8)]
    yield claimed("48-different-long-expressions", different)
    numbers = "[" + ",".join("1" * 100) + "]"
    yield selecting("loops", f"{numbers}.all(a, {numbers}.all(b, a == b))")
    yield selecting("lists-that-double", binds(12, "[1]", "[p, p]", "p == p"))
    yield selecting("maps-that-double", binds(12, "[1]", "{1: p, 2: p}", "p == p"))
    yield selecting("texts-that-double", binds(14, '"aaaaaaaa"', "p + p", "p.size() > 1"))
    yield selecting("replacements", f'"{"a" * 900}".replace("a", "{"b" * 900}").size() > 1')
    yield selecting("quadratic-lists", f"{numbers}.map(x, x).distinct().size() == 1 && sets.contains({numbers}, [1])")
    yield selecting("quantities", f'isQuantity("{"9" * 4_000}") || !isQuantity("1e{"9" * 100}")')
    yield selecting("versions", f'!isSemver("1.1.1-{"1" * 4_000}!")')
    yield selecting("division-by-zero", f"1 / ({_INDEX} - 3) < 2")


def binds(levels: int, first: str, growth: str, last: str) -> str:
    """Values that are made of the value before, so many times; p stands for it."""
    steps = [f"cel.bind(x{i}, {growth.replace('p', f'x{i - 1}') if i else first}, " for i in range(levels)]
    return "".join(steps) + last.replace("p", f"x{levels - 1}") + ")" * levels


# --- requests ---------------------------------------------------------------------------------------------------------


def counting_cases() -> Iterator[HostileCase]:
    yield claimed("13-requests-12-devices", [exact(f"r{i}") for i in range(13)])
    yield claimed("13-requests-at-2500-nodes", [exact(f"r{i}") for i in range(13)], nodes=2_500)
    yield claimed("32-requests", [exact(f"r{i}") for i in range(32)])
    yield claimed("16-requests-of-two", [exact(f"r{i}", count=2) for i in range(16)])
    yield claimed("all", [exact("r", allocationMode="All")])
    yield claimed("all-and-one-more", [exact("r"), exact("s", allocationMode="All")])
    yield claimed("different-requests", [exact(f"r{i}", selectors=[cel(f"{_INDEX} != {i}")]) for i in range(13)])
    yield claimed("narrow-requests", [exact(f"r{i}", selectors=[cel(f"{_INDEX} % {i + 2} == 0")]) for i in range(11)])
    some = [sub(f"s{i}", selectors=[cel(f"{_INDEX} >= {i}")]) for i in range(8)]
    yield claimed("12-requests-of-8-alternatives", [{"name": f"r{i}", "firstAvailable": some} for i in range(12)])
    yield claimed("32-requests-of-8-alternatives", [{"name": f"r{i}", "firstAvailable": some} for i in range(32)])
    tolerated = [{"key": f"k{i}", "operator": "Exists"} for i in range(16)]
    yield claimed("tolerations", [exact(f"r{i}", tolerations=tolerated) for i in range(13)])
    many = [claim(f"claim-{i}", [exact("r")]) for i in range(40)]
    users = [pod(f"p{i}", **claims_of(*(f"claim-{n}" for n in range(i, 40, 4)))) for i in range(4)]
    yield HostileCase("device-10-claims-a-pod", lambda: [*slices(2), *many, *users])
    user = pod(**claims_of(*(f"claim-{n}" for n in range(40))))
    yield HostileCase("device-40-claims-a-pod", lambda: [*slices(2), *many, user])


def constraint_cases() -> Iterator[HostileCase]:
    eight = [exact(f"r{i}") for i in range(8)]
    for name in ("group", "index"):
        yield claimed(f"match-{name}", eight, [{"matchAttribute": f"{DRIVER}/{name}"}])
        yield claimed(f"distinct-{name}", eight, [{"distinctAttribute": f"{DRIVER}/{name}"}])
    overlapping = [
        {"requests": [f"r{i}", f"r{i + 1}"], "matchAttribute": f"{DRIVER}/{attribute}"}
        for i, attribute in product(range(8), ("group", "parity"))
    ]
    yield claimed("overlapping-constraints", [exact(f"r{i}") for i in range(9)], overlapping)


# --- slices -----------------------------------------------------------------------------------------------------------


def slice_cases() -> Iterator[HostileCase]:
    wanted = [claim("claim", [exact("r")]), pod(**claims_of("claim"))]
    flood = [pool(f"flood-{i}", f"node-{i}") for i in range(100)]
    yield HostileCase("device-100-slices", lambda: [device_class(), *flood, *wanted])
    incomplete = [pool(f"part-{i}", f"node-{i}", pool_name="one", slices=500) for i in range(200)]
    yield HostileCase("device-200-slices-of-an-incomplete-pool", lambda: [device_class(), *incomplete, *wanted])
    large = [pool(f"large-{i}", f"node-{i}", devices=128) for i in range(20)]
    hard = claim("claim", [exact(f"r{i}", selectors=[cel(f"{_INDEX} % 7 != {i % 7}")]) for i in range(31)])
    hard["spec"]["devices"]["requests"].append(exact("x", selectors=[cel(f"{_INDEX} > 500")]))
    yield HostileCase("device-128-devices", lambda: [device_class(), *large, hard, pod(**claims_of("claim"))])
    names = {f"a{i}": {"string": "x" * 64} for i in range(29)}
    wide = pool("wide", "node-1", attributes=names)
    each = claim("claim", [exact("r", selectors=[cel("device.attributes.all(d, device.attributes[d].size() > 50)")])])
    yield HostileCase("device-29-long-attributes", lambda: [device_class(), wide, each, pod(**claims_of("claim"))])
    yield HostileCase("device-partitions", lambda: [device_class(), *partitions(), *parts_wanted(9)])


def partitions() -> Iterator[Json]:
    counters = {"gb": {"value": "8"}}
    made = pool("counters", "node-1", pool_name="card", slices=2, devices=0)
    made["spec"]["sharedCounters"] = [{"name": "card", "counters": counters}]
    del made["spec"]["devices"]
    yield made
    parts = pool("parts", "node-1", pool_name="card", slices=2, devices=30)
    for number, part in enumerate(parts["spec"]["devices"]):
        consumed = {"gb": {"value": str(1 + number % 3)}}
        part["consumesCounters"] = [{"counterSet": "card", "counters": consumed}]
    yield parts


def parts_wanted(count: int) -> list[Json]:
    return [claim("claim", [exact(f"r{i}") for i in range(count)]), pod(**claims_of("claim"))]


# --- how they are written ---------------------------------------------------------------------------------------------


def cel(expression: str) -> Json:
    return {"cel": {"expression": expression}}


def exact(name: str, **wanted: Any) -> Json:
    return {"name": name, "exactly": {"deviceClassName": "hostile", **wanted}}


def sub(name: str, **wanted: Any) -> Json:
    return {"name": name, "deviceClassName": "hostile", **wanted}


def claim(name: str, requests: list[Json], constraints: list[Json] | None = None) -> Json:
    devices: Json = {"requests": requests, **({"constraints": constraints} if constraints else {})}
    return {**head("ResourceClaim", name, "resource.k8s.io/v1"), "spec": {"devices": devices}}


def selecting(name: str, expression: str) -> HostileCase:
    return claimed(name, [exact("r", selectors=[cel(expression)])])


def claimed(name: str, requests: list[Json], constraints: list[Json] | None = None, *, nodes: int = 2) -> HostileCase:
    """Nodes with twelve devices each, and a pod that wants some of them in a difficult way."""
    wanted = claim("claim", requests, constraints)
    return HostileCase(f"device-{name}", lambda: [*slices(nodes), wanted, pod(**claims_of("claim"))])


def slices(nodes: int) -> list[Json]:
    return [device_class(), *(pool(f"pool-{i}", f"node-{i}") for i in range(nodes))]


def device_class() -> Json:
    return {**head("DeviceClass", "hostile", "resource.k8s.io/v1", namespace=None), "spec": {}}


def pool(
    name: str,
    node: str,
    *,
    pool_name: str = "",
    slices: int = 1,
    devices: int = 12,
    attributes: Json | None = None,
) -> Json:
    made = [
        {
            "name": f"d{i}",
            "attributes": {
                "index": {"int": i},
                "group": {"int": i // 3},
                "parity": {"int": i % 2},
                **(attributes or {}),
            },
        }
        for i in range(devices)
    ]
    spec = {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": pool_name or node, "generation": 1, "resourceSliceCount": slices},
        "devices": made,
    }
    return {**head("ResourceSlice", name, "resource.k8s.io/v1", namespace=None), "spec": spec}
