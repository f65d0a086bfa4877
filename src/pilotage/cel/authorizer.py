"""Kubernetes' authorizer library for CEL, for a server at which everybody may do everything.

Who asks is a map that says nothing, and so is what is decided. Only admission policies have a variable of this type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from cel_expr_python import cel

_STRING: Final = cel.Type.STRING
AUTHORIZER: Final = cel.Type.Map(_STRING, _STRING)
WHO: Final = {"requestResource": ""}


def overloads() -> Iterator[tuple[str, list[Any], Any, Callable[..., Any], bool]]:
    for name in ("path", "group", "resource", "subresource", "namespace", "name", "fieldSelector", "labelSelector"):
        yield name, [AUTHORIZER, _STRING], AUTHORIZER, _same, True
    yield "serviceAccount", [AUTHORIZER, _STRING, _STRING], AUTHORIZER, _same, True
    yield "check", [AUTHORIZER, _STRING], AUTHORIZER, _same, True
    yield "allowed", [AUTHORIZER], cel.Type.BOOL, lambda _: True, True
    yield "errored", [AUTHORIZER], cel.Type.BOOL, lambda _: False, True
    yield "reason", [AUTHORIZER], _STRING, lambda _: "", True
    yield "error", [AUTHORIZER], _STRING, lambda _: "", True


def _same(who: Any, *_: str) -> Any:
    return dict(who)
