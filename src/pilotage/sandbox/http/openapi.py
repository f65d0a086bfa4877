"""OpenAPI documents, as far as clients use them: field types for `kubectl explain`, and which requests take
`fieldValidation`, so that `kubectl apply` and `create` leave strict validation to the server.

Version 3 comes as an index and a document per group and version, version 2 as one document with the same schemas.
Built-in kinds are described from the API schemas (names and types) and, where scheduling is concerned, in a sentence of
our own; custom kinds by the schema of their definition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from pilotage.sandbox.errors import no_such_path
from pilotage.sandbox.http.exchange import encode_json
from pilotage.sandbox.kinds.api_descriptions import COMMON, FIELDS, KINDS
from pilotage.sandbox.kinds.api_schemas import OBJECT_META, api_schemas, element, is_required, schema_name
from pilotage.sandbox.kinds.kueue_schemas import schema_of
from pilotage.sandbox.kinds.resources import ResourceRegistry, ResourceType

Document = dict[str, Any]

_SCALARS: Final[dict[str, Document]] = {
    "string": {"type": "string"},
    "integer": {"type": "integer", "format": "int64"},
    "int32": {"type": "integer", "format": "int32"},
    "boolean": {"type": "boolean"},
    "number": {"type": "number"},
    "time": {"type": "string", "format": "date-time"},
    "quantity": {"type": "string"},
    "int-or-string": {"type": "string", "format": "int-or-string"},
    "object": {"type": "object"},
    "any": {"type": "object"},
}
_QUERY_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation")
# Strategic merge is served but not announced: clients that read about it here expect the merge keys of every list in
# the schemas, and those that know the built-in kinds use it anyway.
_PATCH_TYPES: Final = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
_OF_EVERY_KIND: Final = ("apiVersion", "kind", "metadata")
_INFO: Final = {"title": "Pilotage sandbox", "version": "v1"}

PROTOBUF_2_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# A version 2 document without definitions (fields: swagger, info, paths, definitions). kubectl reads it for kinds that
# it does not find in version 3; what it finds here is that the kind does not exist.
EMPTY_PROTOBUF_2: Final = b"\x0a\x032.0\x12\x16\x0a\x10Pilotage sandbox\x12\x02v1\x42\x00\x4a\x00"


class OpenApi:
    """OpenAPI documents of a registry, kept until the registry changes."""

    def __init__(self, registry: ResourceRegistry) -> None:
        self._registry = registry
        self._made_for = -1
        self._documents: dict[str, bytes] = {}

    def index(self) -> bytes:
        """/openapi/v3"""
        paths = {}
        for group, versions in self._registry.groups().items():
            for version in versions:
                path = f"apis/{group}/{version}" if group else f"api/{version}"
                digest = hashlib.sha256(self.document(group, version)).hexdigest()[:32].upper()
                paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
        return encode_json({"paths": paths})

    def document(self, group: str, version: str) -> bytes:
        """/openapi/v3/api/v1 and /openapi/v3/apis/<group>/<version>"""
        types = self._registry.in_group_version(group, version)
        if not types:
            raise no_such_path()
        return self._kept(f"{group}/{version}", lambda: _document(types, "#/components/schemas/"))

    def version_2(self) -> bytes:
        """/openapi/v2"""
        return self._kept("v2", lambda: _as_version_2(_document(list(self._registry), "#/definitions/")))

    def _kept(self, name: str, make: Any) -> bytes:
        if self._made_for != self._registry.version:
            self._documents.clear()
            self._made_for = self._registry.version
        if name not in self._documents:
            self._documents[name] = encode_json(make())
        return self._documents[name]


def _document(types: Iterable[ResourceType], references: str) -> Document:
    types = list(types)
    schemas: Document = {}
    paths: Document = {}
    for resource_type in types:
        name = _add_schema(schemas, resource_type, references)
        reference = {"$ref": f"{references}{name}"}
        paths[_path(resource_type)] = {"post": _operation(resource_type, "post", reference)}
        if "get" in resource_type.verbs:
            paths[_path(resource_type) + "/{name}"] = {
                "get": _operation(resource_type, "get", reference),
                "put": _operation(resource_type, "put", reference),
                "patch": _operation(resource_type, "patch", reference),
                "delete": _operation(resource_type, "delete", reference),
            }
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": schemas}}


def _path(resource_type: ResourceType) -> str:
    return resource_type.path("{namespace}")


def _operation(resource_type: ResourceType, method: str, reference: Document) -> Document:
    action = "connect" if method == "get" and "get" not in resource_type.verbs else method
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string"}} for name in _QUERY_PARAMETERS if method != "get"
    ]
    operation: Document = {
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _group_version_kind(resource_type),
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}},
    }
    if method == "patch":
        content = {media_type: {"schema": {"type": "object"}} for media_type in _PATCH_TYPES}
        operation["requestBody"] = {"content": content}
    elif method in ("post", "put"):
        operation["requestBody"] = {"content": {"application/json": {"schema": reference}}}
    return operation


def _group_version_kind(resource_type: ResourceType) -> dict[str, str]:
    return {"group": resource_type.group, "version": resource_type.version, "kind": resource_type.kind}


def _add_schema(schemas: Document, resource_type: ResourceType, references: str) -> str:
    """Add the schema of a kind and of all that it refers to; returns its name."""
    builtin = schema_name(resource_type)
    if builtin is not None:
        _add_builtin(schemas, builtin, references)
        name, schema = _public(builtin), schemas[_public(builtin)]
    else:
        _add_builtin(schemas, OBJECT_META, references)
        reversed_group = ".".join(reversed(resource_type.group.split(".")))
        name = f"{reversed_group}.{resource_type.version}.{resource_type.kind}"
        schema = schemas[name] = _custom_schema(resource_type, references)
    schema.setdefault("x-kubernetes-group-version-kind", []).append(_group_version_kind(resource_type))
    return name


def _custom_schema(resource_type: ResourceType, references: str) -> Document:
    schema = schema_of(resource_type)
    own: Document = msgspec.to_builtins(schema or {})
    own["type"] = "object"
    own["properties"] = {
        **(own.get("properties") or {}),
        "apiVersion": {"type": "string", "description": COMMON["apiVersion"]},
        "kind": {"type": "string", "description": COMMON["kind"]},
        "metadata": {
            "allOf": [{"$ref": f"{references}{_public(OBJECT_META)}"}],
            "description": COMMON["metadata"],
        },
    }
    if schema is None:
        own[_OPEN] = True
        own["properties"].update(spec={"type": "object"}, status={"type": "object"})
    return own


def _add_builtin(schemas: Document, name: str, references: str) -> None:
    if _public(name) in schemas:
        return
    fields = api_schemas()[name]
    schema: Document = {"type": "object", "properties": {}}
    schemas[_public(name)] = schema
    if name in KINDS:
        schema["description"] = KINDS[name]
    required = sorted(field for field, code in fields.items() if is_required(code))
    if required:
        schema["required"] = required
    described = COMMON if "kind" in fields and "metadata" in fields else FIELDS.get(name, {})
    for field, code in fields.items():
        schema["properties"][field] = _field_schema(schemas, code, references)
        if field in described:
            schema["properties"][field]["description"] = described[field]


def _field_schema(schemas: Document, code: str, references: str) -> Document:
    container, inner = element(code)
    if container == "list":
        return {"type": "array", "items": _field_schema(schemas, inner, references)}
    if container == "map":
        return {"type": "object", "additionalProperties": _field_schema(schemas, inner, references)}
    if inner in _SCALARS:
        return dict(_SCALARS[inner])
    _add_builtin(schemas, inner, references)
    # A reference beside other keywords is not allowed; this is how the API server writes it, too.
    return {"allOf": [{"$ref": f"{references}{_public(inner)}"}]}


def _public(name: str) -> str:
    return f"io.k8s.api.{name}"


def _as_version_2(document: Document) -> Document:
    """The same schemas and operations in the older form."""
    schemas = msgspec.json.decode(
        encode_json(document["components"]["schemas"]).replace(b"#/components/schemas/", b"#/definitions/")
    )
    for schema in schemas.values():
        if schema.pop(_OPEN, None) is True:
            schema["properties"] = {name: one for name, one in schema["properties"].items() if name in _OF_EVERY_KIND}
        for field, value in (schema.get("properties") or {}).items():
            schema["properties"][field] = _plain_reference(value)
    paths = {
        path: {method: _operation_2(operation) for method, operation in operations.items()}
        for path, operations in document["paths"].items()
    }
    return {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": schemas}


def _operation_2(operation: Document) -> Document:
    parameters = [{"name": p["name"], "in": "query", "type": "string"} for p in operation["parameters"]]
    kept = {key: value for key, value in operation.items() if key.startswith("x-kubernetes")}
    consumes = list((operation.get("requestBody") or {}).get("content") or ())
    return {**kept, "parameters": parameters, "consumes": consumes, "responses": {"200": {"description": "OK"}}}


def _plain_reference(value: Any) -> Any:
    if isinstance(value, dict) and "allOf" in value:
        return value["allOf"][0]
    if isinstance(value, dict):
        # Clients of the older form would reject what they do not find described.
        hidden = (_OPEN, "items", "properties") if value.get(_OPEN) is True else ()
        return {key: _plain_reference(below) for key, below in value.items() if key not in hidden}
    return value
