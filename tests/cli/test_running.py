from __future__ import annotations

import asyncio

from aiohttp import web

from pilotage.calls.retry import DEFAULT_POLICIES
from pilotage.cli.running import SCHEDULER_HTTP
from tests.kube.loopback import served, transport_to


async def test_every_lane_may_be_at_its_limit_without_waiting_for_another_ones_connections() -> None:
    at_once = sum(policy.workers for policy in DEFAULT_POLICIES.values())
    everybody = asyncio.Barrier(at_once)

    async def answers_when_all_are_there(_: web.BaseRequest) -> web.Response:
        await everybody.wait()
        return web.Response()

    async with (
        served(answers_when_all_are_there) as url,
        transport_to(url, settings=SCHEDULER_HTTP) as transport,
        asyncio.timeout(30),
        asyncio.TaskGroup() as tasks,
    ):
        for _ in range(at_once):
            tasks.create_task(transport.request("GET", "/"))
