from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from pilotage.assembly import WATCHED
from pilotage.cli.errors import CommandError, ExitCode
from pilotage.cli.run import check_server
from pilotage.kube.client import KubeClient
from pilotage.kube.connection import Connection
from pilotage.kube.credentials import StaticCredentials
from pilotage.kube.tls import TlsSettings
from pilotage.kube.transport import Response, TransportError
from pilotage.model import KINDS

CONNECTION = Connection("http://127.0.0.1:1", TlsSettings(), StaticCredentials(), origin="kubeconfig k, context 'c'")


class OldServer:
    """Knows some kinds, and answers with a given code for others."""

    def __init__(self, codes: Mapping[str, int]) -> None:
        self.codes = codes
        self.asked: list[str] = []

    async def request(self, method: str, path: str, **_: object) -> Response:
        self.asked.append(path)
        if path == "/version":
            return Response(200, {}, b'{"gitVersion": "v1.20.0"}')
        code = self.codes.get(path, 200)
        if code == 0:
            raise TransportError("no answer from http://127.0.0.1:1", sent=False)
        if code == 200:
            return Response(200, {}, b'{"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []}')
        status = {"kind": "Status", "reason": "Some", "message": "not for you", "code": code}
        return Response(code, {}, json.dumps(status).encode())


async def test_everything_that_is_watched_is_listed_once() -> None:
    server = OldServer({})
    version = await check_server(KubeClient(server), CONNECTION)
    assert version.git_version == "v1.20.0"
    assert server.asked == ["/version", *(KINDS[resource].path() for resource in WATCHED)]


async def test_a_kind_that_the_server_does_not_have_is_no_obstacle() -> None:
    server = OldServer({KINDS[WATCHED[-1]].path(): 404})
    await check_server(KubeClient(server), CONNECTION)


@pytest.mark.parametrize("code", [401, 403, 500])
async def test_a_refusal_says_who_and_where(code: int) -> None:
    server = OldServer({"/api/v1/nodes": code})
    with pytest.raises(CommandError, match=r"refuses us: not for you .*kubeconfig k, context 'c'") as refused:
        await check_server(KubeClient(server), CONNECTION)
    assert refused.value.code is ExitCode.UNREACHABLE


async def test_no_answer_is_told() -> None:
    with pytest.raises(CommandError, match="no answer from") as refused:
        await check_server(KubeClient(OldServer({"/api/v1/pods": 0})), CONNECTION)
    assert refused.value.code is ExitCode.UNREACHABLE
