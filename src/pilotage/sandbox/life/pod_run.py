"""One look at a pod on its node: what its containers have done since the last one, written into its status.

    init containers one after the other; sidecars (restartPolicy Always) stay and let the next begin
        -> one fails: restarted after a back-off, or (restartPolicy Never) the pod has failed
    then all main containers
        -> one exits: restarted after a back-off, or it stays so, as the restartPolicy says
        -> all have exited for good: Succeeded or Failed, and the sidecars end
    activeDeadlineSeconds: everything ends, whatever it does

The status says what was; when exactly a container started or may restart is kept beside it (`ContainerTimes`), because
timestamps have whole seconds. After a restart of the sandbox they are read off the status.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from pilotage.sandbox.life import pod_status
from pilotage.sandbox.life.pod_status import Object, Transition
from pilotage.sandbox.life.probes import UNPROBED, Probed

FIRST_BACKOFF_SECONDS: Final = 10.0
LONGEST_BACKOFF_SECONDS: Final = 300.0
_KILLED: Final = 137

Progress: TypeAlias = Literal["running", "waiting", "done"]


@dataclass(slots=True)
class ContainerTimes:
    """On the monotonic clock."""

    started_at: float | None = None
    restart_at: float | None = None


@dataclass(slots=True)
class PodRunTimes:
    """What is known about the times of one pod."""

    admitted_at: float | None = None
    containers: dict[str, ContainerTimes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """What a container does by itself."""

    run_seconds: float | None = None
    exit_code: int = 0
    probed: Probed = UNPROBED
    message: str = ""
    """What it leaves behind for those who ask why it ended."""


@dataclass(frozen=True, slots=True)
class PodMoment:
    """Now, on both clocks."""

    monotonic: float
    transition: Transition
    to_monotonic: Callable[[str], float]
    """Of a timestamp in a status."""


class PodRun:
    """Moves one pod on."""

    def __init__(
        self, pod: Object, times: PodRunTimes, moment: PodMoment, plan: Callable[[str, Object], ContainerPlan]
    ) -> None:
        """`plan` is asked with the kind of the container (init, sidecar, main, ephemeral) and the container."""
        self._pod = pod
        self._spec: Object = pod["spec"]
        self._status: Object = pod.setdefault("status", {})
        self._times = times
        self._moment = moment
        self._plan = plan
        self._policy = str(self._spec.get("restartPolicy") or "Always")
        self.killed: list[tuple[str, str]] = []
        """Containers that were killed, and the probes that they had failed."""
        self.due: float | None = None
        """When (on the monotonic clock) the next thing happens by itself."""

    def advance(self) -> None:
        """Bring the status up to now."""
        pod_status.settle(self._pod, self._moment.transition)
        if self._times.admitted_at is None:
            self._times.admitted_at = self._moment.to_monotonic(self._status["startTime"])
        if self._is_over_its_deadline():
            message = "Pod was active on the node longer than the specified deadline"
            pod_status.kill(self._pod, self._moment.transition, _KILLED)
            self._status.update(reason="DeadlineExceeded", message=message)
            self.due = None
            return
        failed = self._advance_init_containers()
        if failed is not None:
            if failed:
                pod_status.fail_before_start(self._pod, self._moment.transition)
                self.due = None
            else:
                pod_status.show_initializing(self._pod, self._moment.transition)
            return
        self._advance_main_containers()

    def _is_over_its_deadline(self) -> bool:
        seconds = self._spec.get("activeDeadlineSeconds")
        if seconds is None or self._times.admitted_at is None:
            return False
        deadline = self._times.admitted_at + seconds
        if deadline <= self._moment.monotonic:
            return True
        self._look_again_at(deadline)
        return False

    def _advance_init_containers(self) -> bool | None:
        """None: all are done; else whether one has failed for good."""
        for container in self._spec.get("initContainers") or ():
            is_sidecar = container.get("restartPolicy") == "Always"
            kind = "sidecar" if is_sidecar else "init"
            progress, code = self._advance("initContainerStatuses", kind, container)
            if progress == "done" and code:
                return True
            if progress != ("running" if is_sidecar else "done"):
                return False
        return None

    def _advance_main_containers(self) -> None:
        main = self._spec["containers"]
        outcomes = [self._advance("containerStatuses", "main", container) for container in main]
        for container in self._spec.get("ephemeralContainers") or ():
            self._advance("ephemeralContainerStatuses", "ephemeral", container)
        if all(progress == "done" for progress, _ in outcomes):
            pod_status.finish(self._pod, self._moment.transition, max(code for _, code in outcomes))
            self.due = None
            return
        self._status["phase"] = "Running"
        pod_status.show_running(self._pod, self._moment.transition, self._ready_names(main))

    def _ready_names(self, containers: Sequence[Object]) -> list[str]:
        ready = []
        for container in containers:
            times, probed = self._times.containers[container["name"]], self._plan("main", container).probed
            state = pod_status.status_of(self._pod, "containerStatuses", container)["state"]
            if "running" not in state or probed.ready_after is None or times.started_at is None:
                continue
            is_over = probed.unready_after is not None and self._has_come(times.started_at, probed.unready_after)
            if self._has_come(times.started_at, probed.ready_after) and not is_over:
                ready.append(container["name"])
        return ready

    def _advance(self, field_name: str, kind: str, container: Object) -> tuple[Progress, int]:
        """Move one container on; how it is, and the exit code if it is done."""
        status = pod_status.status_of(self._pod, field_name, container)
        times = self._times.containers.setdefault(container["name"], ContainerTimes())
        now = self._moment.monotonic
        if not pod_status.may_run(status):
            if times.restart_at is not None and now < times.restart_at:
                self._look_again_at(times.restart_at)
                return "waiting", 0
        elif "terminated" in status["state"]:
            return self._after_exit(kind, status, times)
        if "running" not in status["state"]:
            pod_status.run(status, self._moment.transition.now)
            times.started_at, times.restart_at = now, None
        if times.started_at is None:
            times.started_at = self._moment.to_monotonic(status["state"]["running"]["startedAt"])
        if pod_status.refresh(status, container):
            times.started_at = now
            pod_status.restart(status, self._moment.transition.now)
        plan = self._plan(kind, container)
        status["started"] = self._has_come(times.started_at, plan.probed.started_after)
        killed_after = plan.probed.killed_after if kind != "init" else None
        if killed_after is not None and (plan.run_seconds is None or killed_after < plan.run_seconds):
            if not self._has_come(times.started_at, killed_after):
                return "running", 0
            self.killed.append((container["name"], plan.probed.killed_by))
            pod_status.terminate(status, self._moment.transition.now, _KILLED)
            return self._after_exit(kind, status, times)
        if plan.run_seconds is None:
            return "running", 0
        if not self._has_come(times.started_at, plan.run_seconds):
            return "running", 0
        pod_status.terminate(status, self._moment.transition.now, plan.exit_code, plan.message)
        return self._after_exit(kind, status, times)

    def _has_come(self, begin: float, after: float) -> bool:
        """Whether a time has come; if not, the pod is looked at again then."""
        if begin + after <= self._moment.monotonic:
            return True
        self._look_again_at(begin + after)
        return False

    def _after_exit(self, kind: str, status: Object, times: ContainerTimes) -> tuple[Progress, int]:
        code = int(status["state"]["terminated"].get("exitCode") or 0)
        if not self._restarts(kind, code):
            return "done", code
        doublings = min(int(status.get("restartCount") or 0), 10)
        backoff = min(FIRST_BACKOFF_SECONDS * 2.0**doublings, LONGEST_BACKOFF_SECONDS)
        pod_status.back_off(status, backoff)
        times.restart_at = self._moment.monotonic + backoff
        self._look_again_at(times.restart_at)
        return "waiting", 0

    def _restarts(self, kind: str, code: int) -> bool:
        if kind == "sidecar":
            return True
        if kind == "ephemeral":
            return False
        return (self._policy == "Always" and (kind == "main" or code != 0)) or (
            self._policy == "OnFailure" and code != 0
        )

    def _look_again_at(self, due: float) -> None:
        self.due = due if self.due is None else min(self.due, due)
