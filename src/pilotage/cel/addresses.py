"""Kubernetes' ip and cidr libraries for CEL.

The CEL library takes plain values only: an address or a block is a map with one entry, in one spelling, so that equal
ones are equal maps.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import TypeAlias

CelAddress: TypeAlias = Mapping[str, str]
CelBlock: TypeAlias = Mapping[str, str]

_ADDRESS, _BLOCK = "ip", "cidr"
_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_Interface: TypeAlias = ipaddress.IPv4Interface | ipaddress.IPv6Interface
_BROADCAST = ipaddress.IPv4Address("255.255.255.255")
_LINK_LOCAL_MULTICAST = (ipaddress.IPv4Network("224.0.0.0/24"), ipaddress.IPv6Network("ff02::/16"))


def encode(text: str) -> CelAddress:
    return {_ADDRESS: str(_parsed(text))}


def _parsed(text: str) -> _Address:
    """ValueError if the text is no address; IPv4 inside IPv6 and zones are not allowed, as in Kubernetes."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped is not None or address.scope_id):
        raise ValueError(f'"{text}" is not an IP address: write IPv4 as such, and no zones')
    return address


def _address(value: CelAddress) -> _Address:
    return ipaddress.ip_address(value[_ADDRESS])


def is_address(text: str) -> bool:
    try:
        _parsed(text)
    except ValueError:
        return False
    return True


def is_canonical(text: str) -> bool:
    return str(_parsed(text)) == text


def family(value: CelAddress) -> int:
    return _address(value).version


def is_unspecified(value: CelAddress) -> bool:
    return _address(value).is_unspecified


def is_loopback(value: CelAddress) -> bool:
    return _address(value).is_loopback


def is_link_local(value: CelAddress) -> bool:
    return _address(value).is_link_local


def is_link_local_multicast(value: CelAddress) -> bool:
    address = _address(value)
    return any(address in network for network in _LINK_LOCAL_MULTICAST if network.version == address.version)


def is_global_unicast(value: CelAddress) -> bool:
    address = _address(value)
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and address != _BROADCAST


# --- blocks -----------------------------------------------------------------------------------------------------------


def encode_block(text: str) -> CelBlock:
    address, slash, length = text.partition("/")
    if not slash or not length.isdigit() or (len(length) > 1 and length[0] == "0"):
        raise ValueError(f'"{text}" is not a CIDR: write an address and a number of bits, e.g. 10.0.0.0/8')
    return {_BLOCK: str(ipaddress.ip_interface(f"{_parsed(address)}/{length}"))}


def _block(value: CelBlock) -> _Interface:
    return ipaddress.ip_interface(value[_BLOCK])


def is_block(text: str) -> bool:
    try:
        encode_block(text)
    except ValueError:
        return False
    return True


def contains(block: CelBlock, address: CelAddress) -> bool:
    network, wanted = _block(block).network, _address(address)
    return network.version == wanted.version and wanted in network


def contains_block(outer: CelBlock, inner: CelBlock) -> bool:
    large, small = _block(outer).network, _block(inner).network
    if isinstance(large, ipaddress.IPv4Network):
        return isinstance(small, ipaddress.IPv4Network) and small.subnet_of(large)
    return isinstance(small, ipaddress.IPv6Network) and small.subnet_of(large)


def address_of(block: CelBlock) -> CelAddress:
    return {_ADDRESS: str(_block(block).ip)}


def masked(block: CelBlock) -> CelBlock:
    return {_BLOCK: str(_block(block).network)}


def prefix_length(block: CelBlock) -> int:
    return _block(block).network.prefixlen
