"""Rules for Services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import field

from pilotage.sandbox.rules.validation.kind_rules import KindRules, ObjectUpdate
from pilotage.sandbox.rules.validation.metadata import AnyObject
from pilotage.sandbox.rules.validation.names import label_problem, labels_errors, port_name_problem, port_problem
from pilotage.sandbox.rules.validation.problems import Errors, duplicate, invalid, one_of, required
from pilotage.sandbox.rules.validation.shapes import Int32, IntOrString, Labels, Shape

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")


class ServicePort(Shape):
    name: str | None = None
    port: Int32 | None = None
    protocol: str | None = None
    target_port: IntOrString | None = None
    node_port: Int32 | None = None


class ServiceSpec(Shape):
    type: str | None = None
    selector: Labels | None = None
    ports: list[ServicePort] | None = None
    cluster_ip: str | None = field(default=None, name="clusterIP")
    external_name: str | None = None
    session_affinity: str | None = None


class Service(AnyObject):
    spec: ServiceSpec | None = None


def _state_errors(service: Service) -> Errors:
    spec = service.spec
    if spec is None:
        return [required("spec")]
    errors = one_of("spec.type", spec.type, _TYPES)
    errors += one_of("spec.sessionAffinity", spec.session_affinity, ("ClientIP", "None"))
    if spec.selector:
        errors += labels_errors("spec.selector", spec.selector)
    if spec.type == "ExternalName" and not spec.external_name:
        errors.append(required("spec.externalName"))
    if not spec.ports:
        if spec.type != "ExternalName" and spec.cluster_ip != "None":
            errors.append(required("spec.ports"))
        return errors
    return errors + _ports_errors(spec.ports)


def _ports_errors(ports: list[ServicePort]) -> Errors:
    errors: Errors = []
    names: set[str] = set()
    numbers: set[tuple[int | None, str | None]] = set()
    for index, port in enumerate(ports):
        place = f"spec.ports[{index}]"
        errors += _port_name_errors(port, place, names, alone=len(ports) == 1)
        errors += _port_number_errors(port, place)
        errors += one_of(f"{place}.protocol", port.protocol, _PROTOCOLS)
        pair = (port.port, port.protocol)
        if pair in numbers:
            errors.append(duplicate(place, f"{port.port}/{port.protocol}"))
        numbers.add(pair)
    return errors


def _port_name_errors(port: ServicePort, path: str, seen: set[str], *, alone: bool) -> Errors:
    if not port.name:
        return [] if alone else [required(f"{path}.name")]
    errors: Errors = []
    if problem := label_problem(port.name):
        errors.append(invalid(f"{path}.name", port.name, problem))
    if port.name in seen:
        errors.append(duplicate(f"{path}.name", port.name))
    seen.add(port.name)
    return errors


def _port_number_errors(port: ServicePort, path: str) -> Errors:
    errors: Errors = []
    if problem := port_problem(port.port or 0):
        errors.append(invalid(f"{path}.port", port.port or 0, problem))
    if isinstance(port.target_port, int):
        problem = port_problem(port.target_port)
    else:
        problem = port_name_problem(port.target_port) if port.target_port else ""
    if problem:
        errors.append(invalid(f"{path}.targetPort", port.target_port, problem))
    if port.node_port and (problem := port_problem(port.node_port)):
        errors.append(invalid(f"{path}.nodePort", port.node_port, problem))
    return errors


def _update_errors(change: ObjectUpdate) -> Errors:
    before, now = change.before.spec, change.after.spec
    if before is None or now is None or "ExternalName" in (before.type, now.type):
        return []
    if before.cluster_ip and before.cluster_ip != now.cluster_ip:
        return [invalid("spec.clusterIPs[0]", now.cluster_ip or "", "may not change once set")]
    return []


SERVICE_RULES: Final[Mapping[str, KindRules]] = {"Service": KindRules(Service, _state_errors, update=_update_errors)}
