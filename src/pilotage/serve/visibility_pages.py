"""The visibility API of workload queueing behind the API server's aggregation layer (APIService).

The aggregator asks for discovery to see whether we live, and for OpenAPI documents to put them into its own; we have no
schemas to offer, and saying so in its words keeps its log quiet.
"""

from __future__ import annotations

from typing import Any, Final

from pilotage.jobs.visibility import VisibilityApi
from pilotage.jobs.visibility_discovery import GROUP, aggregated_document, group_document
from pilotage.serve.page import Page, PageAnswer, PageRequest, json_answer

_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_INFO: Final = {"title": "Pilotage visibility", "version": "v1beta2"}


def visibility_pages(api: VisibilityApi) -> dict[str, Page]:
    def answer(request: PageRequest) -> PageAnswer:
        query = {name: request.first(name) for name in request.query}
        code, document = api.answer(request.method, request.path, query)
        return json_answer(document, code)

    return {
        "/apis": _groups,
        f"/apis/{GROUP}": answer,
        f"/apis/{GROUP}/": answer,
        "/openapi/v2": _always({"swagger": "2.0", "info": _INFO, "paths": {}}),
        "/openapi/v3": _always({"paths": {}}),
    }


def _groups(request: PageRequest) -> PageAnswer:
    if _AGGREGATED in request.headers.get("accept", "").replace(" ", ""):
        head = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}}
        found = json_answer({**head, "items": [aggregated_document()]})
        return PageAnswer(found.status, found.body, _AGGREGATED)
    return json_answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group_document()]})


def _always(document: dict[str, Any]) -> Page:
    def answer(request: PageRequest) -> PageAnswer:
        return json_answer(document)

    return answer
