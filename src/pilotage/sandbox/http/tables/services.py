"""Services and their endpoints."""

from __future__ import annotations

from typing import Final

from pilotage.sandbox.http.tables.cell_text import NONE, count, labels_text, text
from pilotage.sandbox.http.tables.columns import Cells, PrintedKind, age_of, columns, name_of
from pilotage.sandbox.rules.json_fields import Json, dict_or_empty, dicts_in, nested

_MOST_SHOWN: Final = 3


def _service_cells(service: Json, now: float) -> Cells:
    spec = dict_or_empty(service.get("spec"))
    return [
        name_of(service),
        text(spec.get("type")),
        text(spec.get("clusterIP"), NONE),
        _external_address(service, spec),
        ",".join(_port_text(port) for port in dicts_in(spec, "ports")) or NONE,
        age_of(service, now),
        labels_text(spec.get("selector")),
    ]


def _external_address(service: Json, spec: Json) -> str:
    if spec.get("type") == "ExternalName":
        return text(spec.get("externalName"))
    own = spec.get("externalIPs")
    addresses = [text(address) for address in own] if isinstance(own, list) else []
    if spec.get("type") != "LoadBalancer":
        return ",".join(addresses) or NONE
    ingress = dicts_in(nested(service, "status", "loadBalancer"), "ingress")
    assigned = sorted({text(one.get("ip")) or text(one.get("hostname")) for one in ingress})
    return ",".join([*assigned, *addresses]) or "<pending>"


def _port_text(port: Json) -> str:
    number = f"{count(port.get('port'))}"
    if count(port.get("nodePort")):
        number += f":{count(port.get('nodePort'))}"
    return f"{number}/{text(port.get('protocol'), 'TCP')}"


def _endpoints_cells(endpoints: Json, now: float) -> Cells:
    found = [
        f"{text(address.get('ip'))}:{count(port.get('port'))}"
        for subset in dicts_in(endpoints, "subsets")
        for port in dicts_in(subset, "ports")
        for address in dicts_in(subset, "addresses")
    ]
    return [name_of(endpoints), _listed(found), age_of(endpoints, now)]


def _slice_cells(endpoint_slice: Json, now: float) -> Cells:
    ports = [text(port.get("port"), "*") for port in dicts_in(endpoint_slice, "ports")]
    addresses = []
    for endpoint in dicts_in(endpoint_slice, "endpoints"):
        own = endpoint.get("addresses")
        addresses += [text(address) for address in own] if isinstance(own, list) else []
    return [
        name_of(endpoint_slice),
        text(endpoint_slice.get("addressType")),
        _listed(ports, "<unset>"),
        _listed(addresses, "<unset>"),
        age_of(endpoint_slice, now),
    ]


def _listed(items: list[str], missing: str = NONE) -> str:
    shown = ",".join(items[:_MOST_SHOWN]) or missing
    return f"{shown} + {len(items) - _MOST_SHOWN} more..." if len(items) > _MOST_SHOWN else shown


SERVICES: Final = {
    "Service": PrintedKind(
        columns("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector*"), _service_cells
    ),
    "Endpoints": PrintedKind(columns("Name", "Endpoints", "Age"), _endpoints_cells),
    "EndpointSlice": PrintedKind(columns("Name", "AddressType", "Ports", "Endpoints", "Age"), _slice_cells),
}
