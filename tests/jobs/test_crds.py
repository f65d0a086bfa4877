"""The definitions in deploy/crds: accepted by an API server, and no field that we read or write is pruned by them."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Union

import msgspec
import pytest
import yaml

from pilotage.model import KINDS, kueue
from pilotage.model.workloads import PodTemplate
from pilotage.sandbox.http.tables.custom import KUEUE, custom_kind
from pilotage.sandbox.kinds.builtin_kinds import builtin_registry
from pilotage.sandbox.kinds.crds import definition_errors, types_of
from pilotage.sandbox.kinds.kueue_schemas import builtin_policies
from pilotage.sandbox.kinds.resources import ResourceRegistry

CRDS = Path(__file__).parents[2] / "deploy" / "crds"
PLURALS = sorted(plural for plural, info in KINDS.items() if info.group == "kueue.x-k8s.io")

SAME_IN_BOTH_VERSIONS = ("admissionchecks", "localqueues", "resourceflavors", "workloadpriorityclasses")
"""What users write: the API server converts nothing by itself, so that only these can be served in both."""

SHARED_STRUCTS = {
    # Structs that several kinds share have fields that not all of them need.
    ".spec.parameters.namespace",
    ".status.fairSharing",
    ".status.fairSharing.admissionFairSharingStatus",
    ".status.flavorsReservation[].resources[].borrowed",
    ".status.flavorsUsage[].resources[].borrowed",
}


def definition(plural: str) -> dict[str, Any]:
    loaded = yaml.safe_load((CRDS / f"{plural}.yaml").read_text())
    assert isinstance(loaded, dict)
    return loaded


def schema_of(plural: str) -> dict[str, Any]:
    schema = definition(plural)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert isinstance(schema, dict)
    return schema


def test_there_is_a_definition_for_every_kind() -> None:
    assert sorted(path.stem for path in CRDS.glob("*.yaml")) == PLURALS


@pytest.mark.parametrize("plural", PLURALS)
def test_a_server_without_the_kind_accepts_it_and_serves_what_the_sandbox_has_built_in(plural: str) -> None:
    builtin = builtin_registry()
    others = ResourceRegistry(one for one in builtin if one.group != "kueue.x-k8s.io")
    assert definition_errors(definition(plural), others) == []
    made, *older = types_of(definition(plural))
    assert [one.version for one in older] == (["v1beta1"] if plural in SAME_IN_BOTH_VERSIONS else [])
    known = next(
        one for one in builtin if one.group == made.group and one.plural == plural and one.version == "v1beta2"
    )
    for field in ("kind", "singular", "namespaced", "short_names", "subresources"):
        assert getattr(made, field) == getattr(known, field), field


@pytest.mark.parametrize("plural", PLURALS)
def test_kubectl_prints_the_same_columns_as_in_the_sandbox(plural: str) -> None:
    asked = custom_kind(definition(plural)["spec"]["versions"][0]["additionalPrinterColumns"])
    built_in = KUEUE[KINDS[plural].kind]
    assert asked.columns == built_in.columns
    obj = {
        "metadata": {"name": "x", "creationTimestamp": "1970-01-01T00:00:00Z"},
        "value": 7,
        "spec": {"queueName": "lq", "cohortName": "c", "parentName": "p", "clusterQueue": "cq", "controllerName": "k"},
        "status": {
            "admission": {"clusterQueue": "cq"},
            "pendingWorkloads": 1,
            "admittedWorkloads": 2,
            "conditions": [{"type": one, "status": "True"} for one in ("Active", "Admitted", "Finished")],
        },
    }
    assert asked.cells(obj, 60.0) == built_in.cells(obj, 60.0)


@pytest.mark.parametrize("plural", PLURALS)
def test_the_sandbox_has_the_same_schemas(plural: str) -> None:
    """If not: .venv/bin/python tools/kueue_schemas.py > src/pilotage/sandbox/kinds/kueue_schemas.json"""
    assert builtin_registry().find("kueue.x-k8s.io", "v1beta2", plural).schema == schema_of(plural)


def test_the_sandbox_has_the_same_policies() -> None:
    """If not: see above."""
    shipped = CRDS.parent / "workload-queueing" / "admission-policy.yaml"
    assert builtin_policies() == list(yaml.safe_load_all(shipped.read_text()))


@pytest.mark.parametrize("plural", PLURALS)
def test_no_field_that_the_model_has_is_pruned(plural: str) -> None:
    struct = getattr(kueue, KINDS[plural].kind)
    assert list(_missing(struct, schema_of(plural), "")) == []


def _missing(hint: Any, schema: dict[str, Any], path: str) -> Iterator[str]:
    """Fields of the model below `hint` that the schema does not have."""
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        for part in typing.get_args(hint):
            yield from _missing(part, schema, path)
    elif origin is tuple:
        yield from _missing(typing.get_args(hint)[0], schema["items"], f"{path}[]")
    elif isinstance(hint, type) and issubclass(hint, msgspec.Struct) and hint is not PodTemplate:
        hints = typing.get_type_hints(hint)
        for field in msgspec.structs.fields(hint):
            if field.name == "metadata":
                continue
            here = f"{path}.{field.encode_name}"
            if field.encode_name not in schema.get("properties", {}):
                if here not in SHARED_STRUCTS:
                    yield here
            else:
                yield from _missing(hints[field.name], schema["properties"][field.encode_name], here)
