"""JSON patch (RFC 6902): a list of operations, applied all or none.

`apply_operations` works in place on a private copy of the document and returns the new root. What cannot be applied
(a failed test, a path that does not exist) raises `OperationError`; what is no JSON patch at all raises
`FormatError`; a patch that would blow up the document raises `TooLarge`. Limits are those of the API server.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024

_NEEDS_VALUE: Final = frozenset({"add", "replace", "test"})
_NEEDS_FROM: Final = frozenset({"move", "copy"})
_OPERATIONS: Final = _NEEDS_VALUE | _NEEDS_FROM | {"remove"}


class FormatError(ValueError):
    """The body is not a JSON patch."""


class OperationError(ValueError):
    """A well-formed operation does not fit the document."""


class TooLarge(ValueError):
    """More work than one request may ask for."""


def apply_operations(document: Any, operations: Any) -> Any:
    """The document after all operations; `document` is consumed."""
    if not isinstance(operations, list):
        raise FormatError("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise TooLarge(f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}")
    copied = 0
    for position, operation in enumerate(operations):
        _check_form(operation, position)
        if operation["op"] == "copy":
            copied += len(msgspec.json.encode(_get(document, _tokens(operation["from"]), operation["from"])))
            if copied > MAX_COPIED_BYTES:
                raise TooLarge(f"JSON patch copies more than {MAX_COPIED_BYTES} bytes")
        document = _apply(document, operation)
    return document


def json_equal(left: Any, right: Any) -> bool:
    """Equality of JSON values: true is not 1, 1 is 1.0, the order of keys does not matter."""
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(json_equal(value, right[key]) for key, value in left.items())
        )
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(json_equal, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _check_form(operation: Any, position: int) -> None:
    if not isinstance(operation, dict):
        raise FormatError(f"operation {position}: expected an object")
    name = operation.get("op")
    if not isinstance(name, str) or name not in _OPERATIONS:
        raise FormatError(
            f"operation {position}: unknown op {name!r}: expected one of {', '.join(sorted(_OPERATIONS))}"
        )
    if not isinstance(operation.get("path"), str):
        raise FormatError(f"operation {position}: {name} needs a path")
    if name in _NEEDS_VALUE and "value" not in operation:
        raise FormatError(f"operation {position}: {name} needs a value")
    if name in _NEEDS_FROM and not isinstance(operation.get("from"), str):
        raise FormatError(f"operation {position}: {name} needs a from path")


def _apply(document: Any, operation: dict[str, Any]) -> Any:
    name, path = operation["op"], operation["path"]
    tokens = _tokens(path)
    match name:
        case "test":
            if not json_equal(_get(document, tokens, path), operation["value"]):
                raise OperationError(f"testing value {path} failed")
            return document
        case "add":
            return _add(document, tokens, path, operation["value"])
        case "remove":
            return _remove(document, tokens, path)
        case "replace":
            _get(document, tokens, path)
            return _put(document, tokens, path, operation["value"])
        case "copy":
            # Copied for real: later operations may change one of the two.
            value = msgspec.to_builtins(_get(document, _tokens(operation["from"]), operation["from"]))
            return _add(document, tokens, path, value)
        case _:
            return _move(document, operation["from"], path)


def _move(document: Any, source: str, path: str) -> Any:
    if path.startswith(f"{source}/"):
        raise OperationError(f"cannot move {source!r} into its own child {path!r}")
    value = _get(document, _tokens(source), source)
    if source == path:
        return document
    return _add(_remove(document, _tokens(source), source), _tokens(path), path, value)


def _tokens(path: str) -> list[str]:
    if path == "":
        return []
    if not path.startswith("/"):
        raise OperationError(f"path {path!r} does not start with a slash")
    return [token.replace("~1", "/").replace("~0", "~") for token in path[1:].split("/")]


def _get(document: Any, tokens: list[str], path: str) -> Any:
    for token in tokens:
        document = _child(document, token, path)
    return document


def _child(parent: Any, token: str, path: str) -> Any:
    if isinstance(parent, dict):
        if token not in parent:
            raise OperationError(f"path {path!r}: missing key {token!r}")
        return parent[token]
    if isinstance(parent, list):
        return parent[_index(token, len(parent) - 1, path)]
    raise OperationError(f"path {path!r}: {token!r} is below a value that is neither object nor list")


def _index(token: str, highest: int, path: str) -> int:
    if not (token.isascii() and token.isdigit()) or (len(token) > 1 and token[0] == "0"):
        raise OperationError(f"path {path!r}: {token!r} is not a list index")
    # Longer numbers cannot be an index and would be slow to convert.
    if len(token) > 9 or int(token) > highest:
        raise OperationError(f"path {path!r}: index {token[:12]} is out of range")
    return int(token)


def _add(document: Any, tokens: list[str], path: str, value: Any) -> Any:
    if not tokens:
        return value
    parent = _get(document, tokens[:-1], path)
    last = tokens[-1]
    if isinstance(parent, list):
        parent.insert(len(parent) if last == "-" else _index(last, len(parent), path), value)
        return document
    return _put(document, tokens, path, value)


def _put(document: Any, tokens: list[str], path: str, value: Any) -> Any:
    if not tokens:
        return value
    parent = _get(document, tokens[:-1], path)
    if isinstance(parent, dict):
        parent[tokens[-1]] = value
    elif isinstance(parent, list):
        parent[_index(tokens[-1], len(parent) - 1, path)] = value
    else:
        raise OperationError(f"path {path!r}: {tokens[-1]!r} is below a value that is neither object nor list")
    return document


def _remove(document: Any, tokens: list[str], path: str) -> Any:
    if not tokens:
        raise OperationError("the whole object cannot be removed by a patch")
    parent = _get(document, tokens[:-1], path)
    _child(parent, tokens[-1], path)
    if isinstance(parent, dict):
        del parent[tokens[-1]]
    else:
        del parent[int(tokens[-1])]
    return document
