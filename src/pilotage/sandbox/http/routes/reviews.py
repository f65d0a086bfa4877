"""Who am I and what may I do: the sandbox has one user, who may do everything.

Reviews are questions put as objects: they are answered, never stored. A token is right or wrong; a right one belongs to
the administrator.
"""

from __future__ import annotations

from typing import Any, Final

from pilotage.sandbox.http.bodies import object_in
from pilotage.sandbox.http.exchange import Request, ServerResponse, json_response
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.operations.policies import USER

_ANONYMOUS: Final = "system:anonymous"
_UNAUTHENTICATED: Final = "system:unauthenticated"
_ALL: Final = ["*"]
_REASON: Final = "the sandbox allows everything to whoever has its token"


class Reviews:
    """The kinds that can only be created."""

    def __init__(self, token: str | None) -> None:
        self._token = token

    def handles(self, resource_type: ResourceType) -> bool:
        return resource_type.group in ("authentication.k8s.io", "authorization.k8s.io")

    def answer(self, request: Request, resource_type: ResourceType) -> ServerResponse:
        review = object_in(request)
        review["kind"] = resource_type.kind
        review["apiVersion"] = resource_type.api_version
        review.setdefault("metadata", {"creationTimestamp": None})
        review["status"] = self._status(resource_type.kind, review)
        return json_response(review, 201)

    def _status(self, kind: str, review: dict[str, Any]) -> dict[str, Any]:
        match kind:
            case "TokenReview":
                spec = review.get("spec")
                token = spec.get("token") if isinstance(spec, dict) else None
                if self._token is None or token == self._token:
                    return {"authenticated": True, "user": USER}
                return {"authenticated": False, "error": "the token is not that of this sandbox"}
            case "SelfSubjectReview":
                return {"userInfo": USER}
            case "SelfSubjectRulesReview":
                rules = [{"verbs": _ALL, "apiGroups": _ALL, "resources": _ALL}]
                paths = [{"verbs": _ALL, "nonResourceURLs": _ALL}]
                return {"resourceRules": rules, "nonResourceRules": paths, "incomplete": False}
            case "SubjectAccessReview" | "LocalSubjectAccessReview" if _is_about_a_stranger(review):
                return {"allowed": False, "reason": _REASON}
            case _:
                return {"allowed": True, "reason": _REASON}


def _is_about_a_stranger(review: dict[str, Any]) -> bool:
    """Is the question what somebody may do who has not shown the token?"""
    spec = review.get("spec")
    fields = spec if isinstance(spec, dict) else {}
    groups = fields.get("groups") or []
    return fields.get("user") == _ANONYMOUS or _UNAUTHENTICATED in groups
