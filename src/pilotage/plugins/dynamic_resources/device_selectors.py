"""One CEL expression about one device: does it hold?

    selector = compile_selector('device.attributes["gpu.example.com"].model == "a100"')
    selector.matches(bind_device(driver, device))

An unknown attribute domain is an error for the CEL library, where Kubernetes has an empty map, so the domains that an
expression spells out are added to every device. What an expression may cost follows from the largest device that the
API server accepts, when it is compiled.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from functools import lru_cache
from typing import Any, Final, Protocol

from pilotage.cel import (
    CelCompileError,
    CelError,
    CelType,
    Environment,
    Program,
    Values,
    ValueShape,
    quantities,
    versions,
)
from pilotage.cel.cost import collection_shape, text_shape
from pilotage.model.resource import Device, DeviceAttribute

_MOST_CHARACTERS = 256 * 1024
_OF_EACH = 128
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|' + r"'((?:[^'\\\n]|\\.)*)'")
_INDEX = re.compile(rf"\[\s*(?:{_LITERAL.pattern})\s*\]")
_DOMAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_MOST_DOMAINS = 64
_LONGEST_MESSAGE = 1_000
_MOST_BOUND = 16
_MOST_ATTRIBUTES: Final = 32
"""Attributes and capacities of a device together, as the API server has it."""
_LONGEST_TEXT: Final = 256
"""Of a device, in bytes: the API server accepts 64 characters, and 63 for names."""


class BoundDevice:
    """A device as expressions see it."""

    __slots__ = ("_attributes", "_capacity", "_rest", "bound")

    def __init__(self, driver: str, device: Device) -> None:
        _check_size(device)
        self._attributes = _by_domain(driver, {name: _attribute(a) for name, a in device.attributes.items()})
        self._capacity = _by_domain(driver, {name: quantities.encode(c.value) for name, c in device.capacity.items()})
        self._rest = {"driver": driver, "allowMultipleAllocations": bool(device.allow_multiple_allocations)}
        self.bound: dict[tuple[str, ...], Values] = {}

    def variables(self, domains: tuple[str, ...]) -> dict[str, Any]:
        """The variables of an expression that spells out these domains."""
        empty: dict[str, dict[str, Any]] = {domain: {} for domain in domains}
        device = {**self._rest, "attributes": {**empty, **self._attributes}, "capacity": {**empty, **self._capacity}}
        return {"device": device, **{f"device.{name}": value for name, value in device.items()}}


class Selector(Protocol):
    """A compiled expression."""

    def matches(self, device: BoundDevice) -> bool:
        """Does it hold for the device? CelError if it cannot be decided."""


def bind_device(driver: str, device: Device) -> BoundDevice:
    """CelError for a device that no expression can be asked about."""
    try:
        return BoundDevice(driver, device)
    except ValueError as error:
        raise CelError(str(error)[:_LONGEST_MESSAGE]) from None


def compile_selector(expression: str) -> Selector:
    """CelCompileError if the expression is none, is not about true and false, or could take too long."""
    compiled = _known.get(expression)
    if isinstance(compiled, CelCompileError):
        raise compiled.with_traceback(None)
    return compiled


class _CompiledSelectors:
    """Those that were used lately. Failures are remembered too: finding one can take as long as compiling."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Selector | CelCompileError] = OrderedDict()
        self._characters = 0

    def get(self, expression: str) -> Selector | CelCompileError:
        known = self._known.get(expression)
        if known is not None:
            self._known.move_to_end(expression)
            return known
        compiled = self._known[expression] = _compiled(expression)
        self._characters += _OF_EACH + len(expression)
        # A compiled expression takes up to 400 times the memory of its text.
        while self._characters > _MOST_CHARACTERS and len(self._known) > 1:
            dropped, _ = self._known.popitem(last=False)
            self._characters -= _OF_EACH + len(dropped)
        return compiled


_known = _CompiledSelectors()


def _compiled(expression: str) -> Selector | CelCompileError:
    try:
        domains = _spelled_out(expression)
        program = _environment().compile(expression, {"device": _device_shape(len(domains))})
    except CelCompileError as error:
        return error.with_traceback(None)
    if program.result not in (CelType.BOOL, CelType.ANY):
        return CelCompileError(f"must evaluate to bool, not to {program.result.name().lower()}")
    return _CompiledSelector(program, domains)


class _CompiledSelector:
    __slots__ = ("_domains", "_program")

    def __init__(self, program: Program, domains: tuple[str, ...]) -> None:
        self._program = program
        self._domains = domains

    def matches(self, device: BoundDevice) -> bool:
        values = device.bound.get(self._domains)
        if values is None:
            if len(device.bound) >= _MOST_BOUND:
                device.bound.clear()
            values = device.bound[self._domains] = _environment().bind(device.variables(self._domains))
        return self._program.holds(values)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return Environment(
        {
            "device": CelType.MAP,
            "device.driver": CelType.STRING,
            "device.attributes": CelType.map_of(CelType.MAP),
            "device.capacity": CelType.map_of(CelType.map_of(CelType.QUANTITY)),
            "device.allowMultipleAllocations": CelType.BOOL,
        }
    )


def _device_shape(domains: int) -> ValueShape:
    """A device, with so many domains that the expression may ask for."""
    in_domain = collection_shape(_MOST_ATTRIBUTES, text_shape(_LONGEST_TEXT))
    return collection_shape(5, collection_shape(_MOST_ATTRIBUTES + domains, in_domain))


def _check_size(device: Device) -> None:
    """What an expression may cost follows from the sizes that the API server lets a device have."""
    texts = [value.string_value or value.version_value or "" for value in device.attributes.values()]
    names = [*device.attributes, *device.capacity]
    if len(names) > _MOST_ATTRIBUTES or any(len(text.encode()) > _LONGEST_TEXT for text in (*names, *texts)):
        raise CelError("the device has too many or too long attributes")


def _by_domain(driver: str, values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Names without a domain belong to the driver's."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        domain, slash, identifier = name.rpartition("/")
        found.setdefault(domain if slash else driver, {})[identifier] = value
    return found


def _attribute(attribute: DeviceAttribute) -> Any:
    if attribute.version_value is not None:
        return versions.encode(attribute.version_value)
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    return None


def _spelled_out(expression: str) -> tuple[str, ...]:
    """The texts in an expression that could be the domains that it asks for; of very many only those in brackets."""
    for literal in (_LITERAL, _INDEX):
        texts = {double or single for double, single in literal.findall(expression)}
        domains = {text for text in texts if _DOMAIN.fullmatch(text)}
        if len(domains) <= _MOST_DOMAINS:
            return tuple(sorted(domains))
    raise CelCompileError(f"too complex, exceeds cost limit: it asks for {len(domains)} domains")
