"""A real proxy on loopback: CONNECT and forwarded requests, or SOCKS5; with a password if it is given one."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

REFUSAL = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"


class LittleProxy:
    """What it was asked for is in `asked`: targets, or first lines of requests that it sent on."""

    def __init__(self, *, user: str = "", is_socks: bool = False) -> None:
        """`user` as "name:password"."""
        self.asked: list[str] = []
        self.port = 0
        self._user = user
        self._is_socks = is_socks

    @property
    def url(self) -> str:
        user = f"{self._user}@" if self._user else ""
        return f"{'socks5' if self._is_socks else 'http'}://{user}127.0.0.1:{self.port}"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[LittleProxy]:
        server = await asyncio.start_server(self._serve_socks if self._is_socks else self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    @contextmanager
    def in_a_thread(self) -> Iterator[LittleProxy]:
        """For tests without a loop of their own."""
        ready, ended = threading.Event(), threading.Event()

        async def serve() -> None:
            async with self.running():
                ready.set()
                await asyncio.to_thread(ended.wait)

        thread = threading.Thread(target=lambda: asyncio.run(serve()))
        thread.start()
        ready.wait()
        try:
            yield self
        finally:
            ended.set()
            thread.join()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            method, target, _ = head.partition(b"\r\n")[0].decode().split(" ")
            self.asked.append(f"{method} {target}")
            if self._user and f"Basic {base64.b64encode(self._user.encode()).decode()}".encode() not in head:
                writer.write(REFUSAL)
                return
            if method == "CONNECT":
                host, _, port = target.rpartition(":")
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await self._relay(reader, writer, host.strip("[]"), int(port), b"")
            else:
                host, _, port = target.removeprefix("http://").partition("/")[0].partition(":")
                await self._relay(reader, writer, host, int(port), head)
        writer.close()

    async def _serve_socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            methods = await reader.readexactly((await reader.readexactly(2))[1])
            method = 2 if self._user else 0
            writer.write(bytes([5, method if method in methods else 0xFF]))
            if method not in methods or (self._user and not await self._is_welcome(reader, writer)):
                writer.close()
                return
            _, _, _, kind = await reader.readexactly(4)
            raw = await reader.readexactly((await reader.readexactly(1))[0] if kind == 3 else 4)
            host = raw.decode() if kind == 3 else ".".join(map(str, raw))
            port = int.from_bytes(await reader.readexactly(2), "big")
            self.asked.append(f"{host}:{port}")
            if host == "forbidden.example":
                writer.write(bytes([5, 2, 0, 1, 0, 0, 0, 0, 0, 0]))
            else:
                writer.write(bytes([5, 0, 0, 1, 127, 0, 0, 1, 0, 0]))
                await self._relay(reader, writer, host, port, b"")
        writer.close()

    async def _is_welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        name = await reader.readexactly((await reader.readexactly(2))[1])
        password = await reader.readexactly((await reader.readexactly(1))[0])
        is_welcome = f"{name.decode()}:{password.decode()}" == self._user
        writer.write(bytes([1, 0 if is_welcome else 1]))
        return is_welcome

    async def _relay(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int, begun: bytes
    ) -> None:
        there, back = await asyncio.open_connection(host, port)
        back.write(begun)

        async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                while data := await source.read(1 << 16):
                    sink.write(data)
                    await sink.drain()
            sink.close()

        await asyncio.gather(copy(reader, back), copy(there, writer))
