"""One CEL expression about one device: does it hold?

    selector = compile_selector('device.attributes["gpu.example.com"].model == "a100"')
    selector.matches(bind_device(driver, device))

The rest of Pilotage sees `Selector`, `CelError` and `bind_device`; only this folder imports the CEL library.

Things that the library does differently and that are put right here: an error comes back as a value, not as an
exception; an unknown attribute domain is an error, where Kubernetes has an empty map (so the domains that an
expression spells out are added to every device); and no limit on what an evaluation may cost but the number of turns of
its loops (so expressions that could cost too much are refused when they are compiled).
"""

from __future__ import annotations

import re
from collections import OrderedDict
from functools import lru_cache
from typing import Any, Protocol

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

from pilotage.model.resource import Device, DeviceAttribute
from pilotage.plugins.dynamic_resources.cel import quantities, versions
from pilotage.plugins.dynamic_resources.cel.cost import LONGEST_TEXT, MOST_ATTRIBUTES, TooCostly, bound
from pilotage.plugins.dynamic_resources.cel.functions import QUANTITY, declarations
from pilotage.plugins.dynamic_resources.cel.syntax import tree_of

MAX_LENGTH = 10 * 1024
_MOST_CHARACTERS = 256 * 1024
_OF_EACH = 128
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|' + r"'((?:[^'\\\n]|\\.)*)'")
_INDEX = re.compile(rf"\[\s*(?:{_LITERAL.pattern})\s*\]")
_DOMAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_MOST_DOMAINS = 64
_DOUBLING = re.compile(r"\bopt(?:Flat)?Map\b")
_LARGEST_EXPANSION = 100_000
_LONGEST_MESSAGE = 1_000
_MOST_ACTIVATIONS = 16


class CelError(Exception):
    """An expression that fails on a device."""


class CelCompileError(CelError):
    """An expression that fails on every device, because it is none."""


class BoundDevice:
    """A device as expressions see it."""

    __slots__ = ("_attributes", "_capacity", "_rest", "activations")

    def __init__(self, driver: str, device: Device) -> None:
        _check_size(device)
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
    if len(expression.encode()) > MAX_LENGTH:
        return CelCompileError(f"expression is longer than {MAX_LENGTH} characters")
    try:
        domains = _spelled_out(expression)
        _refuse_costly(expression, len(domains))
        compiled = _environment().compile(expression)
    except TooCostly as error:
        return CelCompileError(f"too complex, exceeds cost limit: {error}")
    except Exception as error:  # the library raises bare RuntimeErrors
        return CelCompileError(str(error)[:_LONGEST_MESSAGE])
    if compiled.return_type() not in (cel.Type.BOOL, cel.Type.DYN):
        return CelCompileError(f"must evaluate to bool, not to {compiled.return_type().name().lower()}")
    return _CompiledSelector(compiled, domains)


def _refuse_costly(expression: str, domains: int) -> None:
    """TooCostly before anything is done with the expression that could take long, such as checking its types."""
    # These two write what they are called on twice: a chain of them grows exponentially while it is parsed.
    doublings = len(_DOUBLING.findall(expression))
    if doublings and len(expression) << doublings > _LARGEST_EXPANSION:
        raise TooCostly(f"{doublings} calls of optMap or optFlatMap")
    bound(tree_of(_environment().compile(expression, disable_check=True).serialize()), domains)


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
        try:
            result = self._compiled.eval(activation)
        except RuntimeError as error:
            # The library counts the turns of loops, and ends an evaluation that takes too many.
            raise CelError(_plain(str(error))) from None
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


def _check_size(device: Device) -> None:
    """What an expression may cost is told by the sizes that the API server lets a device have."""
    texts = [value.string_value or value.version_value or "" for value in device.attributes.values()]
    names = [*device.attributes, *device.capacity]
    if len(names) > MOST_ATTRIBUTES or any(len(text.encode()) > LONGEST_TEXT for text in (*names, *texts)):
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
    raise TooCostly(f"it asks for {len(domains)} domains")


def _plain(text: str) -> str:
    """The library's texts in Kubernetes' words where there are any."""
    if "Iteration budget exceeded" in text:
        return "operation cancelled: actual cost limit exceeded"
    found = re.search(r'Key not found in map : "(.*)"', text)
    return f"no such key: {found[1]}" if found else text[:_LONGEST_MESSAGE]
