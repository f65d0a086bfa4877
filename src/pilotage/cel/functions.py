"""What an expression may call beyond CEL's own functions: Kubernetes' libraries, declared for the CEL library."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from cel_expr_python import cel

from pilotage.cel import addresses, patterns, quantities, urls, versions
from pilotage.cel.cost import LONGEST_RANGE

QUANTITY = cel.Type.Map(cel.Type.STRING, cel.Type.STRING)
VERSION = cel.Type.List(cel.Type.STRING)
# One map with texts looks like another to the type checker: which it is, is checked when it is used.
_ADDRESS = _BLOCK = _URL = QUANTITY
AUTHORIZER = QUANTITY
ANY_USER = {"requestResource": ""}
"""The value of an authorizer."""
_BOOL, _INT, _STRING, _DOUBLE = cel.Type.BOOL, cel.Type.INT, cel.Type.STRING, cel.Type.DOUBLE
_LIST = cel.Type.List(cel.Type.DYN)
_STRINGS = cel.Type.List(_STRING)

_Key: TypeAlias = tuple[str, Hashable]
Overload = tuple[str, list[Any], Any, Callable[..., Any], bool]
"""Name, parameters, result, implementation, and whether it is called on its first parameter."""


def declarations(more: Iterable[Overload] = ()) -> list[cel.FunctionDecl]:
    """Every function with all its overloads."""
    by_name: dict[str, list[cel.Overload]] = {}
    for count, (name, parameters, result, implementation, is_member) in enumerate((*_overloads(), *more)):
        overload = cel.Overload(
            f"{name}_{count}", return_type=result, parameters=parameters, is_member=is_member, impl=implementation
        )
        by_name.setdefault(name, []).append(overload)
    return [cel.FunctionDecl(name, overloads) for name, overloads in by_name.items()]


def _overloads() -> Iterator[Overload]:
    yield from _quantity_library()
    yield from _version_library()
    yield from _list_library()
    yield from _regex_library()
    yield from _set_library()
    yield from _url_library()
    yield from _address_library()
    yield from _block_library()
    yield "jsonpatch.escapeKey", [_STRING], _STRING, lambda key: key.replace("~", "~0").replace("/", "~1"), False


def _quantity_library() -> Iterator[Overload]:
    q = quantities
    yield "quantity", [_STRING], QUANTITY, q.encode, False
    yield "isQuantity", [_STRING], _BOOL, q.is_quantity, False
    yield "compareTo", [QUANTITY, QUANTITY], _INT, q.compare, True
    yield "isLessThan", [QUANTITY, QUANTITY], _BOOL, lambda a, b: q.compare(a, b) < 0, True
    yield "isGreaterThan", [QUANTITY, QUANTITY], _BOOL, lambda a, b: q.compare(a, b) > 0, True
    yield "sign", [QUANTITY], _INT, q.sign, True
    yield "isInteger", [QUANTITY], _BOOL, q.is_integer, True
    yield "asInteger", [QUANTITY], _INT, q.as_integer, True
    yield "asApproximateFloat", [QUANTITY], _DOUBLE, q.as_float, True
    yield "add", [QUANTITY, QUANTITY], QUANTITY, q.add, True
    yield "add", [QUANTITY, _INT], QUANTITY, q.with_integer(q.add), True
    yield "sub", [QUANTITY, QUANTITY], QUANTITY, q.subtract, True
    yield "sub", [QUANTITY, _INT], QUANTITY, q.with_integer(q.subtract), True


def _version_library() -> Iterator[Overload]:
    v = versions
    yield "semver", [_STRING], VERSION, v.encode, False
    yield "semver", [_STRING, _BOOL], VERSION, v.encode_any, False
    yield "isSemver", [_STRING], _BOOL, v.is_version, False
    yield "isSemver", [_STRING, _BOOL], _BOOL, v.is_any_version, False
    yield "compareTo", [VERSION, VERSION], _INT, v.compare, True
    yield "isLessThan", [VERSION, VERSION], _BOOL, lambda a, b: v.compare(a, b) < 0, True
    yield "isGreaterThan", [VERSION, VERSION], _BOOL, lambda a, b: v.compare(a, b) > 0, True
    for place, name in enumerate(("major", "minor", "patch")):
        yield name, [VERSION], _INT, lambda version, place=place: v.number(version, place), True


def _list_library() -> Iterator[Overload]:
    yield "isSorted", [_LIST], _BOOL, _is_sorted, True
    # Overloads differ by the kind of value alone, so lists of all elements share one.
    yield "sum", [_LIST], cel.Type.DYN, sum, True
    yield "min", [_LIST], cel.Type.DYN, min, True
    yield "max", [_LIST], cel.Type.DYN, max, True
    yield "distinct", [_LIST], _LIST, _distinct, True
    yield "reverse", [_LIST], _LIST, lambda items: list(reversed(items)), True
    yield "sort", [_LIST], _LIST, sorted, True
    yield "slice", [_LIST, _INT, _INT], _LIST, _slice, True
    yield "flatten", [_LIST], _LIST, lambda items: _flatten(items, 1), True
    yield "flatten", [_LIST, _INT], _LIST, _flatten, True
    for kind in (_STRING, _INT, _DOUBLE, _BOOL):
        yield "includes", [_LIST, kind], _BOOL, lambda items, item: item in items, True
    yield "lists.range", [_INT], cel.Type.List(_INT), _range, False


def _regex_library() -> Iterator[Overload]:
    yield "find", [_STRING, _STRING], _STRING, patterns.find, True
    yield "findAll", [_STRING, _STRING], _STRINGS, patterns.find_all, True
    yield "findAll", [_STRING, _STRING, _INT], _STRINGS, patterns.find_all, True


def _set_library() -> Iterator[Overload]:
    yield "sets.contains", [_LIST, _LIST], _BOOL, _contains, False
    yield "sets.equivalent", [_LIST, _LIST], _BOOL, lambda a, b: _contains(a, b) and _contains(b, a), False
    yield "sets.intersects", [_LIST, _LIST], _BOOL, _intersect, False


def _url_library() -> Iterator[Overload]:
    yield "url", [_STRING], _URL, urls.encode, False
    yield "isURL", [_STRING], _BOOL, urls.is_url, False
    yield "getScheme", [_URL], _STRING, urls.scheme, True
    yield "getHost", [_URL], _STRING, urls.host, True
    yield "getHostname", [_URL], _STRING, urls.hostname, True
    yield "getPort", [_URL], _STRING, urls.port, True
    yield "getEscapedPath", [_URL], _STRING, urls.escaped_path, True
    yield "getQuery", [_URL], cel.Type.Map(_STRING, _STRINGS), urls.query, True


def _address_library() -> Iterator[Overload]:
    a = addresses
    yield "ip", [_STRING], _ADDRESS, a.encode, False
    yield "isIP", [_STRING], _BOOL, a.is_address, False
    yield "ip.isCanonical", [_STRING], _BOOL, a.is_canonical, False
    yield "family", [_ADDRESS], _INT, a.family, True
    yield "isUnspecified", [_ADDRESS], _BOOL, a.is_unspecified, True
    yield "isLoopback", [_ADDRESS], _BOOL, a.is_loopback, True
    yield "isLinkLocalUnicast", [_ADDRESS], _BOOL, a.is_link_local, True
    yield "isLinkLocalMulticast", [_ADDRESS], _BOOL, a.is_link_local_multicast, True
    yield "isGlobalUnicast", [_ADDRESS], _BOOL, a.is_global_unicast, True


def _block_library() -> Iterator[Overload]:
    a = addresses
    yield "cidr", [_STRING], _BLOCK, a.encode_block, False
    yield "isCIDR", [_STRING], _BOOL, a.is_block, False
    yield "containsIP", [_BLOCK, _ADDRESS], _BOOL, a.contains, True
    yield "containsIP", [_BLOCK, _STRING], _BOOL, lambda block, text: a.contains(block, a.encode(text)), True
    yield "containsCIDR", [_BLOCK, _BLOCK], _BOOL, a.contains_block, True
    yield "containsCIDR", [_BLOCK, _STRING], _BOOL, lambda b, text: a.contains_block(b, a.encode_block(text)), True
    yield "ip", [_BLOCK], _ADDRESS, a.address_of, True
    yield "masked", [_BLOCK], _BLOCK, a.masked, True
    yield "prefixLength", [_BLOCK], _INT, a.prefix_length, True


def authorizer_library() -> Iterator[Overload]:
    """For a server where every user may do everything: who asks is a map that says nothing, as is what is decided."""
    for name in ("path", "group", "resource", "subresource", "namespace", "name", "fieldSelector", "labelSelector"):
        yield name, [AUTHORIZER, _STRING], AUTHORIZER, _same, True
    yield "serviceAccount", [AUTHORIZER, _STRING, _STRING], AUTHORIZER, _same, True
    yield "check", [AUTHORIZER, _STRING], AUTHORIZER, _same, True
    yield "allowed", [AUTHORIZER], _BOOL, lambda _: True, True
    yield "errored", [AUTHORIZER], _BOOL, lambda _: False, True
    yield "reason", [AUTHORIZER], _STRING, lambda _: "", True
    yield "error", [AUTHORIZER], _STRING, lambda _: "", True


def _same(who: Mapping[str, str], *_: str) -> Mapping[str, str]:
    return dict(who)


def _is_sorted(items: Sequence[Any]) -> bool:
    return all(items[place] <= items[place + 1] for place in range(len(items) - 1))


def _distinct(items: Sequence[Any]) -> list[Any]:
    kept: dict[_Key, Any] = {}
    for item in items:
        kept.setdefault(_frozen(item), item)
    return list(kept.values())


def _flatten(items: Sequence[Any], depth: int) -> list[Any]:
    if depth < 0:
        raise ValueError("level must be non-negative")
    found: list[Any] = []
    for item in items:
        if depth and isinstance(item, list):
            found += _flatten(item, depth - 1)
        else:
            found.append(item)
    return found


def _slice(items: Sequence[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(items):
        raise ValueError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items[start:end])


def _range(count: int) -> list[int]:
    if count > LONGEST_RANGE:
        raise ValueError(f"actual cost limit exceeded: a list of {count} numbers")
    return list(range(count))


def _contains(items: Sequence[Any], wanted: Sequence[Any]) -> bool:
    return set(map(_frozen, items)).issuperset(map(_frozen, wanted))


def _intersect(left: Sequence[Any], right: Sequence[Any]) -> bool:
    return not set(map(_frozen, left)).isdisjoint(map(_frozen, right))


def _frozen(value: Any) -> _Key:
    """A value of CEL to be found in a set: what is equal in CEL is equal here, and true is no number."""
    if isinstance(value, Mapping):
        return "map", frozenset((_frozen(key), _frozen(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return "list", tuple(map(_frozen, value))
    return "truth" if isinstance(value, bool) else "", value
