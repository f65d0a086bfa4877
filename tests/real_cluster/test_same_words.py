"""What people and tools read of a pod is the same, whether Pilotage or kube-scheduler wrote it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.bench.control_plane import ControlPlane
from pilotage.bench.program import ServerProgram

from .claims import device_claim, device_class, pod_with_device, pod_with_volume
from .client import Json
from .objects import condition, node, pod, taint
from .servers import RealServer, eventually
from .world import World

LEFT_OUT = ("lastTransitionTime", "lastProbeTime")
NO_LONGER_SAID = ("no new claims to deallocate, ", "still not schedulable, ")
EVENT_FIELDS = ("action", "note", "reason", "reportingController", "type")
ANTI_AFFINITY: Json = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "resident"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}
SPREAD: Json = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "spread"}},
}
REFUSED_PODS = {
    "too-large": pod("too-large", cpu="64"),
    "picky": pod("picky", nodeSelector={"disk": "ssd"}),
    "pinned": pod("pinned", nodeSelector={"kubernetes.io/hostname": "nowhere"}),
    "shy": pod("shy", affinity=ANTI_AFFINITY),
    "spread": pod("spread", topologySpreadConstraints=[SPREAD]),
    "no-claim": pod_with_volume("no-claim", "missing"),
    "no-device": pod_with_device("no-device", "wanted"),
}


@pytest.mark.real_server
@pytest.mark.parametrize("name", REFUSED_PODS)
def test_rejections_are_reported_in_the_words_of_kube_scheduler(world: World, tmp_path: Path, name: str) -> None:
    theirs = program(world, tmp_path)
    try:
        wanted = outcome(world, name)
    finally:
        theirs.stop()
    world.clear()
    world.start_scheduler()
    assert outcome(world, name) == wanted


def outcome(world: World, name: str) -> dict[str, Any]:
    """The pod's condition and events when it has been tried."""
    world.create(node("a"), node("b", taints=[taint("dedicated", "db")]), device_class(), device_claim("wanted"))
    world.create(pod("resident", nodeName="a"), REFUSED_PODS[name])
    rejection: Json = eventually(f"{name} is refused", lambda: _refusal(world, name))
    event = world.wait_event(name, "FailedScheduling")
    return {
        "condition": {key: _current(value) for key, value in rejection.items() if key not in LEFT_OUT},
        "event": {key: _current(event[key]) for key in EVENT_FIELDS},
        "fields": sorted(event.keys() - {"series"}),
    }


def _current(said: Any) -> Any:
    """Without what kube-scheduler no longer says in 1.37, whose words are ours."""
    for phrase in NO_LONGER_SAID:
        said = said.replace(phrase, "") if isinstance(said, str) else said
    return said


def _refusal(world: World, name: str) -> Json | None:
    found = condition(world.pod(name), "PodScheduled")
    return found if found is not None and found["status"] == "False" else None


def program(world: World, folder: Path) -> ServerProgram:
    """kube-scheduler, running."""
    assert isinstance(world.server, RealServer), "kube-scheduler needs a real API server"
    plane: ControlPlane = world.server.plane
    binary = plane.assets.kube_scheduler
    if binary is None:
        pytest.skip("there is no kube-scheduler among the assets")
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(plane.scheduler)},
        "leaderElection": {"leaderElect": False},
    }
    file = folder / "kube-scheduler.yaml"
    file.write_text(yaml.safe_dump(configuration))
    made = ServerProgram([binary, f"--config={file}", "--secure-port=0"], folder / "kube-scheduler.log")
    made.start()
    return made
