"""Thread or process: what becomes of a lease and of health pages while something holds the interpreter.

    .venv/bin/python benchmarks/lease_keeping.py

A keeper renews every 2 s over HTTP and answers /healthz, as a thread of the busy process or as a process beside it.
Meanwhile the main thread (a) computes in pure Python for 10 s, (b) matches a regular expression that backtracks for
20 s or more of CPU time, which does not let go of the lock. Told are the renewals that arrived, the longest pause
between two of them, and how long /healthz took, asked every 100 ms with a patience of 5 s.
"""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import re
import socket
import threading
import time
import urllib.request
from collections.abc import Callable
from multiprocessing.connection import Connection

RETRY_SECONDS = 2.0
PURE_PYTHON_SECONDS = 10.0
BACKTRACKING_SECONDS = 20.0
FORK = multiprocessing.get_context("fork")


def pure_python() -> None:
    end, total = time.monotonic() + PURE_PYTHON_SECONDS, 0
    while time.monotonic() < end:
        total += sum(number * number for number in range(1000))


def backtracking() -> None:
    """One match: each letter more doubles its time."""
    letters, seconds = 16, 0.0
    while seconds < 0.05:
        letters += 1
        begin = time.process_time()
        re.match(r"^(a+)+$", "a" * letters + "!")
        seconds = time.process_time() - begin
    letters += math.ceil(math.log2(BACKTRACKING_SECONDS / seconds))
    re.match(r"^(a+)+$", "a" * letters + "!")


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, note: Callable[[], None]) -> None:
    await reader.readuntil(b"\r\n\r\n")
    note()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
    await writer.drain()
    writer.close()


async def serve(listening: socket.socket, note: Callable[[], None] = lambda: None) -> None:
    async with await asyncio.start_server(lambda r, w: answer(r, w, note), sock=listening) as server:
        await server.serve_forever()


async def keep(listening: socket.socket, api_server: int) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(serve(listening))
        while True:
            reader, writer = await asyncio.open_connection("127.0.0.1", api_server)
            writer.write(b"PUT /lease HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
            await reader.read()
            writer.close()
            await asyncio.sleep(RETRY_SECONDS)


def watch(listening: socket.socket, pages: int, told: Connection) -> None:
    """The API server, and a kubelet beside it, in a process of their own."""
    renewed: list[float] = []
    serving = serve(listening, lambda: renewed.append(time.monotonic()))
    threading.Thread(target=asyncio.run, args=(serving,), daemon=True).start()
    while not renewed:
        time.sleep(0.01)
    answers: list[float] = []
    told.send("ready")
    begin = time.monotonic()
    while not told.poll():
        asked = time.monotonic()
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{pages}/healthz", timeout=5).read()
            answers.append(time.monotonic() - asked)
        except OSError:
            answers.append(float("inf"))
        time.sleep(0.1)
    end = time.monotonic()
    times = [at for at in renewed if at > begin]
    pauses = [after - before for before, after in zip([begin, *times], [*times, end], strict=True)]
    told.send((end - begin, len(times), max(pauses), sorted(answers)))


def measure(work: Callable[[], None], *, as_process: bool) -> str:
    api, pages = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
    keeper: Callable[[], None] = lambda: asyncio.run(keep(pages, api.getsockname()[1]))  # noqa: E731
    ours, theirs = FORK.Pipe()
    watcher = FORK.Process(target=watch, args=(api, pages.getsockname()[1], theirs), daemon=True)
    watcher.start()
    if as_process:
        FORK.Process(target=keeper, daemon=True).start()
    else:
        threading.Thread(target=keeper, daemon=True).start()
    ours.recv()
    work()
    ours.send("done")
    seconds, renewals, pause, answers = ours.recv()
    middle, longest = (_shown(seconds) for seconds in (answers[len(answers) // 2], answers[-1]))
    renewed = f"{seconds:.1f} s: {renewals} renewals, {pause:.1f} s apart at most"
    return f"{renewed}; /healthz {middle}, longest {longest}"


def _shown(seconds: float) -> str:
    return "no answer in 5 s" if seconds == float("inf") else f"{seconds * 1000:.0f} ms"


if __name__ == "__main__":
    for work in (pure_python, backtracking):
        # The process first: threads do not go well with a fork.
        for as_process in (True, False):
            name = "process" if as_process else "thread"
            child = FORK.Process(
                target=lambda work=work, as_process=as_process, name=name: print(
                    f"{work.__name__:>13} {name:>8}  {measure(work, as_process=as_process)}", flush=True
                )
            )
            child.start()
            child.join()
