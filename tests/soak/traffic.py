"""Pods that come and go: a thread that creates them, and deletes the oldest bound ones so that there is room again."""

from __future__ import annotations

import threading
from collections import deque
from http.client import HTTPException

from tests.real_cluster.client import Client, Refused
from tests.real_cluster.objects import pod
from tests.soak.witness import POD_MILLIS, Witness

_DEPLOYMENTS = 50


class Traffic:
    """Used as a context; keeps about `most` pods in the cluster."""

    def __init__(
        self,
        client: Client,
        witness: Witness,
        *,
        most: int,
        pause_seconds: float,
        total: int = 0,
        prefix: str = "p",
    ) -> None:
        """`total` is when to stop creating (0: never), `prefix` begins the names."""
        self._client = client
        self._witness = witness
        self._most = most
        self._pause_seconds = pause_seconds
        self._total = total
        self._prefix = prefix
        self._alive: deque[str] = deque()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._flow, name="traffic", daemon=True)
        self.created = 0

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(timeout=30)

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()

    def _flow(self) -> None:
        while not self._is_over.is_set() and not (self._total and self.created >= self._total):
            try:
                self._step()
            except (OSError, HTTPException, Refused):
                self._is_over.wait(0.2)
            self._is_over.wait(self._pause_seconds)

    def _step(self) -> None:
        if len(self._alive) < self._most:
            self.created += 1
            name = f"{self._prefix}{self.created:07}"
            made = pod(name, cpu=f"{POD_MILLIS}m")
            # As the pods of a few Deployments are: many of a kind.
            made["metadata"]["labels"] = {"app": f"app-{self.created % _DEPLOYMENTS}"}
            self._client.create(made)
            self._alive.append(name)
        elif self._witness.has_bound(self._alive[0]):
            self._client.delete("pods", self._alive.popleft(), grace=0)
        else:
            self._is_over.wait(0.01)
