"""How fast the sandbox's store takes writes, alone and with its journal, and what 100,000 objects cost.

.venv/bin/python benchmarks/store.py [--objects N] [--writes N] [--data-dir D]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pilotage.clock import cpu_seconds, perf_seconds
from pilotage.sandbox.storage.journal import open_journal
from pilotage.sandbox.storage.store import Key, Store

HISTORY = 10_000


def pod(number: int, size: int) -> dict[str, Any]:
    """A pod-shaped object of about `size` bytes of JSON."""
    env = [{"name": f"VARIABLE_{i}", "value": "some value"} for i in range((size - 600) // 42)]
    requests = {"cpu": "100m", "memory": "128Mi"}
    container = {"name": "main", "image": "example.com/app:1.2.3", "resources": {"requests": requests}, "env": env}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number}",
            "namespace": f"team-{number % 20}",
            "uid": f"{number:08x}-0000-4000-8000-000000000000",
            "labels": {"app": f"app-{number % 100}", "tier": "web"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"schedulerName": "default-scheduler", "containers": [container], "priority": 0},
        "status": {"phase": "Pending"},
    }


def key_of(obj: dict[str, Any]) -> Key:
    return Key("pods", obj["metadata"]["namespace"], obj["metadata"]["name"])


def resident_mebibytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / (1 << 20)


def report(what: str, value: float, unit: str) -> None:
    print(f"{what:<58} {value:>12,.1f} {unit}")


def seconds_of(action: Callable[[], object]) -> float:
    began = perf_seconds()
    action()
    return perf_seconds() - began


def measure_memory(count: int) -> None:
    gc.collect()
    before = resident_mebibytes()
    store = Store(history=HISTORY)
    for number in range(count):
        obj = pod(number, 4096)
        store.create(key_of(obj), obj)
    gc.collect()
    size = len(store.list("pods")[0].body)
    report(f"memory of {count:,} objects of {size} bytes", resident_mebibytes() - before, "MiB")
    report(f"list of {count:,}", seconds_of(lambda: store.list("pods")) * 1000, "ms")
    report("list of one namespace of 20", seconds_of(lambda: store.list("pods", "team-7")) * 1000, "ms")
    obj = pod(count, 4096)
    store.create(key_of(obj), obj)
    report("list after one more creation", seconds_of(lambda: store.list("pods")) * 1000, "ms")
    since = store.revision - HISTORY
    taken = seconds_of(lambda: [change.line for change in store.changes_since("pods", since)])
    report("watch resumed from the past", HISTORY / taken, "events/s")


def measure_writes(count: int) -> None:
    objects = [pod(number, 1024) for number in range(count)]
    keys = [key_of(obj) for obj in objects]
    store = Store(history=HISTORY)
    creating = seconds_of(lambda: [store.create(key, obj) for key, obj in zip(keys, objects, strict=True)])
    updating = seconds_of(lambda: [store.update(key, obj) for key, obj in zip(keys, objects, strict=True)])
    size = len(store.list("pods")[0].body)
    report(f"create, {size} bytes, no journal", creating / count * 1e6, "us")
    report(f"update, {size} bytes, no journal", updating / count * 1e6, "us")
    report("updates without journal", count / updating, "writes/s")
    lines: list[bytes] = []
    store.subscribe("pods", lambda change: lines.append(change.line))
    watched = seconds_of(lambda: [store.update(key, obj) for key, obj in zip(keys, objects, strict=True)])
    report("updates with one watcher taking the lines", count / watched, "writes/s")


async def measure_durable_writes(path: Path, count: int, writers: int) -> None:
    """`writers` tasks write one object after another, each waiting until it is on disk."""
    journal = open_journal(path)
    store = Store(history=HISTORY, journal=journal)

    async def write(first: int) -> None:
        for number in range(first, count, writers):
            obj = pod(number, 4096)
            await store.durable(store.create(key_of(obj), obj).revision)

    cpu, began = cpu_seconds(), perf_seconds()
    async with asyncio.TaskGroup() as group:
        for first in range(writers):
            group.create_task(write(first))
    taken = perf_seconds() - began
    report(f"durable creations, 4 KB, {writers} at a time", count / taken, "writes/s")
    report("    CPU per write, building the object included", (cpu_seconds() - cpu) / count * 1e6, "us")
    journal.close()


async def measure_bulk(path: Path, count: int) -> None:
    """Written without waiting, as a sandbox fills itself with nodes and pods; then read back."""
    journal = open_journal(path)
    store = Store(history=HISTORY, journal=journal)
    objects = [pod(number, 4096) for number in range(count)]
    keys = [key_of(obj) for obj in objects]
    began = perf_seconds()
    for key, obj in zip(keys, objects, strict=True):
        store.create(key, obj)
    report("creations, 4 KB, with journal, not waiting", count / (perf_seconds() - began), "writes/s")
    await store.durable(store.revision)
    report("    until all are durable", count / (perf_seconds() - began), "writes/s")
    journal.close()
    del store, journal
    began = perf_seconds()
    journal = open_journal(path)
    Store(history=HISTORY, journal=journal)
    report(f"start with {count:,} objects", perf_seconds() - began, "s")
    journal.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--writes", type=int, default=20_000)
    parser.add_argument("--data-dir", type=Path, default=None, help="a disk to measure (default: the temporary one)")
    options = parser.parse_args()
    measure_memory(options.objects)
    measure_writes(options.writes)
    with tempfile.TemporaryDirectory(dir=options.data_dir) as parent:
        for writers in (1, 16, 128):
            count = min(options.writes, 1000 * writers)
            asyncio.run(measure_durable_writes(Path(parent) / f"writers-{writers}", count, writers))
        asyncio.run(measure_bulk(Path(parent) / "bulk", options.writes))


if __name__ == "__main__":
    main()
