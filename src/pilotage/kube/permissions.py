"""What a missing permission is called, and the RBAC rule that would grant it."""

from __future__ import annotations

from collections.abc import Iterable

from pilotage.model.kinds import KindInfo


def rbac_rule(group: str, resource: str, verbs: Iterable[str]) -> str:
    """A rule of a Role or ClusterRole, in one line that can be pasted below `rules:`."""
    shown = ", ".join(f'"{verb}"' for verb in verbs)
    return f'- {{apiGroups: ["{group}"], resources: ["{resource}"], verbs: [{shown}]}}'


def way_out(kind: KindInfo, verbs: Iterable[str], subresource: str = "") -> str:
    """What to do about a 403."""
    resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
    return f"add to the role: {rbac_rule(kind.group, resource, verbs)}"
