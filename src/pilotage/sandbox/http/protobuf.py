"""Request bodies in Kubernetes' protobuf encoding, read into the same dicts as JSON.

kubectl's generators (`kubectl create namespace`, `kubectl auth can-i`, ...) and all typed Go clients write protobuf and
take no other answer than success. What they read may be JSON, so that only this direction is needed.

A body is four magic bytes and an envelope (apiVersion, kind, bytes of the object). `api_wire.json` says which number is
which field. Zeros in fields that cannot be absent in Go mean "not set" and are dropped, as Go's JSON encoder does.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from pilotage.clock import rfc3339, rfc3339_micro
from pilotage.sandbox.errors import bad_request, unsupported_media_type

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"

_MAGIC: Final = b"k8s\x00"
_ABSENT: Final = object()
_UNIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "apiextensions.v1.JSONSchemaPropsOrArray": ("schema", "jSONSchemas"),
    "apiextensions.v1.JSONSchemaPropsOrBool": ("schema", "allows"),
    "apiextensions.v1.JSONSchemaPropsOrStringArray": ("schema", "property"),
}
"""Messages that stand for one of their fields."""


class _Field(msgspec.Struct, frozen=True):
    """One field of a message: its JSON name ("" = inlined), how it is read, whether it repeats, whether zeros count."""

    name: str
    code: str
    container: str
    keeps_zero: bool


class _Malformed(Exception):
    """The bytes are no protobuf."""


def decode_protobuf(body: bytes) -> dict[str, Any]:
    """The object in a protobuf body; ApiError 400 when it cannot be read, 415 when its kind is not known here."""
    if not body.startswith(_MAGIC):
        raise bad_request("the body does not start with the magic bytes of Kubernetes' protobuf encoding")
    try:
        api_version, kind, raw = _open_envelope(body[len(_MAGIC) :])
        message = _message_name(api_version, kind)
        if message not in _messages():
            raise unsupported_media_type(
                f"{kind} in version {api_version} is not read as protobuf here - accepted media types include: "
                "application/json"
            )
        return {"kind": kind, "apiVersion": api_version, **_decode(message, raw)}
    except (_Malformed, IndexError, struct.error, UnicodeDecodeError, OverflowError, ValueError) as error:
        raise bad_request(f"the body is malformed protobuf: {error}") from None
    except RecursionError:
        raise bad_request("the object provided is nested too deeply") from None


def _open_envelope(data: bytes) -> tuple[str, str, bytes]:
    type_meta, raw = b"", b""
    for number, value in fields_in(data):
        if number == 1:
            type_meta = _bytes(value)
        elif number == 2:
            raw = _bytes(value)
    names = {number: _bytes(value).decode() for number, value in fields_in(type_meta)}
    return names.get(1, ""), names.get(2, ""), raw


def _message_name(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    if kind == "DeleteOptions":
        return "meta.v1.DeleteOptions"
    return f"{group.partition('.')[0] or 'core'}.{version}.{kind}"


@cache
def _messages() -> Mapping[str, Mapping[str, str]]:
    text = files("pilotage.sandbox.http").joinpath("api_wire.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, dict[str, str]])


@cache
def _fields_of(message: str) -> Mapping[int, _Field]:
    return {int(number): _field(text) for number, text in _messages()[message].items()}


def _field(text: str) -> _Field:
    name, _, code = text.partition("=")
    keeps_zero = code.startswith("*")
    code = code.removeprefix("*")
    container = {"[": "list", "{": "map"}.get(code[0], "")
    return _Field(name, code[1:-1] if container else code, container, keeps_zero)


def _decode(message: str, data: bytes) -> dict[str, Any]:
    fields = _fields_of(message)
    obj: dict[str, Any] = {}
    for number, wire in fields_in(data):
        field = fields.get(number)
        if field is None:
            continue
        if field.container == "map":
            key, value = _map_entry(field.code, _bytes(wire))
            obj.setdefault(field.name, {})[key] = value
        elif field.container == "list":
            obj.setdefault(field.name, []).extend(_elements(field.code, wire))
        else:
            value = _value(field.code, wire)
            if not field.name:
                obj.update(value)
            elif field.keeps_zero or not _is_zero(value):
                obj[field.name] = value
    return obj


def _elements(code: str, wire: int | bytes | float) -> list[Any]:
    """One element, or several where numbers are packed."""
    if code in ("int", "bool") and isinstance(wire, bytes):
        return [_value(code, number) for number in _packed(wire)]
    return [_value(code, wire)]


def _is_zero(value: Any) -> bool:
    return value is _ABSENT or value in ("", 0, {}, None)


def _value(code: str, wire: int | bytes | float) -> Any:
    match code:
        case "string":
            return _bytes(wire).decode()
        case "int":
            return _signed(wire)
        case "bool":
            return bool(wire)
        case "double":
            return wire
        case "bytes":
            return base64.b64encode(_bytes(wire)).decode()
        case "raw":
            raw = _first(_bytes(wire))
            return msgspec.json.decode(raw) if raw else None
        case "quantity":
            return _first(_bytes(wire)).decode()
        case "time" | "microtime":
            return _time(code, _bytes(wire))
        case "int-or-string":
            return _int_or_string(_bytes(wire))
        case "strings":
            return [_bytes(value).decode() for number, value in fields_in(_bytes(wire)) if number == 1]
        case _ if code in _UNIONS:
            fields = _decode(code, _bytes(wire))
            return next((fields[name] for name in _UNIONS[code] if name in fields), False)
        case _:
            return _decode(code, _bytes(wire))


def _map_entry(code: str, data: bytes) -> tuple[str, Any]:
    key, value = "", _ABSENT
    for number, wire in fields_in(data):
        if number == 1:
            key = _bytes(wire).decode()
        elif number == 2:
            value = _value(code, wire)
    return key, _value(code, b"") if value is _ABSENT else value


def _time(code: str, data: bytes) -> Any:
    if not data:
        return None
    parts = {number: _signed(wire) for number, wire in fields_in(data)}
    seconds = parts.get(1, 0)
    return rfc3339(seconds) if code == "time" else rfc3339_micro(seconds + parts.get(2, 0) / 1e9)


def _int_or_string(data: bytes) -> int | str:
    parts = dict(fields_in(data))
    return _bytes(parts.get(3, b"")).decode() if parts.get(1) else _signed(parts.get(2, 0))


def _first(data: bytes) -> bytes:
    """The bytes of field 1: how quantities and raw JSON are wrapped."""
    return next((_bytes(wire) for number, wire in fields_in(data) if number == 1), b"")


def fields_in(data: bytes) -> Iterator[tuple[int, int | bytes | float]]:
    """Numbers and values of a message, as they come."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, at = _varint(data, at)
            yield number, value
        elif wire_type == 2:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise _Malformed(f"field {number} is longer than the message")
            yield number, data[at : at + length]
            at += length
        elif wire_type == 1:
            yield number, struct.unpack_from("<d", data, at)[0]
            at += 8
        else:
            raise _Malformed(f"field {number} has the unknown wire type {wire_type}")


def _packed(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise _Malformed("a number has more than 64 bits")


def _signed(wire: int | bytes | float) -> int:
    if not isinstance(wire, int):
        raise _Malformed("a number was expected")
    value = wire & 0xFFFFFFFFFFFFFFFF
    return value - (1 << 64) if value >> 63 else value


def _bytes(wire: int | bytes | float) -> bytes:
    if not isinstance(wire, bytes):
        raise _Malformed("bytes were expected")
    return wire
