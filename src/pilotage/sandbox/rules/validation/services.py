"""Rules for Services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pilotage.sandbox.rules.json_fields import Json, nested
from pilotage.sandbox.rules.validation.field_rules import KindRules, fields, one_of, optional
from pilotage.sandbox.rules.validation.names import label, label_map, port, port_name_problem
from pilotage.sandbox.rules.validation.problems import Errors, duplicate, invalid, required


def _external_name(spec: Json, path: str) -> Errors:
    is_missing = spec.get("type") == "ExternalName" and not spec.get("externalName")
    return [required(f"{path}.externalName")] if is_missing else []


def _ports(spec: Json, path: str) -> Errors:
    path = f"{path}.ports"
    if spec.get("ports"):
        return _ports_errors(spec["ports"], path)
    needs_none = spec.get("type") == "ExternalName" or spec.get("clusterIP") == "None"
    return [] if needs_none else [required(path)]


def _ports_errors(ports: Sequence[Json], path: str) -> Errors:
    errors: Errors = []
    names: set[str] = set()
    numbers = set()
    for index, one in enumerate(ports):
        place = f"{path}[{index}]"
        errors += _name_errors(one.get("name"), f"{place}.name", names, alone=len(ports) == 1)
        errors += _PORT(one, place)
        pair = (one.get("port"), one.get("protocol"))
        if pair in numbers:
            errors.append(duplicate(place, f"{pair[0]}/{pair[1]}"))
        numbers.add(pair)
    return errors


def _name_errors(name: str | None, path: str, seen: set[str], *, alone: bool) -> Errors:
    if not name:
        return [] if alone else [required(path)]
    errors = label(name, path)
    if name in seen:
        errors.append(duplicate(path, name))
    seen.add(name)
    return errors


def _target_port(target: int | str, path: str) -> Errors:
    if isinstance(target, int):
        return port(target, path)
    problem = port_name_problem(target) if target else ""
    return [invalid(path, target, problem)] if problem else []


def _address_is_set_once(old: Json, new: Json) -> Errors:
    before, now = nested(old, "spec", "clusterIP"), nested(new, "spec", "clusterIP")
    is_external = "ExternalName" in (nested(old, "spec", "type"), nested(new, "spec", "type"))
    if not before or before == now or is_external or new.get("spec") is None:
        return []
    return [invalid("spec.clusterIPs[0]", now or "", "may not change once set")]


_PORT: Final = fields(
    ("port", port, 0),
    ("targetPort", _target_port),
    ("nodePort", optional(port)),
    ("protocol", one_of("SCTP", "TCP", "UDP")),
)
_SPEC: Final = fields(
    ("type", one_of("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")),
    ("sessionAffinity", one_of("ClientIP", "None")),
    ("selector", label_map),
    ("", _external_name),
    ("", _ports),
)

SERVICE_RULES: Final[Mapping[str, KindRules]] = {
    "Service": KindRules(fields(("spec!", _SPEC)), update=_address_is_set_once)
}
