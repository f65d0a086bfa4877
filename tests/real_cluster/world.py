"""What a test has: a server with nothing on it, a client that may do everything, and schedulers on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pilotage.model import KINDS

from .client import Client, Json, Refused
from .objects import condition
from .scheduler_process import SchedulerProcess
from .servers import Server, eventually

MADE_BY_SCHEDULERS = ("events", "resourceclaims", "leases")


class World:
    """One server for one test."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self.api = Client(server.admin, server.kinds)
        self._folder = folder
        self._schedulers: list[SchedulerProcess] = []

    # --- schedulers --------------------------------------------------------------------------------------------

    def start_scheduler(self, *arguments: str | Path, kubeconfig: Path | None = None) -> SchedulerProcess:
        """Start one that is alone and serves nothing; it may take a moment until it schedules."""
        return self.start_instance("--leader-elect=false", "--secure-port=0", *arguments, kubeconfig=kubeconfig)

    def start_instance(self, *arguments: str | Path, kubeconfig: Path | None = None) -> SchedulerProcess:
        """Start one with just these arguments."""
        log = self._folder / f"scheduler-{len(self._schedulers)}.log"
        process = SchedulerProcess(kubeconfig or self.server.scheduler, log, *arguments)
        self._schedulers.append(process)
        return process

    def end_schedulers(self) -> None:
        for process in self._schedulers:
            process.resume()
            if process.is_running:
                process.kill()

    def words(self) -> str:
        """What the schedulers said."""
        return "\n".join(f"--- {process.log.name}\n{process.said()}" for process in self._schedulers)

    # --- objects -----------------------------------------------------------------------------------------------

    def create(self, *objects: Json) -> None:
        for obj in objects:
            self.api.create(obj)

    def pod(self, name: str) -> Json:
        found = self.api.get("pods", name)
        assert found is not None, f"there is no pod {name}"
        return found

    def node_of(self, name: str) -> str:
        return str((self.api.get("pods", name) or {}).get("spec", {}).get("nodeName", ""))

    def events_of(self, name: str, reason: str) -> list[Json]:
        return [
            event
            for event in self.api.list("events")
            if event["regarding"].get("name") == name and event["reason"] == reason
        ]

    # --- waiting -----------------------------------------------------------------------------------------------

    def wait_bound(self, *names: str) -> list[str]:
        """The nodes on which the pods are, when all are on one."""
        return [eventually(f"{name} is bound", lambda name=name: self.node_of(name)) for name in names]

    def wait_refused(self, *names: str) -> list[Json]:
        """The PodScheduled conditions of pods that were tried and do not fit."""
        return [eventually(f"{name} is refused", lambda name=name: self._refusal(name)) for name in names]

    def wait_event(self, name: str, reason: str) -> Json:
        found: list[Json] = eventually(f"event {reason} of {name}", lambda: self.events_of(name, reason))
        return found[0]

    def _refusal(self, name: str) -> Json | None:
        found = condition(self.pod(name), "PodScheduled")
        return found if found is not None and found.get("reason") == "Unschedulable" else None

    # --- the end -----------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Leave an empty server to the next test."""
        made = self.api.created_in | {"pods", *MADE_BY_SCHEDULERS}
        for plural in KINDS:
            if plural in made and plural != "namespaces":
                self._clear(plural)

    def _clear(self, plural: str) -> None:
        try:
            found = self.api.list(plural)
        except Refused as refused:
            if refused.code == 404:
                return
            raise
        kept = [obj for obj in found if _is_part_of_the_server(plural, obj["metadata"]["name"])]
        for obj in found:
            if obj["metadata"].get("finalizers"):
                self._release(plural, obj["metadata"])
        if kept:
            for obj in found:
                if obj not in kept:
                    self.api.delete(plural, obj["metadata"]["name"], grace=0)
        else:
            for namespace in {obj["metadata"].get("namespace") for obj in found}:
                self.api.delete_all(plural, namespace)

    def _release(self, plural: str, metadata: dict[str, Any]) -> None:
        namespace = metadata.get("namespace", "")
        self.api.patch(plural, metadata["name"], {"metadata": {"finalizers": None}}, namespace=namespace)


def _is_part_of_the_server(plural: str, name: str) -> bool:
    return name.startswith("system-") or (plural, name) == ("services", "kubernetes")
