"""The visibility API of workload queueing as a group of the sandbox's API server."""

from __future__ import annotations

from pilotage.jobs.visibility import VisibilityApi
from pilotage.jobs.visibility_discovery import GROUP, aggregated_document, group_document
from pilotage.sandbox.http.exchange import Request, Response, json_response
from pilotage.sandbox.http.extensions import ExtensionGroup


def visibility_group(api: VisibilityApi) -> ExtensionGroup:
    def answer(request: Request) -> Response:
        code, document = api.answer(request.method, request.path, request.query)
        return json_response(document, code)

    return ExtensionGroup(GROUP, group_document(), aggregated_document(), answer)
