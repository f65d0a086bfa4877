"""The sandbox's API server in a process of its own that can be ended and started again with the same objects.

    python -m tests.real_cluster.sandbox_server FOLDER PORT TOKEN

FOLDER holds the server's certificate and key and its data. There are no kubelets and no controllers, as at the real
API server in these tests.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pilotage.clock import SystemClock
from pilotage.rng import fresh_seed, seeded
from pilotage.sandbox.api import Api
from pilotage.sandbox.http.asgi import serve
from pilotage.sandbox.http.server import ApiServer
from pilotage.sandbox.http.tls import Tls
from pilotage.sandbox.storage.journal import open_journal
from pilotage.sandbox.storage.store import Store

HISTORY = 100_000


async def main(folder: Path, port: int, token: str, server_type: type[ApiServer] = ApiServer) -> None:
    clock = SystemClock()
    journal = open_journal(folder / "data")
    api = Api(Store(history=HISTORY, journal=journal), clock=clock, rng=seeded(fresh_seed()))
    tls = Tls(folder / "server.crt", folder / "server.key", (folder / "ca.crt").read_bytes())
    async with serve(server_type(api, token=token, clock=clock), "127.0.0.1", port, tls):
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
