"""One CEL expression about one device: does it hold?

    selector = compile_selector('device.attributes["gpu.example.com"].model == "a100"')
    selector.matches(bind_device(driver, device))

The rest of Pilotage sees `Selector`, `CelError` and `bind_device`; only this folder imports the CEL library.

Things that the library does differently and that are put right here: an error comes back as a value, not as an
exception; an unknown attribute domain is an error, where Kubernetes has an empty map (so the domains that an
expression spells out are added to every device); and there is no limit on what an evaluation may cost (so expressions
that could loop too often are refused when they are compiled).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Protocol

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

from pilotage.model.resource import Device, DeviceAttribute
from pilotage.plugins.dynamic_resources.cel import quantities, versions
from pilotage.plugins.dynamic_resources.cel.functions import LONGEST_RANGE, QUANTITY, declarations

MAX_LENGTH = 10 * 1024
MAX_STEPS = 10_000_000
"""More steps than any sensible selector needs, and few enough not to hold up the scheduler for long."""
_COMPILED = 1024
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|' + r"'((?:[^'\\\n]|\\.)*)'")
_LOOP = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter|sortBy|transformList|transformMap)\s*\(")
_LARGEST_COLLECTION = 64
_MOST_ACTIVATIONS = 64


class CelError(Exception):
    """An expression that fails on a device."""


class CelCompileError(CelError):
    """An expression that fails on every device, because it is none."""


class BoundDevice:
    """A device as expressions see it."""

    __slots__ = ("_attributes", "_capacity", "_rest", "activations")

    def __init__(self, driver: str, device: Device) -> None:
        self._attributes = _by_domain(driver, {name: _attribute(a) for name, a in device.attributes.items()})
        self._capacity = _by_domain(driver, {name: quantities.encode(c.value) for name, c in device.capacity.items()})
        self._rest = {"driver": driver, "allowMultipleAllocations": bool(device.allow_multiple_allocations)}
        self.activations: dict[tuple[str, ...], Any] = {}

    def variables(self, domains: tuple[str, ...]) -> dict[str, Any]:
        """The variables of an expression that spells out these domains."""
        empty: dict[str, dict[str, Any]] = {domain: {} for domain in domains}
        device = {**self._rest, "attributes": {**empty, **self._attributes}, "capacity": {**empty, **self._capacity}}
        return {"device": device, **{f"device.{name}": value for name, value in device.items()}}


class Selector(Protocol):
    """A compiled expression."""

    def matches(self, device: BoundDevice) -> bool:
        """Does it hold for the device? CelError if it cannot be told."""


def bind_device(driver: str, device: Device) -> BoundDevice:
    return BoundDevice(driver, device)


@lru_cache(maxsize=_COMPILED)
def compile_selector(expression: str) -> Selector:
    """CelCompileError if the expression is none, is not about true and false, or could take too long."""
    if len(expression) > MAX_LENGTH:
        raise CelCompileError(f"expression is longer than {MAX_LENGTH} characters")
    _refuse_long_loops(expression)
    environment = _environment()
    try:
        compiled = environment.compile(expression)
    except Exception as error:  # the library raises bare RuntimeErrors
        raise CelCompileError(str(error)) from error
    if compiled.return_type() not in (cel.Type.BOOL, cel.Type.DYN):
        raise CelCompileError(f"must evaluate to bool, not to {compiled.return_type().name().lower()}")
    return _CompiledSelector(compiled, _spelled_out(expression))


class _CompiledSelector:
    __slots__ = ("_compiled", "_domains")

    def __init__(self, compiled: Any, domains: tuple[str, ...]) -> None:
        self._compiled = compiled
        self._domains = domains

    def matches(self, device: BoundDevice) -> bool:
        activation = device.activations.get(self._domains)
        if activation is None:
            if len(device.activations) >= _MOST_ACTIVATIONS:
                device.activations.clear()
            activation = _environment().Activation(device.variables(self._domains))
            device.activations[self._domains] = activation
        result = self._compiled.eval(activation)
        # An error is a value here; read as a truth it would be true.
        if result.type() == cel.Type.ERROR:
            raise CelError(_plain(str(result.value())))
        value = result.value()
        if not isinstance(value, bool):
            raise CelError(f"expression returned {result.type().name().lower()}, must be bool")
        return value


@lru_cache(maxsize=1)
def _environment() -> Any:
    string, dynamic = cel.Type.STRING, cel.Type.DYN
    return cel.NewEnv(
        variables={
            "device": cel.Type.Map(string, dynamic),
            "device.driver": string,
            "device.attributes": cel.Type.Map(string, cel.Type.Map(string, dynamic)),
            "device.capacity": cel.Type.Map(string, cel.Type.Map(string, QUANTITY)),
            "device.allowMultipleAllocations": cel.Type.BOOL,
        },
        functions=declarations(),
        extensions=[ext_strings.ExtStrings(2), ext_optional.ExtOptional(), ext_bindings.ExtBindings()],
    )


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
    """The texts in an expression: among them are the domains that it asks for."""
    return tuple(sorted({double or single for double, single in _LITERAL.findall(expression)}))


def _refuse_long_loops(expression: str) -> None:
    loops = len(_LOOP.findall(expression))
    turns = max(_LARGEST_COLLECTION, expression.count(",") + 1)
    if "lists.range" in expression:
        turns = max(turns, LONGEST_RANGE)
    if loops > 1 and turns**loops > MAX_STEPS:
        raise CelCompileError(f"cost limit exceeded: {loops} loops of up to {turns} turns each")


def _plain(text: str) -> str:
    """The library's texts in Kubernetes' words where there are any."""
    found = re.search(r'Key not found in map : "(.*)"', text)
    return f"no such key: {found[1]}" if found else text
