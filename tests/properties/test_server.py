"""Whatever clients send, the server answers it as an API server would and goes on: no request is a 500.

Objects are drawn from the schemas of their kinds, so that most get past the check of types and deep into defaulting,
admission and validation, with the odd values there that nobody thinks of; others are drawn from plain JSON.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilotage.sandbox.kinds.api_schemas import SCALARS, api_schemas, element, schema_name
from pilotage.sandbox.kinds.builtin_kinds import BUILTIN_TYPES
from pilotage.sandbox.kinds.resources import ResourceType
from tests.sandbox.api_world import MERGE, STRATEGIC, World

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
TYPES = [resource_type for resource_type in BUILTIN_TYPES if "get" in resource_type.verbs]
WORDS = [
    "a",
    "web",
    "Always",
    "Exists",
    "In",
    "cpu",
    "1",
    "100m",
    "-5",
    "50%",
    "",
    "x/y",
    "IfNotPresent",
    "TCP",
    "é",
    "0",
]
NAMES = st.sampled_from(["a", "web-1", "Not A Name", "", "x" * 300])
TEXTS = st.sampled_from(WORDS)
NUMBERS = st.sampled_from([0, 1, -1, 80, 65536, 2**31, -(2**63)])

PLAIN_JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXTS, below, max_size=3),
    max_leaves=8,
)

SCALAR_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXTS,
    "integer": NUMBERS,
    "int32": NUMBERS,
    "boolean": st.booleans(),
    "number": NUMBERS,
    "time": st.sampled_from(["2026-01-01T00:00:00Z", "yesterday", ""]),
    "quantity": st.sampled_from(["1", "100m", "-1", "1.5Gi", "many", ""]) | NUMBERS,
    "int-or-string": NUMBERS | TEXTS,
    "object": PLAIN_JSON,
    "any": PLAIN_JSON,
}


def value_of(code: str, depth: int) -> st.SearchStrategy[Any]:
    container, inner = element(code)
    if container == "list":
        return st.lists(value_of(inner, depth), max_size=2)
    if container == "map":
        return st.dictionaries(TEXTS, value_of(inner, depth), max_size=2)
    if inner in SCALARS:
        return SCALAR_VALUES[inner]
    return st.deferred(lambda: object_of(inner, depth - 1))


def object_of(name: str, depth: int) -> st.SearchStrategy[dict[str, Any]]:
    if depth <= 0:
        return st.just({})
    fields = api_schemas()[name]
    needed = {field: value_of(code, depth) for field, code in fields.items() if code.endswith("!")}
    others = {field: st.none() | value_of(code, depth) for field, code in fields.items() if field not in needed}
    return st.builds(lambda a, b: {**a, **b}, st.fixed_dictionaries(needed), some_of(others))


@st.composite
def some_of(draw: st.DrawFn, fields: dict[str, st.SearchStrategy[Any]]) -> dict[str, Any]:
    """A few of the fields: objects with all of them would be rejected for the first wrong one."""
    chosen = draw(st.lists(st.sampled_from(sorted(fields)), max_size=4, unique=True)) if fields else []
    return {field: draw(fields[field]) for field in chosen}


@st.composite
def sent_objects(draw: st.DrawFn) -> tuple[ResourceType, dict[str, Any]]:
    resource_type = draw(st.sampled_from(TYPES))
    name = schema_name(resource_type)
    if name is None or draw(st.integers(0, 9)) == 0:
        obj = draw(st.dictionaries(st.sampled_from(["spec", "status", "metadata", "kind"]), PLAIN_JSON))
    else:
        obj = draw(object_of(name, 6))
        for field in ("kind", "apiVersion"):
            obj.pop(field, None)
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        for field in ("namespace", "resourceVersion", "generateName"):
            metadata.pop(field, None)
        metadata["name"] = draw(NAMES)
    elif draw(st.integers(0, 3)):
        obj["metadata"] = {"name": draw(NAMES)}
    return resource_type, obj


def answered(world: World, method: str, path: str, body: Any = None, **options: Any) -> int:
    """The status of the answer, which must not be a bug."""
    answer = world.send(method, path, body, **options)
    assert answer.status < 500 or answer.status in (501, 504), (method, path, body, answer.body)
    return answer.status


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(sent_objects(), PLAIN_JSON, st.sampled_from([MERGE, STRATEGIC, "application/json-patch+json"]))
def test_no_object_breaks_the_server(sent: tuple[ResourceType, Any], patch: Any, patch_type: str) -> None:
    resource_type, obj = sent
    world = World()
    path = resource_type.path("default")
    query = {"fieldValidation": "Warn"}
    if answered(world, "POST", path, obj, query=query) == 201:
        item = f"{path}/{obj['metadata']['name']}"
        answered(world, "GET", path, accept=TABLE)
        answered(world, "PUT", item, obj)
        answered(world, "PATCH", item, patch, content_type=patch_type)
        if resource_type.has_status:
            answered(world, "PATCH", f"{item}/status", {"status": patch}, content_type=MERGE)
        answered(world, "GET", path, accept=TABLE)
        answered(world, "DELETE", item, patch if isinstance(patch, dict) else None)
    world.store.check()


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
    st.lists(st.sampled_from(["api", "apis", "v1", "apps", "namespaces", "default", "pods", "x", "status", ""])),
    st.dictionaries(
        st.sampled_from(["labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "dryRun"]), TEXTS
    ),
    PLAIN_JSON,
)
def test_no_request_breaks_the_server(method: str, parts: list[str], query: dict[str, str], body: Any) -> None:
    answered(World(), method, "/" + "/".join(parts), body, query=query)
