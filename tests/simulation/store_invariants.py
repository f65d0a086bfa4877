"""What must hold in the API server after every write, worked out from the objects alone.

    home         a pod has at most one node and keeps it
    overcommit   requests, number of pods, host ports of the pods on a node, at the moment of each binding
    volumes      a ReadWriteOncePod claim has one user; a bound pod's volumes are bound and reachable from its node
    devices      a device is allocated to one claim; a bound pod's claims are allocated, and reserved for it
    quota        what Workloads hold, by ClusterQueue and by cohort

Deliberately naive: sums over everything that is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pilotage.sandbox.storage.records import Change, Key
from pilotage.sandbox.storage.store import Store
from tests.simulation.history import History
from tests.simulation.objects import HOSTNAME, Json

CLAIMS, WORKLOADS = "resourceclaims.resource.k8s.io", "workloads.kueue.x-k8s.io"
QUEUES = "clusterqueues.kueue.x-k8s.io"


class StoreInvariants:
    """Listens to a store."""

    def __init__(self, store: Store, history: History) -> None:
        self._store = store
        self._history = history
        self.bindings = 0
        self._lost: set[str] = set()
        """Pods whose node was deleted under them: their volumes count as free, as they do for kube-scheduler."""
        store.subscribe("nodes", self._node_changed)
        store.subscribe("pods", self._pod_changed)
        store.subscribe(CLAIMS, self._claim_changed)
        store.subscribe(WORKLOADS, self._workload_changed)

    def _node_changed(self, change: Change) -> None:
        self._note(change)
        if change.type == "DELETED":
            name = change.record.key.name
            self._lost |= {pod["metadata"]["uid"] for pod in self._living_pods() if pod["spec"].get("nodeName") == name}

    # --- pods --------------------------------------------------------------------------------------------------

    def _pod_changed(self, change: Change) -> None:
        self._note(change)
        if change.type != "MODIFIED" or change.previous is None:
            return
        pod = change.record.object()
        before, after = change.previous.object()["spec"].get("nodeName", ""), pod["spec"].get("nodeName", "")
        if before and before != after:
            self._history.violated("home", f"pod {change.record.key.name} moved from {before} to {after or 'nowhere'}")
        if after and not before:
            self.bindings += 1
            self._bound(pod, after)

    def _bound(self, pod: Json, node_name: str) -> None:
        node = self._store.get(Key("nodes", "", node_name))
        others = [one for one in self._living_pods() if one["spec"].get("nodeName") == node_name]
        if node is not None:
            self._check_room(node.object(), others)
        self._check_volumes(pod, node_name)
        self._check_devices(pod, node_name)
        self._check_anti_affinity(pod, others)

    def _living_pods(self) -> Iterator[Json]:
        for record in self._store.list("pods"):
            pod = record.object()
            if pod["status"].get("phase") not in ("Succeeded", "Failed"):
                yield pod

    def _check_room(self, node: Json, pods: list[Json]) -> None:
        used = Counter({"pods": len(pods)})
        ports: Counter[int] = Counter()
        for pod in pods:
            for container in pod["spec"]["containers"]:
                requests = (container.get("resources") or {}).get("requests") or {}
                used["cpu"] += cpu_millis(requests.get("cpu", "0"))
                used["memory"] += mebibytes(requests.get("memory", "0Mi"))
                ports.update(port["hostPort"] for port in container.get("ports") or () if port.get("hostPort"))
        room = node["status"]["allocatable"]
        limits = {"cpu": cpu_millis(room["cpu"]), "memory": mebibytes(room["memory"]), "pods": int(room["pods"])}
        name, names = node["metadata"]["name"], [pod["metadata"]["name"] for pod in pods]
        for resource, limit in limits.items():
            if used[resource] > limit:
                self._history.violated("overcommit", f"{resource} of {name}: {used[resource]} of {limit} by {names}")
        for port, count in ports.items():
            if count > 1:
                self._history.violated("overcommit", f"host port {port} of {name} has {count} users among {names}")

    def _check_volumes(self, pod: Json, node_name: str) -> None:
        for claim_name in claims_of(pod):
            record = self._store.get(Key("persistentvolumeclaims", "default", claim_name))
            if record is None:
                continue
            claim = record.object()
            volume = claim["spec"].get("volumeName", "")
            stored = self._store.get(Key("persistentvolumes", "", volume)) if volume else None
            if not volume or claim["status"].get("phase") != "Bound":
                self._history.violated("volumes", f"pod {pod['metadata']['name']} is bound before {claim_name} is")
            elif stored is not None and not self._is_reachable(stored.object(), node_name):
                self._history.violated("volumes", f"{volume} of {claim_name} cannot be used on {node_name}")
            if claim["spec"]["accessModes"] == ["ReadWriteOncePod"]:
                living = [one for one in self._living_pods() if one["metadata"]["uid"] not in self._lost]
                placed = [one for one in living if one["spec"].get("nodeName")]
                users = [one["metadata"]["name"] for one in placed if claim_name in claims_of(one)]
                if len(users) > 1:
                    self._history.violated("volumes", f"ReadWriteOncePod claim {claim_name} is used by {users}")

    def _is_reachable(self, volume: Json, node_name: str) -> bool:
        record = self._store.get(Key("nodes", "", node_name))
        required = (volume["spec"].get("nodeAffinity") or {}).get("required")
        if record is None or required is None:
            return True
        labels = record.object()["metadata"].get("labels") or {}
        expressions = [one for term in required["nodeSelectorTerms"] for one in term["matchExpressions"]]
        # Labels of zones change in these worlds, and volumes stay where they are: only what is on a node counts.
        return all(labels.get(one["key"]) in one["values"] for one in expressions if one["key"] == HOSTNAME)

    # --- devices -----------------------------------------------------------------------------------------------

    def _check_devices(self, pod: Json, node_name: str) -> None:
        wanted = pod["spec"].get("resourceClaims") or ()
        generated = {
            one["name"]: one.get("resourceClaimName") for one in pod["status"].get("resourceClaimStatuses") or ()
        }
        for reference in wanted:
            name = reference.get("resourceClaimName") or generated.get(reference["name"])
            record = self._store.get(Key(CLAIMS, "default", name)) if name else None
            if record is None:
                continue
            status = record.object().get("status") or {}
            reserved = {one["uid"] for one in status.get("reservedFor") or ()}
            if not status.get("allocation") or pod["metadata"]["uid"] not in reserved:
                state = f"allocated: {bool(status.get('allocation'))}, reserved for {sorted(reserved)}"
                self._history.violated("devices", f"pod {pod['metadata']['name']} is bound, its claim {name} {state}")
            for result in devices_of(status):
                if result["pool"] != f"slice-{node_name}":
                    text = (
                        f"pod {pod['metadata']['name']} is on {node_name}, {result['pool']}/{result['device']} is not"
                    )
                    self._history.violated("devices", text)

    def _claim_changed(self, change: Change) -> None:
        self._note(change)
        owners: dict[tuple[str, str], str] = {}
        for record in self._store.list(CLAIMS):
            for result in devices_of(record.object().get("status") or {}):
                device = (result["pool"], result["device"])
                other = owners.setdefault(device, record.key.name)
                if other != record.key.name:
                    self._history.violated("devices", f"{device} is allocated to {other} and {record.key.name}")

    # --- placement rules ---------------------------------------------------------------------------------------

    def _check_anti_affinity(self, pod: Json, others: list[Json]) -> None:
        if "affinity" not in pod["spec"]:
            return
        app = pod["metadata"]["labels"]["app"]
        same = [one["metadata"]["name"] for one in others if one["metadata"]["labels"].get("app") == app]
        if len(same) > 1:
            self._history.violated("anti-affinity", f"{same} are on one node")

    # --- quota -------------------------------------------------------------------------------------------------

    def _workload_changed(self, change: Change) -> None:
        self._note(change)
        used = quota_used(self._store)
        cohorts: dict[str, list[int]] = {}
        for record in self._store.list(QUEUES):
            spec = record.object()["spec"]
            nominal = nominal_cpu(spec)
            cohort = spec.get("cohortName") or spec.get("cohort") or f"alone {record.key.name}"
            total = cohorts.setdefault(cohort, [0, 0])
            total[0] += used[record.key.name]
            total[1] += nominal
        for cohort, (usage, limit) in cohorts.items():
            if usage > limit:
                self._history.violated("quota", f"{cohort}: {usage}m of {limit}m cpu after {change.record.key}")

    def _note(self, change: Change) -> None:
        what = {"ADDED": "+", "MODIFIED": "~", "DELETED": "-"}[change.type]
        self._history.note("store", f"{what} {change.record.key.resource} {change.record.key.name} @{change.revision}")


def quota_used(store: Store) -> Counter[str]:
    """CPU in thousandths that Workloads hold, by ClusterQueue."""
    used: Counter[str] = Counter()
    for record in store.list(WORKLOADS):
        status = record.object().get("status") or {}
        admission = status.get("admission")
        if not admission or not has_condition(status, "QuotaReserved") or has_condition(status, "Finished"):
            continue
        done = {one["name"]: one["count"] for one in status.get("reclaimablePods") or ()}
        for pod_set in admission["podSetAssignments"]:
            count = pod_set.get("count", 0)
            usage = cpu_millis((pod_set.get("resourceUsage") or {}).get("cpu", "0"))
            left = max(0, count - done.get(pod_set["name"], 0))
            used[admission["clusterQueue"]] += usage * left // count if count else usage
    return used


def nominal_cpu(spec: Json) -> int:
    flavors = [flavor for group in spec["resourceGroups"] for flavor in group["flavors"]]
    amounts = [one for flavor in flavors for one in flavor["resources"] if one["name"] == "cpu"]
    return sum(cpu_millis(str(one["nominalQuota"])) for one in amounts)


def has_condition(status: Json, kind: str) -> bool:
    return any(one["type"] == kind and one["status"] == "True" for one in status.get("conditions") or ())


def claims_of(pod: Json) -> list[str]:
    volumes = pod["spec"].get("volumes") or ()
    return [one["persistentVolumeClaim"]["claimName"] for one in volumes if "persistentVolumeClaim" in one]


def devices_of(claim_status: Json) -> list[Any]:
    allocation = claim_status.get("allocation") or {}
    return list((allocation.get("devices") or {}).get("results") or ())


def cpu_millis(text: str) -> int:
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


def mebibytes(text: str) -> int:
    return int(text[:-2]) * 1024 if text.endswith("Gi") else int(text.removesuffix("Mi"))
