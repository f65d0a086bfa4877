"""Over WebSockets: watches, which browsers can open and fabric8's client tries first, logs, and commands in containers.

Each event of a watch is a text message. What a command reads and writes is a channel each, named by the first byte of a
message: 0 standard input, 1 output, 2 error, 3 how it ended (`v5.channel.k8s.io` and older; in base64 with the channel
as a digit, for who cannot read bytes). Any other request that asks for an upgrade is answered as if it had not, as the
API server does. Pages in browsers cannot send headers: they may give the token as a subprotocol
(`base64url.bearer.authorization.k8s.io.TOKEN`, the token in base64url), beside one that the server then chooses.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final

from pilotage.clock import Clock
from pilotage.sandbox.http.exchange import RemoteCommand, ServerResponse, encode_json
from pilotage.sandbox.http.watch import Watch

_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_BEARER: Final = "base64url.bearer.authorization.k8s.io."
_NORMAL_CLOSURE: Final = 1000
_OUTPUT, _ERROR, _STATUS = 1, 2, 3
_BASE64: Final = "base64."
_LOG_PROTOCOLS: Final = frozenset({"binary.k8s.io", "base64.binary.k8s.io"})
_IN_WORDS: Final = (None, "channel.k8s.io", "base64.channel.k8s.io")
_COMMAND_PROTOCOLS: Final = frozenset(
    {"v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io", "channel.k8s.io", "base64.channel.k8s.io"}
)
_LONGEST_COMMAND_SECONDS: Final = 24 * 3600.0


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


async def send_log(send: _Send, response: ServerResponse, subprotocols: Sequence[str]) -> None:
    """A log, in one message."""
    chosen = next((name for name in subprotocols if name in _LOG_PROTOCOLS), None)
    await send({"type": "websocket.accept", "subprotocol": chosen})
    if response.body:
        in_base64 = chosen is not None and chosen.startswith(_BASE64)
        await send(_message(base64.b64encode(response.body) if in_base64 else response.body, is_text=in_base64))
    await send({"type": "websocket.close", "code": _NORMAL_CLOSURE})


async def send_command(
    receive: _Receive, send: _Send, command: RemoteCommand, subprotocols: Sequence[str], clock: Clock
) -> None:
    """What a command prints, when it prints it, and how it ends, unless the client ends first."""
    chosen = next((name for name in subprotocols if name in _COMMAND_PROTOCOLS), None)
    await send({"type": "websocket.accept", "subprotocol": chosen})
    in_base64 = chosen is not None and _BASE64 in chosen

    async def say(channel: int, text: bytes) -> None:
        message = b"%d%b" % (channel, base64.b64encode(text)) if in_base64 else bytes([channel]) + text
        await send(_message(message, is_text=in_base64))

    async def run() -> None:
        begin = clock.monotonic()
        for at, text in (*command.printed, (command.seconds, "")):
            wait = begin + at - clock.monotonic()
            if wait > 0:
                await clock.sleep(min(wait, _LONGEST_COMMAND_SECONDS))
            if text:
                await say(_OUTPUT, text.encode())
        if command.problem:
            await say(_ERROR, command.problem.encode())
        ending = _ending(command.exit_code, in_words=chosen in _IN_WORDS)
        if ending:
            await say(_STATUS, ending)

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(run(), name="sandbox-command")
        listener = tasks.create_task(_wait_for_end(receive), name="sandbox-command-client")
        await asyncio.wait((running, listener), return_when=asyncio.FIRST_COMPLETED)
        is_gone = listener.done()
        listener.cancel()
        running.cancel()
    if not is_gone:
        await send({"type": "websocket.close", "code": _NORMAL_CLOSURE})


def _ending(exit_code: int, *, in_words: bool) -> bytes:
    """How a command ended: a Status or, in the oldest protocol, a sentence if it failed."""
    sentence = f"command terminated with non-zero exit code: exit status {exit_code}"
    if in_words:
        return sentence.encode() if exit_code else b""
    if not exit_code:
        return encode_json({"metadata": {}, "status": "Success"})
    causes = [{"reason": "ExitCode", "message": str(exit_code)}]
    reason = {"reason": "NonZeroExitCode", "details": {"causes": causes}}
    return encode_json({"metadata": {}, "status": "Failure", "message": sentence, **reason})


def _message(content: bytes, *, is_text: bool) -> dict[str, Any]:
    return {"type": "websocket.send", **({"text": content.decode()} if is_text else {"bytes": content})}


async def _wait_for_end(receive: _Receive) -> None:
    """Nothing reads what the client sends: it is thrown away until the client is gone."""
    while (await receive())["type"] != "websocket.disconnect":
        pass


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
