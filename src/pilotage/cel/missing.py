"""What Kubernetes' expressions may call and ours may not: refused by name, not by what the parser makes of it."""

from __future__ import annotations

from typing import Final

from pilotage.cel.syntax import Call, Ident, Node, nodes_of

_MACROS: Final = frozenset({"sortBy", "existsOne", "transformList", "transformMap", "transformMapEntry"})
_TWO_VARIABLES: Final = frozenset({"all", "exists", "exists_one"})


def missing_function(tree: Node) -> str:
    """Why the expression cannot be evaluated here although Kubernetes could; "" if nothing is missing."""
    for node in nodes_of(tree):
        if not isinstance(node, Call):
            continue
        if node.function in _MACROS:
            return f"the macro {node.function}() is not supported"
        # A macro that is known has become a loop; with two variables it is none and still a call.
        if node.function in _TWO_VARIABLES and len(node.args) == 4:
            return f"the macro {node.function}() with two variables is not supported"
        # format.dns1123Label() and its like
        if node.args and node.args[0] == Ident("format"):
            return f"the function format.{node.function}() is not supported"
    return ""
