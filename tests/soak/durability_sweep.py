"""A sandbox that keeps its data on disk, written to by several clients, and killed at random moments.

    python -m tests.soak.durability_sweep --kills 15 --writers 4

Fails (exit code 1) if anything that was acknowledged is not there afterwards: an object that was created or changed, a
deletion, or a version that goes backwards. A write without an answer may have happened or not, but not by half.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from tests.real_cluster.client import Client, Json, Refused
from tests.real_cluster.servers import SandboxServer
from tests.soak.verdict import Figure, exit_code

KEYS_PER_WRITER = 20
PADDING = 400
"""Characters in each object, so that writes are torn now and then."""

Content = str | None
"""What an object says; None: it does not exist."""


@dataclass(slots=True)
class Key:
    """One object, written by one writer only."""

    name: str
    acknowledged: Content = None
    in_doubt: list[Content] = field(default_factory=list)
    """What was asked for since then and got no answer."""

    def allows(self, found: Content) -> bool:
        return found == self.acknowledged or found in self.in_doubt

    def settle(self, found: Content) -> None:
        self.acknowledged, self.in_doubt = found, []


class Writer:
    """Creates, changes and deletes its own objects as fast as it is answered."""

    def __init__(self, kubeconfig: Path, number: int, rng: random.Random) -> None:
        self._client = Client(kubeconfig)
        self._rng = rng
        self.keys = [Key(f"w{number}-{index:02}") for index in range(KEYS_PER_WRITER)]
        self.acknowledged = 0
        self.highest_version = 0
        self._steps = 0

    def write_until(self, is_over: threading.Event) -> None:
        while not is_over.is_set():
            try:
                self._write(self._rng.choice(self.keys))
            except (OSError, HTTPException):
                is_over.wait(0.02)

    def _write(self, key: Key) -> None:
        if key.in_doubt:
            return
        self._steps += 1
        content = None if key.acknowledged is not None and self._rng.random() < 0.3 else f"{self._steps}"
        key.in_doubt.append(content)
        try:
            answer = self._send(key, content)
        except Refused as refused:
            # Answered while the server goes down: an answer that is an error acknowledges nothing.
            if refused.code < 500:
                raise
            return
        key.settle(content)
        self.acknowledged += 1
        self.highest_version = max(self.highest_version, int(answer["metadata"].get("resourceVersion") or 0))

    def _send(self, key: Key, content: Content) -> Json:
        if content is None:
            return self._client.request("DELETE", f"{_PATH}/{key.name}")
        if key.acknowledged is None:
            return self._client.request("POST", _PATH, _object(key.name, content))
        return self._client.request("PUT", f"{_PATH}/{key.name}", _object(key.name, content))


_PATH = "/api/v1/namespaces/default/configmaps"


def _object(name: str, content: str) -> Json:
    data = {"content": content, "padding": content[-1] * PADDING}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@dataclass(slots=True)
class Losses:
    """What was acknowledged and is not so."""

    lost: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)
    backwards: list[str] = field(default_factory=list)

    def look(self, client: Client, writers: list[Writer]) -> None:
        answer = client.request("GET", _PATH)
        stored = {item["metadata"]["name"]: item["data"] for item in answer["items"]}
        highest = max(writer.highest_version for writer in writers)
        if int(answer["metadata"]["resourceVersion"]) < highest:
            self.backwards.append(f"{answer['metadata']['resourceVersion']} after {highest}")
        for key in (key for writer in writers for key in writer.keys):
            data = stored.get(key.name)
            found = None if data is None else data["content"]
            if data is not None and data["padding"] != data["content"][-1] * PADDING:
                self.torn.append(key.name)
            if not key.allows(found):
                self.lost.append(f"{key.name}: {found!r}, acknowledged {key.acknowledged!r}")
            key.settle(found)


def sweep(kills: int, writers: int, rng: random.Random, folder: Path) -> list[Figure]:
    server = SandboxServer(folder)
    server.start()
    losses, starts = Losses(), []
    crew = [Writer(server.admin, number, random.Random(rng.random())) for number in range(writers)]
    try:
        for number in range(1, kills + 1):
            is_over = threading.Event()
            threads = [threading.Thread(target=writer.write_until, args=(is_over,), daemon=True) for writer in crew]
            for thread in threads:
                thread.start()
            time.sleep(rng.uniform(0.05, 1.5))
            server.kill()
            is_over.set()
            for thread in threads:
                thread.join(30.0)
            began = time.monotonic()
            server.start()
            starts.append(time.monotonic() - began)
            losses.look(Client(server.admin), crew)
            done = sum(writer.acknowledged for writer in crew)
            print(f"{number}/{kills} killed: {done} writes acknowledged so far, {len(losses.lost)} lost", flush=True)
    finally:
        server.stop()
    for problem in [*losses.lost, *losses.torn, *losses.backwards]:
        print(f"violation: {problem}", flush=True)
    return [
        Figure("writes acknowledged", done),
        Figure("acknowledged writes that were lost", len(losses.lost), 0),
        Figure("objects that were written by half", len(losses.torn), 0),
        Figure("versions that went backwards", len(losses.backwards), 0),
        Figure("longest start after a kill", max(starts), None, " s"),
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=15, help="how often the server is killed (kill -9)")
    parser.add_argument("--writers", type=int, default=4, help="clients that write at the same time")
    parser.add_argument("--seed", type=int, default=None, help="of the moments; a random one by default")
    options = parser.parse_args(arguments)
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    print(f"durability sweep: {options.kills} kills, {options.writers} writers, --seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="pilotage-durability-") as folder:
        return exit_code(sweep(options.kills, options.writers, random.Random(seed), Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
