"""Cluster IPs and node ports for Services, as the API server hands them out.

Nothing routes to these addresses; they exist because people and tools read them. An address is derived from the
object's uid, so that equal runs of the sandbox give equal addresses, and moved on while another Service has it.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

from pilotage.sandbox.rules.json_fields import Json, dict_or_empty, dicts_in, nested, text_or_empty

_FIRST_NODE_PORT: Final = 30000
_NODE_PORTS: Final = 2768
_HOSTS: Final = 65_000  # in 10.96.0.0/12, of which the first 65,000 are enough


def assign_addresses(service: Json, others: Sequence[Json]) -> None:
    """Give the Service what its type needs and it does not bring along."""
    spec = service.get("spec")
    if type(spec) is not dict or spec.get("type") == "ExternalName":
        return
    _set_families(spec)
    seed = zlib.crc32(text_or_empty(nested(service, "metadata", "uid")).encode())
    if not spec.get("clusterIP"):
        taken = {text_or_empty(nested(other, "spec", "clusterIP")) for other in others}
        spec["clusterIP"] = _free_address(seed, taken)
    if spec.get("clusterIPs") is None:
        spec["clusterIPs"] = [spec["clusterIP"]]
    if spec.get("type") in ("NodePort", "LoadBalancer") and spec.get("allocateLoadBalancerNodePorts") is not False:
        _assign_node_ports(spec, seed, others)


def keep_addresses(before: Json, spec: Json) -> None:
    """Carry assigned addresses over to a new spec of the same Service that does not mention them."""
    if "ExternalName" in (before.get("type"), spec.get("type")):
        return
    for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if not spec.get(field) and before.get(field):
            spec[field] = before[field]
    _set_families(spec)
    if spec.get("type") not in ("NodePort", "LoadBalancer"):
        return
    assigned = {_port_key(port): port["nodePort"] for port in dicts_in(before, "ports") if port.get("nodePort")}
    for port in dicts_in(spec, "ports"):
        if not port.get("nodePort") and _port_key(port) in assigned:
            port["nodePort"] = assigned[_port_key(port)]


def _set_families(spec: Json) -> None:
    if spec.get("ipFamilyPolicy") is None:
        spec["ipFamilyPolicy"] = "SingleStack"
    if spec.get("ipFamilies") is None:
        spec["ipFamilies"] = ["IPv4"]


def _port_key(port: Json) -> tuple[str, str]:
    return str(port.get("protocol")), str(port.get("port"))


def _free_address(seed: int, taken: set[str]) -> str:
    for offset in range(_HOSTS):
        # 10.96.0.1 is the API server's own address, .10 that of cluster DNS by habit.
        host = 256 + (seed + offset) % _HOSTS
        address = f"10.{96 + host // 65536}.{host // 256 % 256}.{host % 256}"
        if address not in taken:
            return address
    return ""


def _assign_node_ports(spec: Json, seed: int, others: Sequence[Json]) -> None:
    services = [*(dict_or_empty(other.get("spec")) for other in others), spec]
    numbers = (port.get("nodePort") for service in services for port in dicts_in(service, "ports"))
    taken = {number for number in numbers if isinstance(number, int)}
    for port in dicts_in(spec, "ports"):
        if port.get("nodePort"):
            continue
        free = (_FIRST_NODE_PORT + (seed + offset) % _NODE_PORTS for offset in range(_NODE_PORTS))
        chosen = next((number for number in free if number not in taken), None)
        if chosen is not None:
            port["nodePort"] = chosen
            taken.add(chosen)
