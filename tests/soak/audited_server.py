"""The sandbox's API server, which knows who asks: /via/NAME before a path is the scheduler of that name.

    python -m tests.soak.audited_server FOLDER PORT TOKEN

It handles one request after the other, so that it can tell exactly what was written by whom after another one had taken
the lease. Changes of the leader and writes of deposed ones are appended to FOLDER/audit.jsonl.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from pilotage.sandbox.http.exchange import Request, ServerResponse
from pilotage.sandbox.http.server import ApiServer
from pilotage.sandbox.http.watch import Watch
from tests.real_cluster.sandbox_server import main

_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_QUESTIONS = ("/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/")
"""Asked by a POST, and nothing is stored."""


class AuditedApiServer(ApiServer):
    audit = Path("audit.jsonl")
    _leader = ""

    def handle(self, request: Request) -> ServerResponse | Watch:
        instance = ""
        if request.path.startswith("/via/"):
            _, _, instance, rest = request.path.split("/", 3)
            request = replace(request, path=f"/{rest}")
        answer = super().handle(request)
        is_done = isinstance(answer, ServerResponse) and answer.status < 300
        if instance and is_done and request.method in _WRITES and not request.path.startswith(_QUESTIONS):
            self._note(instance, request)
        return answer

    def _note(self, instance: str, request: Request) -> None:
        if "/leases" in request.path:
            holder = json.loads(request.body)["spec"].get("holderIdentity")
            leader = instance if holder else ""
            if leader != self._leader:
                self._leader = leader
                self._write({"leads": leader})
        elif self._leader not in ("", instance) and not _is_about_the_lease(request):
            self._write({"deposed": instance, "leads": self._leader, "wrote": f"{request.method} {request.path}"})

    def _write(self, line: dict[str, Any]) -> None:
        with self.audit.open("a") as file:
            file.write(json.dumps(line) + "\n")


def _is_about_the_lease(request: Request) -> bool:
    """Who has given the lease back says so in an Event, when another one may have it already."""
    return request.path.endswith("/events") and b'"kind":"Lease"' in request.body.replace(b" ", b"")


if __name__ == "__main__":
    AuditedApiServer.audit = Path(sys.argv[1]) / "audit.jsonl"
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], AuditedApiServer))
