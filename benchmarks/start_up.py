"""How much CPU it takes until a scheduler knows a large cluster and is ready: the list over HTTP, decoding, columns.

    .venv/bin/python benchmarks/start_up.py [NODES] [PODS]

A sandbox's API server with that many objects runs in a process of its own; what is measured is the scheduler's process
alone. Most pods are bound, a hundredth waits. Goals: 30 s of CPU for 5,000 nodes and 100,000 pods; 60 s and 4 GB for
100,000 nodes and 1,000,000 pods, which take the sandbox some minutes and 2 GB to have.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import uvloop

from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.bench.measure import peak_memory_mib
from pilotage.bench.workloads import bench_node, bench_pod
from pilotage.clock import SystemClock, cpu_seconds
from pilotage.kube.client import KubeClient
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.rng import fresh_token, seeded
from pilotage.sandbox.api import Api
from pilotage.sandbox.http.asgi import serve
from pilotage.sandbox.http.kubeconfig import write_kubeconfig
from pilotage.sandbox.http.server import ApiServer
from pilotage.sandbox.storage.store import Store

WAITING_SHARE = 100
GOAL_SECONDS, GOAL_LARGE_SECONDS = 30.0, 60.0
GOAL_MIB = 4096.0
LARGE = 100_000
"""With more pods the goals are those of a large cluster."""


def main() -> None:
    numbers = [int(word) for word in sys.argv[1:3]]
    nodes, pods = (*numbers, *(5_000, 100_000)[len(numbers) :])
    if "--serve" in sys.argv:
        asyncio.run(serve_cluster(Path(sys.argv[sys.argv.index("--serve") + 1]), nodes, pods))
        return
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        command = [sys.executable, __file__, str(nodes), str(pods), "--serve", str(kubeconfig)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            assert server.stdin and server.stdout
            assert server.stdout.readline() == b"ready\n"
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
                loop.run(measure(kubeconfig, nodes, pods))
            server.stdin.close()


async def serve_cluster(kubeconfig: Path, nodes: int, pods: int) -> None:
    clock, token = SystemClock(), fresh_token()
    api = Api(Store(history=1_000), clock=clock, rng=seeded(1))
    for number in range(nodes):
        api.create("nodes", "", bench_node(number))
    for number in range(pods):
        api.create("pods", "default", placed_pod(number, nodes))
    async with serve(ApiServer(api, token=token, clock=clock)) as serving:
        write_kubeconfig(kubeconfig, serving.url, token)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


def placed_pod(number: int, nodes: int) -> dict[str, Any]:
    pod = bench_pod(f"pod-{number:06}", {"cpu": "10m", "memory": "50Mi"})
    pod["metadata"] = {"name": f"pod-{number:06}", "labels": {"app": f"app-{number % 500}", "tier": "backend"}}
    if number % WAITING_SHARE:
        pod["spec"]["nodeName"] = bench_node(number % nodes)["metadata"]["name"]
    return pod


async def measure(kubeconfig: Path, nodes: int, pods: int) -> None:
    clock = SystemClock()
    client = KubeClient(HttpTransport(load_connection(str(kubeconfig), clock=clock)))
    begin, cpu = clock.monotonic(), cpu_seconds()
    process = SchedulerProcess(client, clock, seeded(1), SchedulerOptions())
    async with asyncio.TaskGroup() as tasks:
        watching = [tasks.create_task(reflector.run(), name="watch") for reflector in process.reflectors]
        for reflector in process.reflectors:
            await reflector.wait_synced()
        listed = cpu_seconds() - cpu
        while not process.scheduler.inbox.is_empty:  # a turn is over after a slice of time
            process.scheduler.drain_inbox()
        ready = cpu_seconds() - cpu
        for task in watching:
            task.cancel()
    await client.close()
    known = len(process.scheduler.cluster.objects("Pod"))
    assert known == pods, f"{known} pods are known"
    seconds = clock.monotonic() - begin
    print(f"{nodes:,} nodes, {pods:,} pods: listed after {listed:.1f} s of CPU, ready after {ready:.1f} s of CPU")
    memory, most = peak_memory_mib(), GOAL_SECONDS if pods <= LARGE else GOAL_LARGE_SECONDS
    print(f"{seconds:.1f} s on the clock, peak memory {memory:,.0f} MiB")
    print(f"goal of {most:.0f} s of CPU: {'met' if ready <= most else 'missed'}")
    print(f"goal of {GOAL_MIB:,.0f} MiB: {'met' if memory <= GOAL_MIB else 'missed'}")


if __name__ == "__main__":
    main()
