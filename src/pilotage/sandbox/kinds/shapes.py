"""Check the types of an object against its kind. Rejected here, nothing behind it meets a string for a list.

For each type of the API schemas a msgspec struct is made on first use; converting an object to it checks every known
field at C speed and names the path of the first wrong one. It is the only conversion of an object on its way to the
store: defaults, admission and validation read the JSON itself, whose types are right from here on. Unknown fields pass
(they are stored as they are), null counts as absent, as it does for the API server. `strict_fields` finds unknown
fields, on request.

A value of another type cannot be decoded (400); an integer too large for its field is an invalid value (422).
"""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated, Any, Final

import msgspec

from pilotage.model.errors import explain_problem
from pilotage.sandbox.errors import ApiError, FieldError, bad_request, invalid
from pilotage.sandbox.kinds.api_schemas import OBJECT_META, api_schemas, element, schema_name
from pilotage.sandbox.kinds.resources import ResourceType

_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_SCALAR_TYPES: Final[dict[str, Any]] = {
    "string": str,
    "integer": Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)],
    "int32": _Int32,
    "boolean": bool,
    "number": float | int,
    "time": str,
    "quantity": str | int | float,
    "int-or-string": _Int32 | str,
    "object": dict[str, Any],
    "any": Any,
}

_STEP: Final = re.compile(r"([^.\[]+)|\[(\d+|\*)\]")

_structs: dict[str, Any] = {}
_shapes: dict[tuple[str, str], Any] = {}


def check_shape(resource_type: ResourceType, obj: object) -> None:
    """ApiError 400 with the path of the first field whose JSON type is wrong."""
    _check(resource_type, obj, _shape_of(resource_type))


def has_shape(resource_type: ResourceType, obj: object) -> bool:
    """Whether an object that was stored before, by whatever version, has its types."""
    try:
        check_shape(resource_type, obj)
    except ApiError:
        return False
    return True


def check_metadata_shape(resource_type: ResourceType, obj: object) -> None:
    """The same for type and metadata alone, of an object whose other parts need no check."""
    _check(resource_type, obj, _metadata_shape())


def _check(resource_type: ResourceType, obj: Any, shape: Any) -> None:
    try:
        msgspec.convert(obj, shape)
    except msgspec.ValidationError as error:
        path, problem = explain_problem(str(error))
        if ", got " in problem:
            raise _cannot_be_handled(resource_type.kind, resource_type.version, str(error)) from None
        wrong = FieldError(path, problem, _value_at(obj, path), "FieldValueTypeInvalid")
        name = (obj.get("metadata") or {}).get("name") or ""
        raise invalid(resource_type.kind, resource_type.group, name, [wrong]) from None
    except RecursionError:
        raise bad_request("the object is nested too deeply") from None


def check_options_shape(kind: str, obj: object) -> None:
    """The same for what is sent along with a request but never stored, such as DeleteOptions."""
    try:
        msgspec.convert(obj, _struct(f"v1.{kind}"))
    except msgspec.ValidationError as error:
        raise _cannot_be_handled(kind, "v1", str(error)) from None


def _shape_of(resource_type: ResourceType) -> Any:
    if resource_type.is_custom:
        return _custom_shape()
    key = (resource_type.api_version, resource_type.kind)
    shape = _shapes.get(key)
    if shape is None:
        name = schema_name(resource_type)
        shape = _shapes[key] = _custom_shape() if name is None else _struct(name)
    return shape


@cache
def _custom_shape() -> Any:
    fields = [("f0", str, ""), ("f1", str, ""), ("f2", _struct(OBJECT_META) | None, None)]
    return _defstruct("Custom", fields, {"f0": "apiVersion", "f1": "kind", "f2": "metadata"})


@cache
def _metadata_shape() -> Any:
    fields = [("f0", str | None, None), ("f1", str | None, None), ("f2", _struct(OBJECT_META) | None, None)]
    return _defstruct("Metadata", fields, {"f0": "apiVersion", "f1": "kind", "f2": "metadata"})


def _struct(name: str) -> Any:
    known = _structs.get(name)
    if known is not None:
        return known
    if _is_recursive(name):
        _structs[name] = Any
        return Any
    names = api_schemas()[name]
    fields = [(f"f{at}", _type_of(code) | None, None) for at, code in enumerate(names.values())]
    struct = _defstruct(name.replace(".", "_"), fields, {f"f{at}": field for at, field in enumerate(names)})
    _structs[name] = struct
    return struct


def _defstruct(name: str, fields: list[tuple[str, Any, Any]], rename: dict[str, str]) -> Any:
    return msgspec.defstruct(name, fields, rename=rename, gc=False)


def _type_of(code: str) -> Any:
    container, inner = element(code)
    if container == "list":
        return list[_type_of(inner)]  # type: ignore[misc]
    if container == "map":
        return dict[str, _type_of(inner)]  # type: ignore[misc]
    return _SCALAR_TYPES[inner] if inner in _SCALAR_TYPES else _struct(inner)


def _is_recursive(name: str) -> bool:
    """JSON schemas nest in themselves; they are checked by what interprets them instead."""
    return name == "v1.JSONSchemaProps"


def _cannot_be_handled(kind: str, version: str, text: str) -> ApiError:
    detail = ": ".join(part for part in explain_problem(text) if part)
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {detail}')


def _value_at(obj: Any, path: str) -> Any:
    """The value at a path such as `spec.containers[0].ports`; of `[*]`, which names no key, the whole map."""
    for name, index in _STEP.findall(path):
        if index == "*":
            break
        obj = obj[name] if name else obj[int(index)]
    return obj
