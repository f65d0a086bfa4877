"""Two schedulers, pods arriving, and the leader killed (or frozen) again and again at random moments.

    python -m tests.soak.kill_sweep --kills 20 --lease 3

Fails (exit code 1) if a pod was ever bound to two nodes, a node held more than it has, a scheduler wrote something
after another one had taken its lease, a pod was left unbound, or the next binding came later than lease + 1 s.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tests.real_cluster.client import Client
from tests.real_cluster.objects import node
from tests.real_cluster.scheduler_process import SchedulerProcess
from tests.real_cluster.servers import SandboxServer, eventually
from tests.soak.traffic import Traffic
from tests.soak.verdict import Figure, exit_code, percentile
from tests.soak.witness import Witness

NODES, PODS_PER_NODE = 20, 10
SLACK_SECONDS = 1.0
_ECHO_SECONDS = 0.3
"""What a leader sent before it died is seen for so long; nobody else can lead that soon."""


class Replicas:
    """Schedulers by name, each known to the audited server by the path that it uses."""

    def __init__(self, server: SandboxServer, lease_seconds: float) -> None:
        self._server = server
        self._numbers = count(1)
        self._flags = (
            "--secure-port=0",
            f"--leader-elect-lease-duration={lease_seconds:g}s",
            f"--leader-elect-renew-deadline={lease_seconds * 2 / 3:.3f}s",
            f"--leader-elect-retry-period={min(0.5, lease_seconds / 6):.3f}s",
        )
        self.running: dict[str, SchedulerProcess] = {}
        self.ended_alone = 0

    def start(self) -> str:
        """Returns when it is ready to lead, or to stand by."""
        name = f"s{next(self._numbers):03}"
        kubeconfig = self._server.kubeconfig(name, f"/via/{name}")
        process = SchedulerProcess(kubeconfig, self._server.folder / f"{name}.log", *self._flags)
        self.running[name] = process
        eventually(f"{name} is ready", lambda: "scheduling at" in process.said(), seconds=60.0)
        return name

    def replace_ended(self) -> None:
        """One that could not renew its lease in time has ended by itself, as it should; there shall be two."""
        for name in [name for name, process in self.running.items() if not process.is_running]:
            del self.running[name]
            self.ended_alone += 1
            print(f"{name} has ended by itself, it could not renew its lease in time", flush=True)
            self.start()

    @property
    def audit(self) -> list[dict[str, str]]:
        path = self._server.folder / "audit.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def leader(self) -> str:
        leads = [line["leads"] for line in self.audit if "deposed" not in line]
        return leads[-1] if leads and leads[-1] in self.running else ""

    def deposed_writes(self) -> list[str]:
        return [f"{line['deposed']}: {line['wrote']}" for line in self.audit if "deposed" in line]

    def last_words(self) -> str:
        """The ends of the logs of those that should be running."""
        return "\n".join(
            f"--- {name} ({'running' if process.is_running else 'ended'}):\n{process.said()[-1500:]}"
            for name, process in self.running.items()
        )

    def stop(self) -> None:
        for process in self.running.values():
            process.resume()
            process.end()


@dataclass(slots=True)
class Sweep:
    """One run."""

    lease_seconds: float
    rng: random.Random
    gaps: dict[str, list[float]] = field(default_factory=lambda: {"SIGKILL": [], "SIGSTOP": []})

    def run(self, kills: int, folder: Path) -> list[Figure]:
        server = SandboxServer(folder, "tests.soak.audited_server")
        server.start()
        replicas = Replicas(server, self.lease_seconds)
        client = Client(server.admin)
        for number in range(NODES):
            client.create(node(f"n{number:02}", cpu="1"))
        try:
            with Witness(Client(server.admin), 100 * PODS_PER_NODE) as witness:
                with Traffic(Client(server.admin), witness, most=NODES * PODS_PER_NODE * 4 // 5, pause_seconds=0.02):
                    replicas.start()
                    replicas.start()
                    for number in range(1, kills + 1):
                        self._strike(number, kills, replicas, witness)
                left = self._left_unbound(client)
            return self._figures(witness, replicas, left)
        except AssertionError as stuck:
            print(f"stuck: {stuck}; leads: {replicas.leader()!r}\n{replicas.last_words()}", flush=True)
            return [Figure("strikes that nobody took over from", 1, 0)]
        finally:
            replicas.stop()
            server.stop()

    def _strike(self, number: int, kills: int, replicas: Replicas, witness: Witness) -> None:
        time.sleep(self.rng.uniform(0.2, 2.0))
        replicas.replace_ended()
        leader = eventually("somebody leads", replicas.leader)
        victim = replicas.running[leader]
        how = "SIGSTOP" if number % 4 == 0 else "SIGKILL"
        struck = time.monotonic()
        victim.pause() if how == "SIGSTOP" else victim.kill()
        first = eventually(
            "the next leader binds", lambda: witness.first_binding_after(struck + _ECHO_SECONDS), seconds=60.0
        )
        self.gaps[how].append(first - struck)
        print(f"{number}/{kills} {how} of {leader}: next binding after {first - struck:.2f} s", flush=True)
        if how == "SIGSTOP":
            victim.resume()
            victim.wait(30.0)
        del replicas.running[leader]
        replicas.start()

    @staticmethod
    def _left_unbound(client: Client) -> int:
        """Pods that nobody has bound when there was time for it."""
        deadline = time.monotonic() + 30.0
        while left := sum(not pod["spec"].get("nodeName") for pod in client.list("pods")):
            if time.monotonic() > deadline:
                break
            time.sleep(0.2)
        return left

    def _figures(self, witness: Witness, replicas: Replicas, left: int) -> list[Figure]:
        limit = self.lease_seconds + SLACK_SECONDS
        twice, deposed = witness.bound_more_than_once(), replicas.deposed_writes()
        for problem in [*witness.overcommitted, *deposed, *map(str, twice.items())]:
            print(f"violation: {problem}", flush=True)
        gaps = [gap for some in self.gaps.values() for gap in some]
        return [
            Figure("pods bound", len(witness.bound_at)),
            Figure("pods bound twice", len(twice), 0),
            Figure("overcommitted nodes", len(witness.overcommitted), 0),
            Figure("writes by a deposed leader", len(deposed), 0),
            Figure("pods left unbound", left, 0),
            Figure("leaders that ended by themselves", replicas.ended_alone),
            *(
                Figure(f"{how}: {len(some)} times, median", percentile(some, 0.5), None, " s")
                for how, some in self.gaps.items()
            ),
            Figure("strike to next binding, median", percentile(gaps, 0.5), limit, " s"),
            Figure("strike to next binding, p90", percentile(gaps, 0.9), limit, " s"),
            Figure("strike to next binding, longest", max(gaps, default=0.0), limit, " s"),
        ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--kills", type=int, default=20, help="how often the leader is struck; every fourth time frozen"
    )
    parser.add_argument("--lease", type=float, default=3.0, help="duration of the lease in seconds")
    parser.add_argument("--seed", type=int, default=None, help="of the moments; a random one by default")
    options = parser.parse_args(arguments)
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    print(f"kill sweep: {options.kills} kills, lease {options.lease:g} s, --seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="pilotage-kill-sweep-") as folder:
        return exit_code(Sweep(options.lease, random.Random(seed)).run(options.kills, Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
