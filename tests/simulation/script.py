"""What people, autoscalers and machines do to a world, drawn from a seed: nodes, pods, claims, Jobs come and go.

Nodes keep their size: who shrinks a node under its pods overcommits it, whatever the scheduler does.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec

from pilotage.sandbox.api import Api
from pilotage.sandbox.errors import ApiError
from tests.simulation import objects
from tests.simulation.history import History
from tests.simulation.objects import Json

CLAIMS, SLICES = "resourceclaims.resource.k8s.io", "resourceslices.resource.k8s.io"
TEMPLATES = "resourceclaimtemplates.resource.k8s.io"
POD_GROUPS = "podgroups.scheduling.k8s.io"
MOST_PODS = 24
PRIORITIES = {"low": 0, "mid": 100, "high": 1000}
Later = Callable[[float, Callable[[], None]], None]


class Script:
    """One world; `step` lets something happen."""

    def __init__(self, api: Api, rng: random.Random, history: History, later: Later, *, has_groups: bool) -> None:
        self._api = api
        self._rng = rng
        self._history = history
        self._later = later
        self._born = 0
        self.has_queues = rng.random() < 0.6
        self.has_groups = has_groups
        self._nodes: dict[str, Json] = {}
        self._slices: dict[str, Json] = {}

    # --- the beginning -----------------------------------------------------------------------------------------

    def begin(self) -> None:
        rng = self._rng
        for name, value in PRIORITIES.items():
            self._create("priorityclasses.scheduling.k8s.io", {"metadata": {"name": name}, "value": value}, "")
        self._create("deviceclasses.resource.k8s.io", {"metadata": {"name": "gpu"}, "spec": {}}, "")
        self._create(TEMPLATES, {"metadata": {"name": "one"}, "spec": {"spec": objects.device_request()}})
        self._create(TEMPLATES, {"metadata": {"name": "two"}, "spec": {"spec": objects.device_request(2)}})
        local = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
        self._create("storageclasses.storage.k8s.io", {"metadata": {"name": "local"}, **local}, "")
        for number in range(rng.randint(3, 8)):
            self._add_node(f"n{number}")
        if self.has_queues:
            self._add_queues()
        for _ in range(rng.randint(3, 12)):
            self.step(self._arrivals())

    def _add_node(self, name: str) -> None:
        rng = self._rng
        self._nodes[name] = objects.node(name, rng.choice(["east", "west"]), rng.choice([2, 4]), rng.choice([4, 8]))
        self._create("nodes", self._nodes[name], "")
        if rng.random() < 0.5:
            self._slices[name] = objects.resource_slice(f"slice-{name}", name, rng.randint(1, 3))
            self._create(SLICES, self._slices[name], "")
        if rng.random() < 0.5:
            self._create("persistentvolumes", objects.local_volume(f"pv-{name}", name), "")

    def _add_queues(self) -> None:
        rng = self._rng
        preemption = rng.choice(
            [{}, {"withinClusterQueue": "LowerPriority"}, {"reclaimWithinCohort": "Any"}],
        )
        cohort = rng.choice(["", "ring"])
        self._create("resourceflavors.kueue.x-k8s.io", {"metadata": {"name": "std"}, "spec": {}}, "")
        for name in ("x", "y"):
            queue = objects.cluster_queue(f"cq-{name}", cohort, rng.randint(1, 4), preemption)
            self._create("clusterqueues.kueue.x-k8s.io", queue, "")
            local = {"metadata": {"name": f"lq-{name}"}, "spec": {"clusterQueue": f"cq-{name}"}}
            self._create("localqueues.kueue.x-k8s.io", local)
        for name, value in PRIORITIES.items():
            body = {"metadata": {"name": f"w-{name}"}, "value": value}
            self._create("workloadpriorityclasses.kueue.x-k8s.io", body, "")

    # --- what happens ------------------------------------------------------------------------------------------

    def step(self, actions: dict[Callable[[], None], int] | None = None) -> None:
        is_full = self._api.store.count("pods") >= MOST_PODS
        chosen = actions or (self._changes() if is_full else self._arrivals() | self._changes())
        self._rng.choices(list(chosen), list(chosen.values()))[0]()

    def _arrivals(self) -> dict[Callable[[], None], int]:
        queued = {self._new_queued_job: 3} if self.has_queues else {}
        grouped = {self._new_gang: 4, self._new_member: 2} if self.has_groups else {}
        return {
            self._new_pod: 6,
            self._new_deployment: 2,
            self._new_job: 1,
            self._new_device_pod: 3,
            self._new_volume_pod: 3,
            self._new_shared_claim_pod: 1,
            **queued,
            **grouped,
        }

    def _changes(self) -> dict[Callable[[], None], int]:
        grouped = {self._change_minimum: 1, self._delete_group: 1, self._delete_member: 2} if self.has_groups else {}
        return {
            self._delete_pod: 4,
            self._recreate_pod: 2,
            self._scale: 2,
            self._delete_deployment: 1,
            self._flap_node: 2,
            self._taint_node: 2,
            self._cordon_node: 1,
            self._relabel_node: 1,
            self._flap_slice: 1,
            self._delete_claim: 1,
            self._delete_job: 1,
            self._toggle_budget: 1,
            **grouped,
        }

    def _new_name(self, prefix: str) -> str:
        self._born += 1
        return f"{prefix}{self._born}"

    def _spec(self, **fields: Any) -> Json:
        rng = self._rng
        fields.setdefault("priorityClassName", rng.choice(["low", "low", "mid", "high"]))
        if rng.random() < 0.1:
            fields["tolerations"] = [{"operator": "Exists"}]
        if rng.random() < 0.15:
            fields["nodeSelector"] = {objects.ZONE: rng.choice(["east", "west"])}
        fields.setdefault("grace", rng.choice([0, 1, 1, 5]))
        return objects.pod_spec(rng.choice([50, 100, 300, 700, 1500]), rng.choice([64, 256, 1024]), **fields)

    def _new_pod(self) -> None:
        rng, name = self._rng, self._new_name("p")
        kind = rng.randrange(5)
        if kind == 0:
            self._create("pods", objects.pod(name, self._spec(host_port=rng.choice([80, 443]))))
        elif kind == 1:
            self._create("pods", objects.pod(name, self._spec(affinity=objects.anti_affinity("shy")), app="shy"))
        elif kind == 2:
            constraints = objects.spread("even")
            self._create("pods", objects.pod(name, self._spec(topologySpreadConstraints=constraints), app="even"))
        else:
            self._create("pods", objects.pod(name, self._spec()))

    def _new_deployment(self) -> None:
        name = self._new_name("d")
        replicas = self._rng.randint(1, 5)
        self._create("deployments.apps", objects.deployment(name, replicas, self._spec()))
        if self._rng.random() < 0.5:
            self._create("poddisruptionbudgets.policy", objects.budget(f"b-{name}", name))

    def _new_job(self) -> None:
        name, rng = self._new_name("j"), self._rng
        body = objects.job(name, rng.randint(1, 3), self._spec(), queue="", seconds=rng.randint(3, 20))
        self._create("jobs.batch", body)

    def _new_queued_job(self) -> None:
        name, rng = self._new_name("q"), self._rng
        spec = self._spec(priorityClassName="mid")
        priority = rng.choice(["", "w-low", "w-high"])
        queue, seconds = rng.choice(["lq-x", "lq-y"]), rng.choice([3, 10, 30])
        body = objects.job(name, rng.randint(1, 3), spec, queue=queue, seconds=seconds, priority=priority)
        self._create("jobs.batch", body)

    def _new_device_pod(self) -> None:
        template = self._rng.choice(["one", "one", "two"])
        claims = [{"name": "d", "resourceClaimTemplateName": template}]
        self._create("pods", objects.pod(self._new_name("g"), self._spec(resourceClaims=claims)))

    def _new_shared_claim_pod(self) -> None:
        name = self._new_name("s")
        self._create(CLAIMS, {"metadata": {"name": name}, "spec": objects.device_request()})
        claims = [{"name": "d", "resourceClaimName": name}]
        for number in range(self._rng.randint(1, 2)):
            self._create("pods", objects.pod(f"{name}-{number}", self._spec(resourceClaims=claims)))

    def _new_gang(self) -> None:
        """Its pods come before it, after it, or one by one; sometimes one too many or one too few."""
        rng, name = self._rng, self._new_name("gang")
        least, level = rng.choice([0, 2, 2, 3, 3, 4]), rng.choice(list(PRIORITIES))
        group = objects.pod_group(name, least, level, PRIORITIES[level], rng.choice(["single", "single", "all"]))
        spec = self._spec(priorityClassName=level, schedulingGroup={"podGroupName": name})
        count = max(1, (least or 2) + rng.choice([0, 0, 0, 0, 1, -1]))
        self._later(rng.choice([0.0, 0.0, 0.0, 0.5, 5.0]), lambda: self._create(POD_GROUPS, group))
        for number in range(count):
            pod = objects.pod(f"{name}-{number}", spec)
            self._later(rng.choice([0.0, 0.0, 0.0, 1.0]), lambda pod=pod: self._create("pods", pod))

    def _new_member(self) -> None:
        """One more, or one in place of another that has gone."""
        found = self._some_member()
        if found is None:
            return
        group = found["spec"]["schedulingGroup"]["podGroupName"]
        spec = {key: value for key, value in found["spec"].items() if key != "nodeName"}
        self._create("pods", objects.pod(self._new_name(f"{group}-"), spec))

    def _some_member(self) -> Json | None:
        found = [one.object() for one in self._api.store.list("pods", "default")]
        members = [pod for pod in found if "schedulingGroup" in pod["spec"]]
        return self._rng.choice(members) if members else None

    def _delete_member(self) -> None:
        if (found := self._some_member()) is not None:
            self._delete("pods", found["metadata"]["name"], self._rng.choice([{}, {"gracePeriodSeconds": 0}]))

    def _change_minimum(self) -> None:
        found = self._some(POD_GROUPS)
        if found is not None and "gang" in found["spec"]["schedulingPolicy"]:
            body = {"spec": {"schedulingPolicy": {"gang": {"minCount": self._rng.randint(1, 4)}}}}
            self._patch(POD_GROUPS, found["metadata"]["name"], body)

    def _delete_group(self) -> None:
        """And, mostly, one of that name again: its pods waited for it."""
        found = self._some(POD_GROUPS)
        if found is None:
            return
        name, spec = found["metadata"]["name"], found["spec"]
        self._delete(POD_GROUPS, name, {})
        if self._rng.random() < 0.7:
            body = {"metadata": {"name": name}, "spec": spec}
            self._later(self._rng.choice([0.0, 0.5, 3.0]), lambda: self._create(POD_GROUPS, body))

    def _new_volume_pod(self) -> None:
        rng, name = self._rng, self._new_name("v")
        mode = rng.choice(["ReadWriteOnce", "ReadWriteOncePod"])
        self._create("persistentvolumeclaims", objects.volume_claim(name, rng.choice(["standard", "local"]), mode))
        for number in range(rng.randint(1, 2)):
            spec = self._spec(volumes=[objects.volume("data", name)])
            self._create("pods", objects.pod(f"{name}-{number}", spec))

    def _delete_pod(self) -> None:
        if (found := self._some("pods")) is not None:
            grace = self._rng.choice([{}, {"gracePeriodSeconds": 0}])
            self._delete("pods", found["metadata"]["name"], grace)

    def _recreate_pod(self) -> None:
        """Another one under the same name, at once."""
        found = self._some("pods")
        if found is None or found["metadata"].get("ownerReferences"):
            return
        name, spec = found["metadata"]["name"], dict(found["spec"])
        spec.pop("nodeName", None)
        self._delete("pods", name, {"gracePeriodSeconds": 0})
        labels = found["metadata"].get("labels") or {}
        self._create("pods", {"metadata": {"name": name, "labels": labels}, "spec": spec})

    def _scale(self) -> None:
        if (found := self._some("deployments.apps")) is not None:
            body = {"spec": {"replicas": self._rng.randint(0, 6)}}
            self._patch("deployments.apps", found["metadata"]["name"], body)

    def _delete_deployment(self) -> None:
        if (found := self._some("deployments.apps")) is not None:
            self._delete("deployments.apps", found["metadata"]["name"], {"propagationPolicy": "Background"})

    def _delete_job(self) -> None:
        if (found := self._some("jobs.batch")) is not None:
            self._delete("jobs.batch", found["metadata"]["name"], {"propagationPolicy": "Background"})

    def _flap_node(self) -> None:
        """Deleted, and back under the same name after a while."""
        name = self._rng.choice(list(self._nodes))
        self._delete("nodes", name, {}, "")
        self._later(self._rng.choice([0.0, 0.5, 3.0, 8.0]), lambda: self._create("nodes", self._nodes[name], ""))

    def _taint_node(self) -> None:
        """Not ready for a while."""
        name = self._rng.choice(list(self._nodes))
        self._patch("nodes", name, {"spec": {"taints": [objects.NOT_READY]}}, "")
        self._later(self._rng.uniform(0.5, 20.0), lambda: self._patch("nodes", name, {"spec": {"taints": None}}, ""))

    def _cordon_node(self) -> None:
        name = self._rng.choice(list(self._nodes))
        self._patch("nodes", name, {"spec": {"unschedulable": True}}, "")
        undo = {"spec": {"unschedulable": None}}
        self._later(self._rng.uniform(0.5, 20.0), lambda: self._patch("nodes", name, undo, ""))

    def _relabel_node(self) -> None:
        name = self._rng.choice(list(self._nodes))
        zone = self._rng.choice(["east", "west"])
        self._patch("nodes", name, {"metadata": {"labels": {objects.ZONE: zone}}}, "")

    def _flap_slice(self) -> None:
        if self._slices:
            name = self._rng.choice(list(self._slices))
            self._delete(SLICES, f"slice-{name}", {}, "")
            self._later(self._rng.uniform(0.0, 10.0), lambda: self._create(SLICES, self._slices[name], ""))

    def _delete_claim(self) -> None:
        resource = self._rng.choice([CLAIMS, "persistentvolumeclaims"])
        if (found := self._some(resource)) is not None:
            self._delete(resource, found["metadata"]["name"], {})

    def _toggle_budget(self) -> None:
        if (found := self._some("poddisruptionbudgets.policy")) is not None:
            self._delete("poddisruptionbudgets.policy", found["metadata"]["name"], {})

    # --- the API -----------------------------------------------------------------------------------------------

    def _some(self, resource: str) -> Json | None:
        found = self._api.store.list(resource, "default")
        return self._rng.choice(list(found)).object() if found else None

    def _create(self, resource: str, body: Json, namespace: str = "default") -> None:
        copy = msgspec.json.decode(msgspec.json.encode(body))
        self._attempt(f"create {resource} {body['metadata']['name']}", self._api.create, resource, namespace, copy)

    def _patch(self, resource: str, name: str, body: Json, namespace: str = "default") -> None:
        change = msgspec.json.encode(body)
        kind = "application/merge-patch+json"
        self._attempt(f"patch {resource} {name}", self._api.patch, resource, namespace, name, change, kind)

    def _delete(self, resource: str, name: str, options: Json, namespace: str = "default") -> None:
        self._attempt(f"delete {resource} {name}", self._api.delete, resource, namespace, name, options)

    def _attempt(self, what: str, act: Callable[..., object], *arguments: Any) -> None:
        try:
            act(*arguments)
            self._history.note("script", what)
        except ApiError as error:
            self._history.note("script", f"{what}: {error}")
