"""A sandbox server in a process of its own, without nodes, controllers and scheduler.

    python -m tests.e2e.bare_server KUBECONFIG [tls]

It writes the kubeconfig when it serves and ends when its standard input is closed.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pilotage.clock import SystemClock
from pilotage.rng import fresh_token, seeded
from pilotage.sandbox.api import Api
from pilotage.sandbox.http.asgi import serve
from pilotage.sandbox.http.kubeconfig import write_kubeconfig
from pilotage.sandbox.http.server import ApiServer
from pilotage.sandbox.http.tls import make_tls
from pilotage.sandbox.storage.store import Store


async def main(kubeconfig: Path, *, with_tls: bool) -> None:
    clock, token = SystemClock(), fresh_token()
    tls = make_tls(kubeconfig.parent / "tls") if with_tls else None
    server = ApiServer(Api(Store(history=100_000), clock=clock, rng=seeded(1)), token=token, clock=clock)
    async with serve(server, tls=tls) as serving:
        write_kubeconfig(kubeconfig, serving.url, token, tls.authority if tls else None)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


@contextmanager
def bare_server(directory: Path, *arguments: str) -> Iterator[Path]:
    """Run the server; yields the path of its kubeconfig."""
    kubeconfig = directory / "kubeconfig"
    command = [sys.executable, "-m", "tests.e2e.bare_server", str(kubeconfig), *arguments]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root) as process:
        assert process.stdin and process.stdout
        assert process.stdout.readline() == b"ready\n"
        try:
            yield kubeconfig
        finally:
            process.stdin.close()
            assert process.wait(timeout=60) == 0


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), with_tls="tls" in sys.argv[2:]))
