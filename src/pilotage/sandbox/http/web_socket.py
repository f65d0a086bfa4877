"""Watches over WebSockets: what browsers can open and fabric8's client tries first.

Each event is a text message. Any other request that asks for an upgrade is answered as if it had not, as the API server
does. Pages in browsers cannot send headers: they may give the token as a subprotocol
(`base64url.bearer.authorization.k8s.io.TOKEN`, the token in base64url), beside one that the server then chooses.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final

from pilotage.sandbox.http.exchange import ServerResponse
from pilotage.sandbox.http.watch import Watch

_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_BEARER: Final = "base64url.bearer.authorization.k8s.io."
_NORMAL_CLOSURE: Final = 1000


def web_socket_protocol(**parts: Any) -> asyncio.Protocol:
    """uvicorn's protocol for connections that were upgraded; most sandboxes never see one."""
    from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

    protocol: asyncio.Protocol = WSProtocol(**parts)
    return protocol


def token_among(subprotocols: Sequence[str]) -> str | None:
    """The token that a page in a browser sends."""
    for name in subprotocols:
        if name.startswith(_BEARER):
            encoded = name.removeprefix(_BEARER)
            try:
                return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode("latin-1")
            except (ValueError, binascii.Error):
                return None
    return None


async def send_watch(receive: _Receive, send: _Send, watch: Watch, subprotocols: Sequence[str]) -> None:
    """The events of a watch, until it or the client ends."""
    chosen = next((name for name in subprotocols if not name.startswith(_BEARER)), None)
    await send({"type": "websocket.accept", "subprotocol": chosen})
    async with asyncio.TaskGroup() as tasks:
        listener = tasks.create_task(_close_when_gone(receive, watch), name="sandbox-watch-client")
        async for chunk in watch:
            for event in chunk.decode().split("\n"):
                if event:
                    await send({"type": "websocket.send", "text": event})
        is_gone = listener.done()
        listener.cancel()
    if not is_gone:
        await send({"type": "websocket.close", "code": _NORMAL_CLOSURE})


async def send_plain(send: _Send, response: ServerResponse) -> None:
    """An answer instead of an upgrade."""
    headers = [(b"content-type", response.content_type.encode()), (b"content-length", b"%d" % len(response.body))]
    headers += [(name.encode("latin-1"), value.encode("utf-8")) for name, value in response.headers]
    await send({"type": "websocket.http.response.start", "status": response.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": response.body})


async def _close_when_gone(receive: _Receive, watch: Watch) -> None:
    while (await receive())["type"] != "websocket.disconnect":
        pass
    watch.close()
