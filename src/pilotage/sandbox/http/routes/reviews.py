"""Who am I and what may I do: questions put as objects, which are answered and never stored.

Without roles the sandbox has one user, who may do everything. A token is right or wrong; a right one belongs to the
administrator, a ServiceAccount, or a user that was named at the start.
"""

from __future__ import annotations

from typing import Any, Final

from pilotage.sandbox.http.access import Access, attempt_of_review
from pilotage.sandbox.http.account_tokens import AccountTokens
from pilotage.sandbox.http.bodies import object_in
from pilotage.sandbox.http.exchange import Request, ServerResponse, json_response
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.operations.policies import USER
from pilotage.sandbox.rules.json_fields import dict_or_empty
from pilotage.sandbox.rules.rbac import AccessRule

_ALLOWED_TO_ALL: Final = "the sandbox allows everything to holders of its token"


class Reviews:
    """The kinds that can only be created."""

    def __init__(self, access: Access, accounts: AccountTokens) -> None:
        self._access = access
        self._accounts = accounts

    def handles(self, resource_type: ResourceType) -> bool:
        return resource_type.group in ("authentication.k8s.io", "authorization.k8s.io")

    def answer(self, request: Request, resource_type: ResourceType) -> ServerResponse:
        review = object_in(request)
        review["kind"] = resource_type.kind
        review["apiVersion"] = resource_type.api_version
        review.setdefault("metadata", {"creationTimestamp": None})
        spec = dict_or_empty(review.get("spec"))
        review["status"] = self._status(resource_type.kind, spec, dict(request.user or USER))
        return json_response(review, 201)

    def _status(self, kind: str, spec: dict[str, Any], user: dict[str, Any]) -> dict[str, Any]:
        match kind:
            case "TokenReview":
                return self._token_status(spec)
            case "SelfSubjectReview":
                return {"userInfo": user}
            case "SelfSubjectRulesReview":
                rules = self._access.rules_for(user, str(spec.get("namespace") or "default"))
                resources = [_resource_rule(rule) for rule in rules if rule.resources]
                paths = [{"verbs": sorted(r.verbs), "nonResourceURLs": sorted(r.paths)} for r in rules if r.paths]
                return {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}
            case "SelfSubjectAccessReview":
                return self._verdict(user, spec)
            case _:
                groups = [str(one) for one in spec.get("groups") or ()]
                return self._verdict({"username": str(spec.get("user") or ""), "groups": groups}, spec)

    def _verdict(self, user: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
        is_allowed = self._access.allows(user, attempt_of_review(spec))
        return {"allowed": is_allowed, **({} if self._access.is_on else {"reason": _ALLOWED_TO_ALL})}

    def _token_status(self, spec: dict[str, Any]) -> dict[str, Any]:
        token, audiences = spec.get("token"), spec.get("audiences") or []
        account = self._accounts.user_of(token, audiences) if isinstance(token, str) else None
        if account is not None:
            own = self._accounts.audiences_of(str(token))
            shown = [one for one in own if not audiences or one in audiences]
            return {"authenticated": True, "user": account, "audiences": shown}
        user = self._access.user_by_token(str(token or ""))
        if user is not None:
            return {"authenticated": True, "user": user}
        return {"authenticated": False, "error": "the token is not that of this sandbox"}


def _resource_rule(rule: AccessRule) -> dict[str, Any]:
    names = {"resourceNames": sorted(rule.names)} if rule.names else {}
    return {"verbs": sorted(rule.verbs), "apiGroups": sorted(rule.groups), "resources": sorted(rule.resources), **names}
