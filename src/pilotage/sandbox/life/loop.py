"""The life of the sandbox: one loop that runs the simulated kubelets and all controllers.

    store -> listener: index, then mark the keys that the change concerns -> WorkQueue (dirty keys and timers)
    loop:  pop what is due -> controller.reconcile(key) -> write through the Api -> store -> ...
           nothing due: sleep on the Clock until the next timer, or until a change rings the bell

Everything happens in one task and in a fixed order, so with a virtual clock and a seeded random source a run can be
repeated exactly. A controller that fails on a key is called again for that key, later and later; the others go on.
While the store takes no writes (a full disk) all of them rest.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from pilotage.clock import Clock
from pilotage.sandbox.api import Api
from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.http.exchange import Request
from pilotage.sandbox.life.controllers.adoption import AdoptionController
from pilotage.sandbox.life.controllers.controller import (
    ALL_RESOURCES,
    MOST_PODS,
    Controller,
    ControllerContext,
    Due,
    Interest,
)
from pilotage.sandbox.life.controllers.cron_job import CronJobController
from pilotage.sandbox.life.controllers.daemon_set import DaemonSetController
from pilotage.sandbox.life.controllers.deployment import DeploymentController
from pilotage.sandbox.life.controllers.disruption import DisruptionController
from pilotage.sandbox.life.controllers.endpoints import EndpointsController
from pilotage.sandbox.life.controllers.ephemeral_volumes import EphemeralVolumeController
from pilotage.sandbox.life.controllers.garbage_collector import GarbageCollector
from pilotage.sandbox.life.controllers.job import JobController
from pilotage.sandbox.life.controllers.node_lifecycle import NodeLifecycleController
from pilotage.sandbox.life.controllers.nodes import ALL_LEASES, LEASES, NodeController
from pilotage.sandbox.life.controllers.pod_gc import PodGarbageCollector
from pilotage.sandbox.life.controllers.pod_group_protection import PodGroupProtection
from pilotage.sandbox.life.controllers.replicaset import ReplicaSetController
from pilotage.sandbox.life.controllers.resource_claims import ResourceClaimController
from pilotage.sandbox.life.controllers.resource_quota import ResourceQuotaController
from pilotage.sandbox.life.controllers.service_accounts import ServiceAccountController
from pilotage.sandbox.life.controllers.stateful_set import StatefulSetController
from pilotage.sandbox.life.controllers.taint_eviction import TaintEvictionController
from pilotage.sandbox.life.controllers.volumes import VolumeController
from pilotage.sandbox.life.kubelet import Kubelet, KubeletSettings
from pilotage.sandbox.life.object_index import ObjectIndex, ObservedChange
from pilotage.sandbox.life.webhook_gate import AwaitsWebhooks, WebhookGate
from pilotage.sandbox.life.work_queue import WorkQueue
from pilotage.sandbox.storage.store import JournalError, Key

_log = logging.getLogger(__name__)

_STEPS_BEFORE_OTHERS: Final = 32
"""Keys handled before the event loop gets its turn: the API server and the scheduler live in it too."""
_FIRST_RETRY_SECONDS: Final = 0.05
_LONGEST_RETRY_SECONDS: Final = 60.0
_UNWRITABLE_SECONDS: Final = 0.5
HEARTBEATS: Final = frozenset({"nodes", LEASES})
"""What shows that kubelets live."""

ControllerFactory: TypeAlias = Callable[[ControllerContext], Controller]

DEFAULT_CONTROLLERS: Final[Sequence[ControllerFactory]] = (
    AdoptionController,  # first: what it adopts is not made anew
    DeploymentController,
    ReplicaSetController,
    ReplicaSetController.of_replication_controllers,
    StatefulSetController,
    DaemonSetController,
    JobController,
    CronJobController,
    ServiceAccountController,
    ResourceQuotaController,
    EndpointsController,
    DisruptionController,
    GarbageCollector,
    VolumeController,
    EphemeralVolumeController,
    ResourceClaimController,
    PodGroupProtection,
)
_NO_SETTINGS: Final = KubeletSettings()


class Life:
    """Runs controllers on one sandbox: `run()` until cancelled, or `start()` and `step()` by hand."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        rng: random.Random,
        *,
        controllers: Iterable[ControllerFactory] = DEFAULT_CONTROLLERS,
        kubelet: KubeletSettings = _NO_SETTINGS,
        most_pods: int = MOST_PODS,
        authority: str = "",
        gate: WebhookGate | None = None,
    ) -> None:
        """`most_pods`: controllers create none beyond; `authority`: the certificate of the API server, if any.

        Without a `gate` controllers ask no webhooks.
        """
        context = self.context = ControllerContext(api, clock, rng, ObjectIndex(), most_pods, authority, gate)
        self._clock = clock
        self.kubelet = Kubelet(context, kubelet)
        self._nodes = NodeController(context, kubelet)
        self._controllers: Sequence[Controller] = [
            self.kubelet,
            self._nodes,
            NodeLifecycleController(context, kubelet),
            TaintEvictionController(context),
            PodGarbageCollector(context, kubelet.lost_node_seconds),
            *(make(context) for make in controllers),
        ]
        self._interests = [controller.interests() for controller in self._controllers]
        self._interests_in: dict[str, list[tuple[int, Interest]]] = {}
        self._queue: WorkQueue[tuple[int, Key]] = WorkQueue()
        self._failures: dict[tuple[int, Key], int] = {}
        self._asking: dict[tuple[int, Key], asyncio.Task[None]] = {}
        """Keys of which a write waits for webhooks."""
        self._group: asyncio.TaskGroup | None = None
        """While it runs."""
        self._bell = asyncio.Event()
        self._asleep_until: float | None = None
        self._unfollow: Callable[[], None] | None = None

    async def run(self) -> None:
        """Live until cancelled."""
        self.start()
        store = self.context.api.store
        try:
            async with asyncio.TaskGroup() as self._group:
                while True:
                    if not store.is_writable:
                        await self._clock.sleep(_UNWRITABLE_SECONDS)
                    elif self.step(_STEPS_BEFORE_OTHERS) == _STEPS_BEFORE_OTHERS:
                        await self._clock.sleep(0)
                    else:
                        await self._rest(self._group)
        finally:
            self.stop()

    def start(self) -> None:
        """Take in what is stored and listen from now on."""
        if self._unfollow is None:
            self._unfollow = self.context.index.follow(self.context.api.store, self._mark)

    def stop(self) -> None:
        """Stop listening; what waits in the queue stays there."""
        if self._unfollow is not None:
            self._unfollow()
            self._unfollow = None
        for task in self._asking.values():
            task.cancel()

    def step(self, limit: int | None = None) -> int:
        """Handle what is due now, and what becomes due by that, at most `limit` keys; returns how many it were."""
        done = 0
        while limit is None or done < limit:
            item = self._queue.pop(self._clock.monotonic())
            if item is None:
                break
            self._reconcile(item)
            done += 1
        return done

    def on_read(self, resource: str, namespace: str | None, name: str, *, is_watch: bool) -> None:
        """Someone is about to read this (name "": all of it): write the heartbeats that are to be seen."""
        if resource not in HEARTBEATS or self._unfollow is None or not self.context.api.store.is_writable:
            return
        if self._nodes.on_read(resource, namespace, name, is_watch=is_watch):
            self._add(self._controllers.index(self._nodes), (Due(ALL_LEASES),))

    @property
    def next_due(self) -> float | None:
        """When (on the monotonic clock) the next key wants to be handled; None: nothing happens by itself."""
        return self._queue.next_due()

    def check(self) -> None:
        self._queue.check()
        self.context.index.check()

    def _mark(self, seen: ObservedChange) -> None:
        for number, interest in self._interested_in(seen.facts.key.resource):
            concerned = interest(seen)
            if concerned:
                self._add(number, concerned)

    def _add(self, number: int, concerned: Iterable[Due]) -> None:
        now = self._clock.monotonic()
        for key, after in concerned:
            self._queue.add((number, key), now + after)
            if self._asleep_until is None or now + after < self._asleep_until:
                self._bell.set()

    def _interested_in(self, resource: str) -> list[tuple[int, Interest]]:
        known = self._interests_in.get(resource)
        if known is None:
            known = self._interests_in[resource] = [
                (number, interests[name])
                for number, interests in enumerate(self._interests)
                for name in (resource, ALL_RESOURCES)
                if name in interests
            ]
        return known

    def _reconcile(self, item: tuple[int, Key]) -> None:
        number, key = item
        if item in self._asking:
            return
        try:
            again = self._controllers[number].reconcile(key)
        except AwaitsWebhooks as waiting:
            assert self._group is not None, "webhooks can be asked while the loop runs, and not step by step"
            self._asking[item] = self._group.create_task(self._ask(item, waiting.request))
        except JournalError:
            # Nothing is wrong with the key, and the journal has logged what is: all wait until it can write.
            self._queue.add(item, self._clock.monotonic() + _UNWRITABLE_SECONDS)
        except ApiError as error:
            if error.code != 409 and not _is_about_a_going_namespace(error):
                _log.warning("controller=%s key=%s rejected: %s", self._controllers[number].name, key, error)
            self._try_later(item)
        except Exception:
            _log.exception("controller=%s key=%s failed", self._controllers[number].name, key)
            self._try_later(item)
        else:
            self._failures.pop(item, None)
            if again is not None:
                self._queue.add(item, self._clock.monotonic() + max(again, 0.0))

    async def _ask(self, item: tuple[int, Key], request: Request) -> None:
        """Have a write carried out, and call the controller again: what comes after it was not done yet."""
        assert self.context.gate is not None
        try:
            await self.context.gate.carry_out(request)
        except Exception:
            _log.exception("webhooks could not be asked: %s", request)
            self._try_later(item)
        else:
            self._queue.add(item, self._clock.monotonic())
        finally:
            del self._asking[item]
            self._bell.set()

    def _try_later(self, item: tuple[int, Key]) -> None:
        failures = self._failures[item] = self._failures.get(item, 0) + 1
        delay = min(_FIRST_RETRY_SECONDS * 2.0 ** min(failures - 1, 20), _LONGEST_RETRY_SECONDS)
        # What it wrote before it failed has marked it again, for at once; that must not become a spin.
        self._queue.discard(item)
        self._queue.add(item, self._clock.monotonic() + delay)

    async def _rest(self, group: asyncio.TaskGroup) -> None:
        """Sleep until something is due or the bell rings."""
        self._bell.clear()
        self._asleep_until = self._queue.next_due()
        sleeper = None if self._asleep_until is None else group.create_task(self._ring_at(self._asleep_until))
        await self._bell.wait()
        if sleeper is not None:
            sleeper.cancel()

    async def _ring_at(self, due: float) -> None:
        await self._clock.sleep(max(due - self._clock.monotonic(), 0.0))
        self._bell.set()


def _is_about_a_going_namespace(error: ApiError) -> bool:
    """What is missing there is not missed: its owner goes too."""
    causes = (error.details or {}).get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
