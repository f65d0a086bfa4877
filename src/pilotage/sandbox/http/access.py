"""Who asks, and whether they may: authentication by token, impersonation, and roles where `--rbac` asks for them.

Without roles everybody who has a token may do everything, and who acts as another one is warned that nobody asks what
that one may do. With them all but the administrator (tokens of `--user`, of ServiceAccounts, or whoever an
administrator impersonates) may do what roles allow. Questions about this (SubjectAccessReview and its like) get the
answer that a request would get.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pilotage.sandbox.api import Api
from pilotage.sandbox.errors import ApiError, bad_request, forbidden
from pilotage.sandbox.http.account_tokens import AccountTokens
from pilotage.sandbox.http.bodies import object_in, warning_headers
from pilotage.sandbox.http.exchange import Request, ServerResponse
from pilotage.sandbox.http.routes.documents import HEALTH_PATHS
from pilotage.sandbox.http.routes.paths import Paths, Target
from pilotage.sandbox.http.watch import Watch
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.operations.lookup import CachedLookup
from pilotage.sandbox.operations.policies import USER
from pilotage.sandbox.rules.json_fields import Json, dict_or_empty, dicts_in
from pilotage.sandbox.rules.rbac import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    MASTERS,
    ROLE_BINDINGS,
    ROLES,
    AccessAttempt,
    AccessRule,
    Roles,
)

AUTHENTICATED: Final = "system:authenticated"
IMPERSONATE: Final = "impersonate-"
_SEPARATOR: Final = "\n"
_VERBS: Final[Mapping[str, str]] = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_CONNECTED: Final = frozenset({"attach", "exec", "portforward"})
"""Whoever connects to a container must be allowed to create that, whatever the method."""
_EVERYBODY_MAY: Final = "without --rbac this sandbox asks no roles: everybody may do everything, whoever they act as"
_VERBS_THAT_GRANT: Final = frozenset({"create", "patch", "update"})
_GRANTING: Final = frozenset({ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS})


class Access:
    """The door of one server."""

    def __init__(
        self, api: Api, token: str | None, accounts: AccountTokens, paths: Paths, users: Mapping[str, Json] | None
    ) -> None:
        """`users` by token; None: no roles are asked, and holders of any good token may do everything."""
        self.is_on = users is not None
        self._api = api
        self._token = token
        self._accounts = accounts
        self._paths = paths
        self._users = {} if users is None else users
        self._roles = Roles(CachedLookup(api.store))

    def user_of(self, request: Request) -> Json | None:
        """Who asks; None if nobody who is known does. ApiError if they may not act as whom they want to be."""
        user = self.user_by_token(_bearer(request))
        wanted = None if user is None else _impersonated(request)
        if user is None or wanted is None:
            return user
        if not self.is_on:
            return wanted
        for resource, names in (("users", [wanted["username"]]), ("groups", wanted["groups"])):
            for name in names:
                attempt = AccessAttempt("impersonate", "", resource, name)
                if name != AUTHENTICATED and not self._roles.allows(user, attempt):
                    raise forbidden(resource, name, attempt.sentence(user["username"]))
        return wanted

    def user_by_token(self, token: str) -> Json | None:
        if self._token is None or hmac.compare_digest(token.encode(), self._token.encode()):
            return USER
        if token.count(".") == 2:
            account = self._accounts.user_of(token)
            if account is not None:
                return account
        found = [user for known, user in self._users.items() if hmac.compare_digest(known.encode(), token.encode())]
        return found[0] if found else None

    def is_open(self, request: Request) -> bool:
        return request.path in HEALTH_PATHS

    def check(self, request: Request) -> None:
        """ApiError if the user of the request may not do what it asks for."""
        user = request.user
        if user is None or not self.is_on or MASTERS in (user.get("groups") or ()):
            return
        target = self._paths.target_of(request.path)
        attempt = attempt_of(request, self._paths)
        if not self._roles.allows(user, attempt):
            raise _forbidden(attempt, user)
        if target is not None and target.resource_type.storage in _GRANTING and attempt.verb in _VERBS_THAT_GRANT:
            self._check_grant(request, target, user)

    def warned(self, request: Request, answer: ServerResponse | Watch) -> ServerResponse | Watch:
        """The answer, with a warning for who acts as another one where nobody asks what that one may do."""
        if self.is_on or request.user is None or not isinstance(answer, ServerResponse) or not _wants_another(request):
            return answer
        return msgspec.structs.replace(answer, headers=(*answer.headers, *warning_headers([_EVERYBODY_MAY])))

    def allows(self, user: Mapping[str, Any], attempt: AccessAttempt) -> bool:
        """The answer to a review."""
        if not self.is_on:
            return "system:unauthenticated" not in (user.get("groups") or ()) and user.get("username") != _ANONYMOUS
        return self._roles.allows(user, attempt)

    def rules_for(self, user: Mapping[str, Any], namespace: str) -> list[AccessRule]:
        if not self.is_on or MASTERS in (user.get("groups") or ()):
            star = frozenset("*")
            everything = (star, star, star, frozenset[str](), frozenset[str]())
            paths = (star, frozenset[str](), frozenset[str](), frozenset[str](), star)
            return [AccessRule(*everything), AccessRule(*paths)]
        return list(self._roles.rules_of(user, namespace))

    def _check_grant(self, request: Request, target: Target, user: Mapping[str, Any]) -> None:
        """Nobody hands on more than they have, unless they may `escalate` (roles) or `bind` (bindings)."""
        if request.method == "PATCH":
            problem = "a patch of it is for administrators, as what it grants is not in it; replace the whole object"
            raise forbidden(target.resource_type.qualified, target.name, problem)
        obj = object_in(request)
        resource_type, namespace = target.resource_type, target.namespace or ""
        name = str(dict_or_empty(obj.get("metadata")).get("name") or target.name)
        is_role = resource_type.storage in (ROLES, CLUSTER_ROLES)
        reference = dict_or_empty(obj.get("roleRef"))
        if is_role:
            may = AccessAttempt("escalate", resource_type.group, resource_type.plural, name, namespace)
            rules = [AccessRule.of(rule) for rule in dicts_in(obj, "rules")]
        else:
            kind = "roles" if reference.get("kind") == "Role" else "clusterroles"
            may = AccessAttempt("bind", resource_type.group, kind, str(reference.get("name")), namespace)
            rules = list(self._roles.rules_in(reference, namespace))
        if self._roles.allows(user, may):
            return
        missing = self._roles.missing(user, rules, namespace)
        if missing:
            groups = ", ".join(f'"{group}"' for group in user.get("groups") or ())
            problem = (
                f'user "{user["username"]}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently '
                "held:\n" + "\n".join(rule.shown() for rule in missing)
            )
            raise forbidden(resource_type.qualified, name, problem)


_ANONYMOUS: Final = "system:anonymous"


def attempt_of_review(spec: Mapping[str, Any]) -> AccessAttempt:
    """What a SubjectAccessReview asks about."""
    resource, path = dict_or_empty(spec.get("resourceAttributes")), dict_or_empty(spec.get("nonResourceAttributes"))
    if path:
        return AccessAttempt(str(path.get("verb", "")), path=str(path.get("path", "")))
    below = resource.get("subresource")
    name = str(resource.get("resource", "")) + (f"/{below}" if below else "")
    given = {field: str(resource.get(field) or "") for field in ("verb", "group", "name", "namespace")}
    return AccessAttempt(given["verb"], given["group"], name, given["name"], given["namespace"])


def attempt_of(request: Request, paths: Paths) -> AccessAttempt:
    """What a request wants to do."""
    try:
        target = paths.target_of(request.path)
    except ApiError:
        target = None
    if target is None:
        return AccessAttempt(request.method.lower() if request.method != "HEAD" else "get", path=request.path)
    resource_type: ResourceType = target.resource_type
    resource = f"{resource_type.plural}/{target.subresource}" if target.subresource else resource_type.plural
    verb = "create" if target.subresource in _CONNECTED else _VERBS.get(request.method, "get")
    if not target.name:
        if verb == "get":
            verb = "watch" if request.flag("watch") else "list"
        elif verb == "delete":
            verb = "deletecollection"
    return AccessAttempt(verb, resource_type.group, resource, target.name, target.namespace or "")


def _forbidden(attempt: AccessAttempt, user: Mapping[str, Any]) -> ApiError:
    problem = attempt.sentence(str(user["username"]))
    if attempt.path:
        return ApiError(403, "Forbidden", f"forbidden: {problem}", {})
    resource = attempt.resource.partition("/")[0]
    qualified = f"{resource}.{attempt.group}" if attempt.group else resource
    if attempt.name:
        return forbidden(qualified, attempt.name, problem)
    details = {"kind": resource, **({"group": attempt.group} if attempt.group else {})}
    return ApiError(403, "Forbidden", f"{qualified} is forbidden: {problem}", details)


def _bearer(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token if scheme == "Bearer" else ""


def _wants_another(request: Request) -> bool:
    return any(name.startswith(IMPERSONATE) for name in request.headers)


def _impersonated(request: Request) -> Json | None:
    name = request.headers.get(f"{IMPERSONATE}user")
    if not name:
        if _wants_another(request):
            raise bad_request("requested impersonation without a user: only groups, a uid or extra fields are named")
        return None
    groups = [one for one in request.headers.get(f"{IMPERSONATE}group", "").split(_SEPARATOR) if one]
    if name.startswith("system:serviceaccount:") and not groups:
        namespace = name.split(":")[2]
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    if name != _ANONYMOUS and AUTHENTICATED not in groups:
        groups.append(AUTHENTICATED)
    uid = request.headers.get(f"{IMPERSONATE}uid")
    return {"username": name, "groups": groups, **({"uid": uid} if uid else {})}
