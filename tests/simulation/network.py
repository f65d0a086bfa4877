"""Between one replica and the API server: every request and every watch passes here, or does not.

A request is on its way for a moment, is done by the server, and its answer is on its way for a moment. What was sent
arrives even if the sender is gone by then.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from pilotage.kube.transport import Response, StreamRefused, TransportError
from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.http.exchange import Request, ServerResponse, error_response
from pilotage.sandbox.http.server import ApiServer, Watch
from pilotage.sandbox.http.watch import error_line
from pilotage.testing import VirtualClock
from tests.simulation.fault_plan import Call, Fault, FaultPlan, Window
from tests.simulation.process_clock import ProcessClock

REQUEST_SECONDS = 60.0
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_REFUSALS = {
    Fault.ERROR: (500, "InternalError"),
    Fault.UNAVAILABLE: (503, "ServiceUnavailable"),
    Fault.THROTTLED: (429, "TooManyRequests"),
    Fault.FORBIDDEN: (403, "Forbidden"),
    Fault.DISK_FULL: (507, "InsufficientStorage"),
}
_GONE = ApiError(410, "Expired", "too old resource version: a simulated fault")
OnSent = Callable[[Call, Request], None]
OnAnswer = Callable[[Call, Request, str], None]


class Network:
    """The ways of all replicas to one server: which faults there are, how long things take."""

    def __init__(
        self, server: ApiServer, clock: VirtualClock, plan: FaultPlan, rng: random.Random, tasks: asyncio.TaskGroup
    ) -> None:
        self.server = server
        self.clock = clock
        self.plan = plan
        self.rng = rng
        self._tasks = tasks
        self._under_way: dict[asyncio.Task[None], None] = {}
        self._oldest: dict[str, int] = {}
        """By resource: the server cannot watch from earlier than that."""
        self._usual_delay = rng.choice([0.0, 0.002, 0.02, 0.1])

    def delay(self) -> float:
        return self.rng.uniform(0.0, self._usual_delay) if self._usual_delay else 0.0

    def compact(self, resource: str) -> None:
        """The server forgets how it came to the present state."""
        self._oldest[resource] = self.server.api.store.revision

    def has_history(self, resource: str, request: Request) -> bool:
        """Whether a watch can begin where it is asked to."""
        return int(request.query.get("resourceVersion") or 0) >= self._oldest.get(resource, 0)

    async def carry(self, request: Request, delay: float) -> ServerResponse:
        """Have the request done, now or later, whatever becomes of its sender."""
        if delay <= 0:
            return self._done(request)
        arrival: asyncio.Future[ServerResponse] = asyncio.get_running_loop().create_future()
        carrying = self._tasks.create_task(self._arrive(request, delay, arrival))
        self._under_way[carrying] = None
        carrying.add_done_callback(self._under_way.pop)
        return await arrival

    def close(self) -> None:
        """What is under way is lost."""
        for task in list(self._under_way):
            task.cancel()

    async def _arrive(self, request: Request, delay: float, arrival: asyncio.Future[ServerResponse]) -> None:
        await self.clock.sleep(delay)
        answer = self._done(request)
        if not arrival.done():
            arrival.set_result(answer)

    def _done(self, request: Request) -> ServerResponse:
        answer = self.server.dispatch(request)
        assert isinstance(answer, ServerResponse), "watches are opened as streams"
        return answer


class Wire:
    """The transport of one process."""

    def __init__(self, network: Network, replica: str, process: ProcessClock, on_sent: OnSent, on_answer: OnAnswer):
        self._network = network
        self._replica = replica
        self._process = process
        self._on_sent = on_sent
        self._on_answer = on_answer
        self._streams: dict[Watch, None] = {}
        self._broken: set[Watch] = set()
        self.is_dead = False
        self.dies_after: tuple[int, bool] | None = None
        """So many more requests and the process dies: before the last one is sent, or (True) once it is done."""
        self.on_death: Callable[[], None] = lambda: None
        self.on_next_write: Callable[[], None] | None = None
        """Called once, when the next write has been sent."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_seconds: float | None = None,
    ) -> Response:
        request = Request(method, path, query or {}, {"content-type": content_type}, body or b"")
        call = call_of(request)
        self._age(is_done=False)
        if self.is_dead:
            raise TransportError("the process is gone", sent=False)
        self._on_sent(call, request)
        if call.is_write and self.on_next_write is not None:
            self.on_next_write, act = None, self.on_next_write
            act()
        window = self._network.plan.strike(self._replica, call, self._network.clock.monotonic())
        try:
            answer = await self._exchange(request, window, timeout_seconds or REQUEST_SECONDS)
        except TransportError as error:
            self._on_answer(call, request, f"{window.fault if window else 'no answer'}: {error}")
            await self._process.awake()
            raise
        outcome = str(answer.status) if window is None else f"{answer.status} ({window.fault})"
        await self._process.awake()
        self._on_answer(call, request, outcome)
        return _transported(answer)

    async def _exchange(self, request: Request, window: Window | None, patience: float) -> ServerResponse:
        network = self._network
        fault = None if window is None else window.fault
        there, back = network.delay(), network.delay()
        if fault is Fault.REFUSED:
            raise TransportError("connection refused", sent=False)
        if fault in _REFUSALS:
            await network.clock.sleep(there + back)
            return _refusal(fault)
        if fault is Fault.RESET_BEFORE:
            await network.clock.sleep(there)
            raise TransportError("connection reset", sent=True)
        if fault is Fault.LATE_REQUEST and window is not None:
            there += window.seconds
        answer = await network.carry(request, there)
        self._age(is_done=True)
        if fault is Fault.RESET_AFTER or self.is_dead:
            raise TransportError("connection reset", sent=True)
        if fault is Fault.SILENCE:
            await network.clock.sleep(patience)
            raise TransportError("no answer in time", sent=True)
        if fault is Fault.LATE_ANSWER and window is not None:
            back += window.seconds
        await network.clock.sleep(back)
        return _refusal(Fault.ERROR) if fault is Fault.ERROR_AFTER else answer

    def _age(self, *, is_done: bool) -> None:
        if self.dies_after is None or self.dies_after[1] is not is_done:
            return
        left = self.dies_after[0] - 1
        self.dies_after = (left, is_done)
        if left < 0:
            self.dies_after = None
            self.on_death()

    # --- watches -----------------------------------------------------------------------------------------------

    def stream(
        self, path: str, query: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._stream(Request("GET", path, query or {}))

    @asynccontextmanager
    async def _stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        call = call_of(request)
        now = self._network.clock.monotonic()
        if self.is_dead:
            raise TransportError("the process is gone", sent=False)
        self._on_sent(call, request)
        refused = self._network.plan.strike(self._replica, call, now)
        if refused is not None:
            await self._network.clock.sleep(self._network.delay())
            self._on_answer(call, request, refused.fault)
            if refused.fault in _REFUSALS:
                raise StreamRefused(_transported(_refusal(refused.fault)))
            raise TransportError("connection refused", sent=False)
        watch = self._opened(call, request)
        self._streams[watch] = None
        try:
            yield self._chunks(call.resource, watch)
        finally:
            self._streams.pop(watch, None)
            self._broken.discard(watch)
            watch.close()

    def _opened(self, call: Call, request: Request) -> Watch:
        window = self._network.plan.strike_watch(self._replica, call.resource, self._network.clock.monotonic())
        if window is not None and window.fault is Fault.WATCH_UNAVAILABLE:
            self._on_answer(call, request, window.fault)
            raise StreamRefused(_transported(_refusal(Fault.UNAVAILABLE)))
        if window is not None and window.fault is Fault.WATCH_GONE:
            self._network.compact(call.resource)
        if not self._network.has_history(call.resource, request):
            self._on_answer(call, request, Fault.WATCH_GONE)
            raise StreamRefused(_transported(error_response(_GONE)))
        answer = self._network.server.dispatch(request)
        if isinstance(answer, ServerResponse):
            raise StreamRefused(_transported(answer))
        return answer

    async def _chunks(self, resource: str, watch: Watch) -> AsyncIterator[bytes]:
        network = self._network
        async for chunk in watch:
            window = network.plan.strike_watch(self._replica, resource, network.clock.monotonic())
            fault = None if window is None else window.fault
            if fault is Fault.WATCH_LAG and window is not None:
                await network.clock.sleep(network.rng.uniform(0.0, window.seconds))
            else:
                await network.clock.sleep(network.delay())
            await self._process.awake()
            if watch in self._broken or fault is Fault.WATCH_CUT:
                raise TransportError("the watch was cut", sent=True)
            if fault is Fault.WATCH_END:
                return
            if fault is Fault.WATCH_GONE:
                network.compact(resource)
                yield error_line(_GONE)
                return
            if len(chunk) > 1 and network.rng.random() < 0.1:
                middle = network.rng.randrange(1, len(chunk))
                yield chunk[:middle]
                chunk = chunk[middle:]
            yield chunk
        if watch in self._broken:
            raise TransportError("the watch was cut", sent=True)

    def cut_watches(self) -> None:
        for watch in list(self._streams):
            self._broken.add(watch)
            watch.close()

    async def close(self) -> None:
        self.is_dead = True


def call_of(request: Request) -> Call:
    """Verb and resource (with its subresource) of a request."""
    parts = request.path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if len(parts) > 2 and parts[0] == "namespaces":
        parts = parts[2:]
    resource = f"{parts[0]}/{parts[2]}" if len(parts) > 2 else parts[0] if parts else ""
    verb = _VERBS.get(request.method)
    if verb is None:
        verb = "watch" if request.flag("watch") else "list" if len(parts) == 1 else "get"
    return Call(verb, resource)


def _refusal(fault: Fault) -> ServerResponse:
    code, reason = _REFUSALS[fault]
    return error_response(ApiError(code, reason, "a simulated fault", retry_after=1 if code == 429 else None))


def _transported(answer: ServerResponse) -> Response:
    return Response(answer.status, {"content-type": answer.content_type, **dict(answer.headers)}, answer.body)
