"""Role-based access control: what the roles that are bound to a user allow.

Rules only add up: whatever no rule allows is forbidden. A ClusterRole with an aggregation rule has the rules of the
ClusterRoles that its selectors match; it is asked for them anew each time, so no controller has to copy them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from pilotage.model.selectors import LabelSelector
from pilotage.sandbox.rules.json_fields import Json, dict_or_empty, dicts_in
from pilotage.sandbox.rules.lookup import Lookup

ROLES: Final = "roles.rbac.authorization.k8s.io"
CLUSTER_ROLES: Final = "clusterroles.rbac.authorization.k8s.io"
ROLE_BINDINGS: Final = "rolebindings.rbac.authorization.k8s.io"
CLUSTER_ROLE_BINDINGS: Final = "clusterrolebindings.rbac.authorization.k8s.io"
MASTERS: Final = "system:masters"
"""Members of this group may do everything, whatever the roles say."""
_ANY: Final = "*"
_MOST_COVERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class AccessAttempt:
    """What somebody wants to do: a verb on a resource, or on a path that is none."""

    verb: str
    group: str = ""
    resource: str = ""
    """With its subresource: `pods/log`."""
    name: str = ""
    namespace: str = ""
    path: str = ""

    def sentence(self, user: str) -> str:
        """Why it is forbidden, in the words of the API server."""
        if self.path:
            return f'User "{user}" cannot {self.verb} path "{self.path}"'
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        what = f'resource "{self.resource}" in API group "{self.group}"'
        return f'User "{user}" cannot {self.verb} {what} {where}'


@dataclass(frozen=True, slots=True)
class AccessRule:
    """One rule of a role."""

    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str]
    paths: frozenset[str]

    @classmethod
    def of(cls, rule: Json) -> AccessRule:
        fields = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
        return cls(*(frozenset(one for one in rule.get(field) or () if isinstance(one, str)) for field in fields))

    def allows(self, attempt: AccessAttempt) -> bool:
        if not _has(self.verbs, attempt.verb):
            return False
        if attempt.path:
            return any(_is_below(attempt.path, pattern) for pattern in self.paths)
        if not _has(self.groups, attempt.group) or (self.names and attempt.name not in self.names):
            return False
        resource, slash, below = attempt.resource.partition("/")
        wanted = {_ANY, attempt.resource}
        return bool(wanted & self.resources) or bool(slash and f"*/{below}" in self.resources and resource)

    def attempts(self, namespace: str) -> Iterator[AccessAttempt]:
        """Everything that it allows, one by one; a star stands for itself."""
        for verb in sorted(self.verbs):
            for path in sorted(self.paths):
                yield AccessAttempt(verb, path=path)
            for group in sorted(self.groups):
                for resource in sorted(self.resources):
                    for name in sorted(self.names) or ("",):
                        yield AccessAttempt(verb, group, resource, name, namespace)

    def shown(self) -> str:
        """As messages about rules spell it."""
        fields = (
            ("APIGroups", self.groups),
            ("Resources", self.resources),
            ("ResourceNames", self.names),
            ("NonResourceURLs", self.paths),
            ("Verbs", self.verbs),
        )
        return "{" + ", ".join(f"{name}:[{_quoted(values)}]" for name, values in fields if values) + "}"


class Roles:
    """The roles and bindings of a cluster."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def allows(self, user: Mapping[str, Any], attempt: AccessAttempt) -> bool:
        if MASTERS in (user.get("groups") or ()):
            return True
        return any(rule.allows(attempt) for rule in self.rules_of(user, attempt.namespace))

    def rules_of(self, user: Mapping[str, Any], namespace: str) -> Iterator[AccessRule]:
        """The rules that bindings give to the user there; with no namespace those of the whole cluster."""
        for binding in self._lookup.list(CLUSTER_ROLE_BINDINGS):
            if _is_for(binding, user, ""):
                yield from self.rules_in(dict_or_empty(binding.get("roleRef")), "")
        if namespace:
            for binding in self._lookup.list(ROLE_BINDINGS, namespace):
                if _is_for(binding, user, namespace):
                    yield from self.rules_in(dict_or_empty(binding.get("roleRef")), namespace)

    def rules_in(self, reference: Json, namespace: str) -> Iterator[AccessRule]:
        """The rules of the role that a binding names; none if it is not there."""
        name = str(reference.get("name"))
        if reference.get("kind") == "Role":
            role = self._lookup.get(ROLES, namespace, name)
        else:
            role = self._lookup.get(CLUSTER_ROLES, "", name)
        if role is not None:
            yield from map(AccessRule.of, self._rules(role))

    def missing(self, user: Mapping[str, Any], rules: Sequence[AccessRule], namespace: str) -> list[AccessRule]:
        """Those of the rules that the user may not hand on, because they are more than the user has."""
        if MASTERS in (user.get("groups") or ()):
            return []
        held = list(self.rules_of(user, namespace))
        lacking, looked_at = [], 0
        for rule in rules:
            for attempt in rule.attempts(namespace):
                looked_at += 1
                if looked_at > _MOST_COVERED or not any(one.allows(attempt) for one in held):
                    lacking.append(rule)
                    break
        return lacking

    def _rules(self, role: Json) -> Iterator[Json]:
        aggregation = role.get("aggregationRule")
        if not isinstance(aggregation, dict):
            yield from dicts_in(role, "rules")
            return
        selectors = [msgspec.convert(one, LabelSelector) for one in dicts_in(aggregation, "clusterRoleSelectors")]
        for other in self._lookup.list(CLUSTER_ROLES):
            if "aggregationRule" not in other and _is_matched(selectors, other):
                yield from dicts_in(other, "rules")


def _is_matched(selectors: Sequence[LabelSelector], role: Json) -> bool:
    labels: Mapping[str, Any] = dict_or_empty(dict_or_empty(role.get("metadata")).get("labels"))
    return any(selector.matches(labels) for selector in selectors)


def _is_for(binding: Json, user: Mapping[str, Any], namespace: str) -> bool:
    name, groups = user.get("username"), user.get("groups") or ()
    for subject in dicts_in(binding, "subjects"):
        match subject.get("kind"):
            case "User":
                if subject.get("name") in (name, _ANY):
                    return True
            case "Group":
                if subject.get("name") in groups:
                    return True
            case "ServiceAccount":
                where = subject.get("namespace") or namespace
                if name == f"system:serviceaccount:{where}:{subject.get('name')}":
                    return True
    return False


def _quoted(values: frozenset[str]) -> str:
    return ", ".join(f'"{value}"' for value in sorted(values))


def _has(names: frozenset[str], name: str) -> bool:
    return name in names or _ANY in names


def _is_below(path: str, pattern: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith(_ANY) else path == pattern
