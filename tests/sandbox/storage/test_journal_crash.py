"""Kill -9 while several writers are at work, again and again on the same directory; nothing acknowledged is lost.

The child announces every write before it makes it and acknowledges it once it is durable, on a pipe that survives the
kill. For each object the disk must then show the last acknowledged write, or one that was announced after it: whether
that one had reached the disk nobody was told.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pilotage.rng import seeded
from pilotage.sandbox.storage.journal import open_journal
from pilotage.sandbox.storage.store import Store

KILLS = 6

CHILD = """
import asyncio, itertools, os, sys
from pilotage.sandbox.storage.journal import open_journal
from pilotage.sandbox.storage.store import Key, Store

store = Store(history=100, journal=open_journal(sys.argv[1], snapshot_after_bytes=200_000))

def say(line):
    os.write(1, line.encode() + b"\\n")

async def write(name, value):
    say(f"try {name} {value}")
    key = Key("pods", "default", name)
    obj = {"metadata": {"name": name}, "value": value, "ballast": "x" * 1000}
    if value == "gone":
        record = store.delete(key)
    elif store.get(key):
        record = store.update(key, obj)
    else:
        record = store.create(key, obj)
    await store.durable(record.revision)
    say(f"ack {name} {value}")

async def worker(number):
    for step in itertools.count():
        name = f"{sys.argv[2]}-{number}-{step % 50}"
        await write(name, f"first-{step}")
        await write(name, f"second-{step}")
        if step % 3 == 0:
            await write(name, "gone")

async def main():
    async with asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(worker(number))

say(f"start {store.revision}")
asyncio.run(main())
"""


@dataclass
class Told:
    """What the children said: per object the last acknowledged value and those announced since."""

    acknowledged: dict[str, str] = field(default_factory=dict)
    announced: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    acknowledgements: int = 0

    def hear(self, line: str) -> None:
        verb, name, value = line.split()
        if verb == "try":
            self.announced[name].append(value)
        else:
            self.acknowledged[name] = value
            self.announced[name].clear()
            self.acknowledgements += 1


def run_and_kill(path: Path, prefix: str, acknowledgements: int, told: Told) -> int:
    """One life of the child; returns the revision that it started from."""
    arguments = [sys.executable, "-c", CHILD, str(path), prefix]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        _, revision = child.stdout.readline().split()
        until = told.acknowledgements + acknowledgements
        while told.acknowledgements < until:
            told.hear(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        for line in child.stdout:
            told.hear(line)
    assert child.returncode == -signal.SIGKILL
    return int(revision)


def found(path: Path) -> tuple[dict[str, str], int]:
    journal = open_journal(path)
    store = Store(history=1, journal=journal)
    values = {record.key.name: record.object()["value"] for record in store.list("pods")}
    store.check()
    journal.close()
    return values, store.revision


@pytest.mark.parametrize("seed", [1, 2])
def test_everything_acknowledged_survives_every_kill(tmp_path: Path, seed: int) -> None:
    rng: random.Random = seeded(seed)
    told = Told()
    revision = 0
    for life in range(KILLS):
        # A new prefix in every other life: objects of earlier lives are left alone in one and rewritten in the next.
        started = run_and_kill(tmp_path, str(life // 2), rng.randint(1, 2500), told)
        assert started >= revision, "revisions go on"
        values, revision = found(tmp_path)
        for name in told.announced:
            possible = [told.acknowledged.get(name, "gone"), *told.announced[name]]
            assert values.get(name, "gone") in possible
        assert values.keys() <= told.announced.keys(), "nothing comes back that nobody wrote"
        settle(told, values)


def settle(told: Told, values: dict[str, str]) -> None:
    """What was found after a kill is what the next life builds on."""
    for name, announced in told.announced.items():
        told.acknowledged[name] = values.get(name, "gone")
        announced.clear()
