"""What a missing permission is called, and the RBAC rule that would grant it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from pilotage.model.kinds import KindInfo


def rbac_rule(group: str, resource: str, verbs: Iterable[str]) -> str:
    """A rule of a Role or ClusterRole, in one line that can be pasted below `rules:`."""
    shown = ", ".join(f'"{verb}"' for verb in verbs)
    return f'- {{apiGroups: ["{group}"], resources: ["{resource}"], verbs: [{shown}]}}'


def way_out(kind: KindInfo, verbs: Iterable[str], subresource: str = "") -> str:
    """What to do about a 403."""
    resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
    return f"add to the role: {rbac_rule(kind.group, resource, verbs)}"


_FORBIDDEN: Final = re.compile(r'cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"')


def rule_for_refusal(message: str) -> str:
    """The rule that grants what the API server refused in these words; "" if it did not say what that was."""
    found = _FORBIDDEN.search(message)
    return "" if found is None else rbac_rule(found["group"], found["resource"], [found["verb"]])
