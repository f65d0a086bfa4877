"""How fast the sandbox's server takes objects over HTTP, and how much memory a large cluster in it takes.

    .venv/bin/python benchmarks/sandbox_http.py [--https] [--apply] [--nodes 5000] [--pods 100000] [--connections 8]

The server runs in a process of its own; this one is the client: several keep-alive connections that create pods one
after the other, and one watch. Printed are creations per second for small pods and for pods of 4 KB, watch events per
second (read from the history and live, while pods are created), the CPU time that the server takes for a creation, and
its memory with everything in it. `--https` is what users have: TLS, and a token with every request. `--apply` creates
by server-side apply, `--data-dir D` keeps everything on disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import ssl
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import uvloop

from pilotage.clock import SystemClock, perf_seconds
from pilotage.rng import seeded
from pilotage.sandbox.api import Api
from pilotage.sandbox.http.asgi import serve
from pilotage.sandbox.http.server import ApiServer
from pilotage.sandbox.http.tls import Tls, make_tls
from pilotage.sandbox.storage.journal import open_journal
from pilotage.sandbox.storage.store import Store

PODS = "/api/v1/namespaces/default/pods"
TOKEN = "a-token-of-the-usual-length-0123456789abcdef"
HISTORY = 100_000
POD_BYTES = 4096


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--data-dir", type=Path, help="a new directory: every write is then on disk before its answer")
    parser.add_argument("--https", action="store_true")
    parser.add_argument("--apply", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        tls = make_tls(Path(directory)) if options.https else None
        with server_process(options.data_dir, tls) as server:
            uvloop.run(measure(options, server, Client(server.port, options, tls)))


async def measure(options: argparse.Namespace, server: Server, client: Client) -> None:
    print(f"connections: {options.connections}")
    rate = await client.create("/api/v1/nodes", (node(at) for at in range(options.nodes)))
    print(f"nodes: {options.nodes:,} created, {rate:,.0f}/s")
    small = min(20_000, options.pods)
    before = server.cpu_seconds()
    rate = await client.create(PODS, (pod(f"small-{at}") for at in range(small)))
    each = (server.cpu_seconds() - before) / small * 1e6
    size = len(pod("small-0"))
    print(f"small pods ({size:,} bytes): {small:,} created, {rate:,.0f}/s, {each:.1f} us of server CPU each")
    start = await client.revision()
    large = options.pods - small
    live, rate = await asyncio.gather(
        client.watch(start, large), client.create(PODS, (pod(f"large-{at}", POD_BYTES) for at in range(large)))
    )
    print(f"4 KB pods with a live watch: {large:,} created, {rate:,.0f}/s; watched {live:,.0f} events/s")
    recent = min(large, HISTORY // 2)
    past = await client.watch(start + large - recent, recent)
    print(f"watch of the past: {recent:,} events of 4 KB, {past:,.0f}/s")
    print(f"memory of the server: {server.memory() / 2**20:,.0f} MiB")


class Client:
    """Bare HTTP/1.1, so that the client is cheaper than the server that is measured."""

    def __init__(self, port: int, options: argparse.Namespace, tls: Tls | None) -> None:
        self._port = port
        self._connections = options.connections
        self._applies = options.apply
        self._tls = None if tls is None else ssl.create_default_context(cadata=tls.authority.decode())
        self._token = b"" if tls is None else f"Authorization: Bearer {TOKEN}\r\n".encode()

    async def _open(self, limit: int = 2**16) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port, ssl=self._tls, limit=limit)

    async def create(self, path: str, bodies: Iterable[bytes]) -> float:
        """Objects per second."""
        waiting = iter([(self._creation(path, body), body) for body in bodies])
        count = 0
        start = perf_seconds()

        async def work() -> None:
            nonlocal count
            reader, writer = await self._open()
            for head, body in waiting:
                writer.write(head + body)
                status, _ = await _answer(reader)
                if status != 201:
                    sys.exit(f"the server answered {status}")
                count += 1
            writer.close()

        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._connections):
                tasks.create_task(work())
        return count / (perf_seconds() - start)

    def _creation(self, path: str, body: bytes) -> bytes:
        """The head of a request."""
        head, content = f"POST {path}", "application/json"
        if self._applies:
            head = f"PATCH {path}/{json.loads(body)['metadata']['name']}?fieldManager=benchmark"
            content = "application/apply-patch+yaml"
        head += f" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {content}\r\nContent-Length: {len(body)}\r\n"
        return head.encode() + self._token + b"\r\n"

    async def revision(self) -> int:
        reader, writer = await self._open()
        writer.write(f"GET {PODS}?limit=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode() + self._token + b"\r\n")
        _, body = await _answer(reader)
        writer.close()
        return int(json.loads(body)["metadata"]["resourceVersion"])

    async def watch(self, since: int, count: int) -> float:
        """Events per second from the first to the last of `count`."""
        reader, writer = await self._open(limit=2**24)
        query = f"watch=1&resourceVersion={since}"
        writer.write(f"GET {PODS}?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode() + self._token + b"\r\n")
        await reader.readuntil(b"\r\n\r\n")
        seen, start = 0, perf_seconds()
        while seen < count:
            chunk = await reader.read(2**20)
            if not chunk:
                sys.exit("the watch ended too early")
            seen += chunk.count(b'{"type":"')
        writer.close()
        return seen / (perf_seconds() - start)


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    at = head.index(b"content-length: ") + 16
    body = await reader.readexactly(int(head[at : head.index(b"\r", at)]))
    return int(head[9:12]), body


def pod(name: str, size: int = 0) -> bytes:
    container: dict[str, Any] = {
        "name": "app",
        "image": "registry.example/app:1.2.3",
        "resources": {"requests": {"cpu": "100m", "memory": "200Mi"}},
    }
    labels = {"app": "web", "pod-template-hash": "6b7f6b7f6b"}
    obj: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}}
    obj["spec"] = {"containers": [container]}
    if size:
        container["env"] = [{"name": f"SETTING_{at}", "value": "a value of usual length"} for at in range(20)]
        missing = size - len(json.dumps(obj))
        obj["metadata"]["annotations"] = {"example.com/note": "x" * max(0, missing)}
    return json.dumps(obj).encode()


def node(at: int) -> bytes:
    capacity = {"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "500Gi"}
    images = [{"names": [f"registry.example/image-{n}:1"], "sizeBytes": 10**8} for n in range(20)]
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    status = {"capacity": capacity, "allocatable": capacity, "images": images, "conditions": conditions}
    labels = {"kubernetes.io/hostname": f"node-{at}", "topology.kubernetes.io/zone": f"zone-{at % 3}"}
    metadata = {"name": f"node-{at:05}", "labels": labels}
    return json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}).encode()


@dataclass(frozen=True)
class Server:
    """A process of its own."""

    port: int
    pid: int

    def memory(self) -> int:
        """Resident bytes."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024

    def cpu_seconds(self) -> float:
        ticks = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def server_process(data_dir: Path | None, tls: Tls | None) -> Iterator[Server]:
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=run_server, args=(there, data_dir, tls), daemon=True)
    process.start()
    assert process.pid is not None
    try:
        yield Server(here.recv(), process.pid)
    finally:
        process.terminate()
        process.join()


def run_server(parent: Connection, data_dir: Path | None, tls: Tls | None) -> None:
    async def serving() -> None:
        clock = SystemClock()
        store = Store(history=HISTORY, journal=open_journal(data_dir) if data_dir else None)
        server = ApiServer(Api(store, clock=clock, rng=seeded(1)), token=TOKEN if tls else None, clock=clock)
        async with serve(server, tls=tls) as running:
            parent.send(running.port)
            await asyncio.Event().wait()

    uvloop.run(serving())


if __name__ == "__main__":
    main()
