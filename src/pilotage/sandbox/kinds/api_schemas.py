"""The field names and types of the built-in kinds, as data.

`api_schemas.json` beside this file has a line per type of the Kubernetes API that the sandbox's kinds reach:

    "v1.Container": {"name": "string!", "ports": "[v1.ContainerPort]", "resources": "v1.ResourceRequirements", ...}

Shapes (type checks), strict field validation and the OpenAPI documents are all made from it. A type code is a scalar
name, the name of another type, `[code]` for a list or `{code}` for a map from strings; `!` marks a required field. An
`integer` has 64 bits; `int32` stands where the rules of a kind read an integer of 32.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from pilotage.sandbox.kinds.resources import ResourceType

SCALARS: Final = frozenset(
    {"string", "integer", "int32", "boolean", "number", "time", "quantity", "int-or-string", "object", "any"}
)

OBJECT_META: Final = "v1.ObjectMeta"


@cache
def api_schemas() -> Mapping[str, Mapping[str, str]]:
    """Type name -> field name -> type code."""
    text = files("pilotage.sandbox.kinds").joinpath("api_schemas.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, dict[str, str]])


def schema_name(resource_type: ResourceType) -> str | None:
    """The type of a built-in kind; None for custom resources, whose definition says it."""
    return None if resource_type.is_custom else built_in_name(resource_type.api_version, resource_type.kind)


@cache
def built_in_name(api_version: str, kind: str) -> str | None:
    """The same by what an object says of itself."""
    group, _, version = api_version.rpartition("/")
    plain = f"{version}.{kind}"
    qualified = f"{group.partition('.')[0] or 'core'}.{plain}"
    return next((name for name in (qualified, plain) if name in api_schemas()), None)


def is_required(code: str) -> bool:
    return code.endswith("!")


def element(code: str) -> tuple[str, str]:
    """Take a code apart: ("list" | "map" | "", code of the element or the code itself)."""
    plain = code.removesuffix("!")
    if plain.startswith("["):
        return "list", plain[1:-1]
    if plain.startswith("{"):
        return "map", plain[1:-1]
    return "", plain
