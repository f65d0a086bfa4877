"""How fast pods decode and how much memory the kept ones take.

    python benchmarks/decode_pods.py [--pods 100000] [--templates 200] [--mode list|watch|single] [--seed 1]

Writes pods as a real API server sends them (about 4 KB each: managed fields, environment, probes, a token volume with
a random name, status with conditions and container statuses), then decodes them in a fresh process, so that the memory
is that of the kept pods alone. Targets: at least 30,000 pods/s, at most 400 MB for 100,000 pods.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pilotage.clock import cpu_seconds, perf_seconds, rfc3339
from pilotage.model.kinds import KINDS

PAGE = 500
EPOCH = 1_760_000_000
SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def main() -> None:
    options = _parse_arguments()
    if options.decode:
        _decode_file(Path(options.decode), options.mode)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pods.bin"
        size = write_pods(path, options)
        print(f"{options.pods} pods of {options.templates} templates, {size / options.pods:.0f} bytes each")
        command = [sys.executable, __file__, "--decode", str(path), "--mode", options.mode]
        subprocess.run(command, check=True)


def write_pods(path: Path, options: argparse.Namespace) -> int:
    """Write list pages or batches of watch lines, each after its length; return the bytes of all pods."""
    rng = random.Random(options.seed)
    templates = [Template(rng, number) for number in range(options.templates)]
    total = 0
    with path.open("wb") as file:
        for start in range(0, options.pods, PAGE):
            pods = [templates[rng.randrange(len(templates))].pod(rng) for _ in range(min(PAGE, options.pods - start))]
            total += sum(map(len, pods))
            for chunk in _chunks(pods, options.mode):
                file.write(len(chunk).to_bytes(8, "big") + chunk)
    return total


def _chunks(pods: list[bytes], mode: str) -> list[bytes]:
    if mode == "single":
        return pods
    if mode == "watch":
        return [b"".join(b'{"type":"ADDED","object":' + pod + b"}\n" for pod in pods)]
    head = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"42","continue":"x"},"items":['
    return [head + b",".join(pods) + b"]}"]


def _decode_file(path: Path, mode: str) -> None:
    kind = KINDS["pods"]
    kept: list[Any] = []
    before = _resident_bytes()
    wall, cpu = 0.0, 0.0
    with path.open("rb") as file:
        while length := int.from_bytes(file.read(8), "big"):
            chunk = file.read(length)
            wall_start, cpu_start = perf_seconds(), cpu_seconds()
            if mode == "single":
                kept.append(kind.decode(chunk))
            elif mode == "watch":
                kept += [event.object for event in kind.decode_events(chunk)]
            else:
                kept += kind.decode_list(chunk).items
            wall += perf_seconds() - wall_start
            cpu += cpu_seconds() - cpu_start
    grown = _resident_bytes() - before
    print(f"{mode}: {len(kept) / wall:,.0f} pods/s ({len(kept) / cpu:,.0f} per CPU second)")
    print(f"memory of the kept pods: {grown / 1e6:,.0f} MB, {len({id(pod.spec) for pod in kept})} distinct specs")


class Template:
    """What the pods of one workload have in common."""

    def __init__(self, rng: random.Random, number: int) -> None:
        self.name = f"{rng.choice(['web', 'api', 'worker', 'cache', 'billing'])}-{number}"
        self.namespace = f"team-{number % 20}"
        self.hash = _suffix(rng, 9)
        self.owner_uid = _uid(rng)
        self.cpu = f"{rng.choice([50, 100, 250, 500, 1000])}m"
        self.memory = f"{rng.choice([64, 128, 256, 512, 2048])}Mi"
        self.has_sidecar = number % 3 == 0
        self.spreads = number % 2 == 0

    def pod(self, rng: random.Random) -> bytes:
        name = f"{self.name}-{self.hash}-{_suffix(rng, 5)}"
        token = f"kube-api-access-{_suffix(rng, 5)}"
        started = EPOCH + rng.randrange(5_000_000)
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": self._metadata(rng, name, started),
            "spec": self._spec(rng, token),
            "status": self._status(rng, started),
        }
        return json.dumps(body, separators=(",", ":")).encode()

    def _metadata(self, rng: random.Random, name: str, started: int) -> dict[str, Any]:
        controller, kubelet = ({"f:metadata": {"f:labels": {".": {}, "f:app": {}}}}, {"f:status": {"f:conditions": {}}})
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{self.name}-{self.hash}"}
        return {
            "name": name,
            "generateName": f"{self.name}-{self.hash}-",
            "namespace": self.namespace,
            "uid": _uid(rng),
            "resourceVersion": str(rng.randrange(10**9)),
            "generation": 1,
            "creationTimestamp": rfc3339(started),
            "labels": {"app": self.name, "pod-template-hash": self.hash, "tier": "backend", "version": "v1"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
            "ownerReferences": [{**owner, "uid": self.owner_uid, "controller": True, "blockOwnerDeletion": True}],
            "managedFields": [
                _managed("kube-controller-manager", started, controller, ""),
                _managed("kubelet", started + 5, kubelet, "status"),
            ],
        }

    def _spec(self, rng: random.Random, token: str) -> dict[str, Any]:
        spec = {
            "volumes": [
                {"name": "config", "configMap": {"name": f"{self.name}-config", "defaultMode": 420}},
                {"name": "scratch", "emptyDir": {}},
                {"name": token, "projected": {"sources": _token_sources(), "defaultMode": 420}},
            ],
            "containers": [self._container("app", token)] + [self._container("proxy", token)] * self.has_sidecar,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "serviceAccount": "default",
            "nodeName": f"node-{rng.randrange(5000):04d}",
            "securityContext": {"runAsNonRoot": True, "fsGroup": 2000},
            "schedulerName": "default-scheduler",
            "tolerations": [_not_ready_toleration("not-ready"), _not_ready_toleration("unreachable")],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        }
        if self.spreads:
            spec["affinity"] = {"podAntiAffinity": _prefer_other_nodes(self.name)}
            spec["topologySpreadConstraints"] = [_spread(self.name)]
        return spec

    def _container(self, name: str, token: str) -> dict[str, Any]:
        amounts = {"cpu": self.cpu, "memory": self.memory}
        return {
            "name": name,
            "image": f"registry.example.com/{self.namespace}/{self.name}:v1.2.3",
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "env": [
                {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
                {"name": "LOG_LEVEL", "value": "info"},
                {"name": "DATABASE_URL", "value": f"postgres://{self.name}.{self.namespace}.svc:5432/main"},
            ],
            "resources": {"limits": amounts, "requests": amounts},
            "volumeMounts": [
                {"name": "config", "mountPath": "/etc/config"},
                {"name": token, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
            ],
            "livenessProbe": _probe("/healthz"),
            "readinessProbe": _probe("/ready"),
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "IfNotPresent",
        }

    def _status(self, rng: random.Random, started: int) -> dict[str, Any]:
        types = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
        times = {"lastProbeTime": None, "lastTransitionTime": rfc3339(started + 3)}
        address = f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)}"
        return {
            "observedGeneration": 1,
            "phase": "Running",
            "conditions": [{"type": kind, "observedGeneration": 1, "status": "True", **times} for kind in types],
            "hostIP": "192.168.0.7",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": rfc3339(started + 1),
            "containerStatuses": [self._container_status(rng, "app", started)],
            "qosClass": "Guaranteed",
        }

    def _container_status(self, rng: random.Random, name: str, started: int) -> dict[str, Any]:
        amounts = {"cpu": self.cpu, "memory": self.memory}
        image = f"registry.example.com/{self.namespace}/{self.name}"
        return {
            "name": name,
            "state": {"running": {"startedAt": rfc3339(started + 4)}},
            "lastState": {},
            "ready": True,
            "restartCount": 0,
            "image": f"{image}:v1.2.3",
            "imageID": f"{image}@sha256:{rng.getrandbits(256):064x}",
            "containerID": f"containerd://{rng.getrandbits(256):064x}",
            "started": True,
            "allocatedResources": amounts,
            "resources": {"limits": amounts, "requests": amounts},
        }


def _managed(manager: str, when: int, fields: dict[str, Any], subresource: str) -> dict[str, Any]:
    entry = {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": rfc3339(when)}
    return {**entry, "fieldsType": "FieldsV1", "fieldsV1": fields, "subresource": subresource}


def _token_sources() -> list[dict[str, Any]]:
    return [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]


def _not_ready_toleration(state: str) -> dict[str, Any]:
    key = f"node.kubernetes.io/{state}"
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


def _prefer_other_nodes(app: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}


def _spread(app: str) -> dict[str, Any]:
    rule = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
    return {**rule, "labelSelector": {"matchLabels": {"app": app}}}


def _probe(path: str) -> dict[str, Any]:
    timing = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    return {"httpGet": {"path": path, "port": 8080, "scheme": "HTTP"}, "initialDelaySeconds": 5, **timing}


def _suffix(rng: random.Random, length: int) -> str:
    return "".join(rng.choices(SUFFIX_LETTERS, k=length))


def _uid(rng: random.Random) -> str:
    digits = f"{rng.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _resident_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("the memory of a process can be read on Linux only")


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How fast pods decode and how much memory the kept ones take.")
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--templates", type=int, default=200)
    parser.add_argument("--mode", choices=("list", "watch", "single"), default="list")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--decode", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
