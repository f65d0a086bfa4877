"""A small cluster with groups of pods in it, and a judge who looks after every scheduling cycle.

The judge works from what the API server has and from who is assumed, not from what the queue or the groups' index say.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pilotage.api import Action, CycleState, Hint, Plugin, Reason, Reject, Rejection, Resource, on_event
from pilotage.api.group_members import PodGroups
from pilotage.api.pod_groups import GroupAttempt
from pilotage.api.points import Permit, PodGroupPostFilter, PreBind, Reserve
from pilotage.assembly import SchedulerOptions, options_from_configuration
from pilotage.config.feature_gates import FeatureGates
from pilotage.config.load import parse_configuration
from pilotage.model import Node, Pod
from pilotage.model.pod_group import PodGroup
from pilotage.queue.sub_queues import SubQueue
from pilotage.simulate.extenders_file import SERVER
from pilotage.simulate.extenders_run import ScriptedExtenders
from pilotage.simulate.memory_api import Fault
from pilotage.simulate.shorthands import full_object, merge_patch
from pilotage.simulate.stage import Stage

Json = dict[str, Any]
LONGEST_BACKOFF_SECONDS = 60
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    podGroupPostFilter:
      disabled: [{name: "*"}]
      enabled: [{name: Auditor}, {name: DefaultPreemption}]
"""


def naive_key(pod: Json) -> str:
    group = pod["spec"].get("schedulingGroup")
    return f"default/{group['podGroupName']}" if group else ""


def cpu_of(pod: Json) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


class Saboteur(Plugin, Reserve, Permit, PreBind):
    """Rejects a pod once, at the point that its annotation `fails` names."""

    def __init__(self) -> None:
        self._done: set[str] = set()

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        return self._rejection(pod, "reserve")

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        pass

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        return self._rejection(pod, "permit")

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        return self._rejection(pod, "preBind")

    @on_event(Resource.NODE, Action.ADD)
    def after_a_node_came(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        return Hint.QUEUE

    def _rejection(self, pod: Pod, point: str) -> Rejection | None:
        if pod.annotations.get("fails") != point or pod.uid in self._done:
            return None
        self._done.add(pod.uid)
        return Reject(Reason("Sabotage", f"{point} fails once"))


class JudgedStage(Stage):
    """Calls the judge after every cycle."""

    world: GroupWorld | None = None

    def _cycle(self) -> bool:
        has_worked = super()._cycle()
        if has_worked and self.world is not None:
            self.world.judge_cycle()
        return has_worked


EXTENDER = f"""
extenders:
- {{urlPrefix: {SERVER}/e, filterVerb: filter, prioritizeVerb: prioritize, weight: 1, bindVerb: bind}}
"""


class GroupWorld:
    """A cluster, what can be done to it, and what must hold."""

    def __init__(self, tasks: asyncio.TaskGroup, configuration: str = CONFIGURATION) -> None:
        self.found: list[str] = []
        self.extenders = ScriptedExtenders()
        options = self._options(configuration)
        self.stage = JudgedStage(options, tasks, self.extenders.api_at, self.extenders.connect)
        self.stage.world = self
        self.api = self.stage.api
        self.cluster = self.stage.scheduler.cluster
        self._holders: set[str] = set()

    def _options(self, configuration: str) -> SchedulerOptions:
        world = self

        class Auditor(Plugin, PodGroupPostFilter):
            def pod_group_post_filter(self, attempt: GroupAttempt) -> Rejection:
                world.judge_victims(attempt)
                return Reject(Reason("Audited", "nothing to be done here"))

        gates = FeatureGates({"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True})
        options = options_from_configuration(parse_configuration(configuration), [Saboteur, Auditor], gates)
        return replace(options, max_wait_seconds=math.inf, cycle_budget_seconds=math.inf)

    # --- what is done ------------------------------------------------------------------------------------------

    def put(self, short: str, name: str, **fields: Any) -> None:
        self.api.add(full_object({short: {"name": name, **fields}}))

    def has(self, kind: str, name: str) -> bool:
        return self.api.find((kind, "" if kind == "Node" else "default", name)) is not None

    def change_minimum(self, name: str, minimum: int) -> None:
        self.api.merge(("PodGroup", "default", name), merge_patch("podGroup", name, {"min": minimum}))

    def remove(self, kind: str, name: str) -> None:
        self.api.remove((kind, "" if kind == "Node" else "default", name))
        if kind == "Node":
            for pod in list(self.pods()):
                if pod["spec"].get("nodeName") == name:
                    self.remove("Pod", pod["metadata"]["name"])

    def fail(self, request: str, times: int, delay: float) -> None:
        self.api.faults.append(Fault(request, code=500, delay=delay, times=times))

    def answer(self, filtered: Json, bound: Json) -> None:
        """What the extender says from now on."""
        scores: Json = {"scores": {}}
        self.extenders.play({"e": {"filter": [filtered], "prioritize": [scores], "bind": [bound]}})

    # --- what there is -----------------------------------------------------------------------------------------

    def pods(self) -> Iterator[Json]:
        for name in [pod.name for pod in self.cluster.objects("Pod").values()]:
            found = self.api.find(("Pod", "default", name))
            if found is not None:
                yield found

    def node_of(self, pod: Json) -> str:
        """Where the pod holds room: in the API server, or because it is being bound."""
        bound: str = pod["spec"].get("nodeName", "")
        if bound:
            return bound
        uid = pod["metadata"]["uid"]
        placed = self.cluster.placed_pod(uid)
        return placed.node_name if placed is not None and self.cluster.is_assumed(uid) else ""

    def group(self, key: str) -> PodGroup | None:
        found: PodGroup | None = self.cluster.objects("PodGroup").get(key)
        return found

    def members(self, key: str) -> list[Json]:
        return [pod for pod in self.pods() if naive_key(pod) == key]

    def keys(self) -> set[str]:
        return {key for pod in self.pods() if (key := naive_key(pod))}

    def bound(self, key: str) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.members(key) if pod["spec"].get("nodeName")]

    def free(self, without: Sequence[str] = ()) -> dict[str, int]:
        """CPUs by node, if these pods (UIDs) were gone."""
        room = {name: int(self._allocatable(name)) for name in self.cluster.nodes.names if self.has("Node", name)}
        for pod in self.pods():
            node = self.node_of(pod)
            if node in room and pod["metadata"]["uid"] not in without:
                room[node] -= cpu_of(pod)
        return room

    def _allocatable(self, name: str) -> str:
        node = self.api.find(("Node", "", name))
        assert node is not None
        cpu: str = node["status"]["allocatable"]["cpu"]
        return cpu

    def room(self, group: PodGroup, without: Sequence[str] = ()) -> int:
        """How many more members (of one CPU each) have room, if these pods (UIDs) were gone."""
        free = {node: max(0, cpus) for node, cpus in self.free(without).items()}
        if not group.topology_key:
            return sum(free.values())
        by_rack: Counter[str] = Counter()
        for node, cpus in free.items():
            by_rack[self.rack_of(node)] += cpus
        taken = self.racks(group.key)
        if len(taken) > 1:  # it was made anew, with a constraint that its members had not known
            return 0
        return max((cpus for rack, cpus in by_rack.items() if not taken or rack in taken), default=0)

    def racks(self, key: str) -> set[str]:
        """Where members are."""
        return {self.rack_of(node) for pod in self.members(key) if (node := self.node_of(pod))}

    def rack_of(self, node: str) -> str:
        found = self.api.find(("Node", "", node))
        return "" if found is None else str(found["metadata"].get("labels", {}).get("rack", ""))

    def priority_of(self, pod: Json) -> int:
        """As a victim: that of its group, if there is one."""
        group = self.group(naive_key(pod))
        own: int = pod["spec"].get("priority", 0)
        return own if group is None else group.priority

    # --- what must hold ----------------------------------------------------------------------------------------

    def judge_cycle(self) -> None:
        """Whoever has got a place in this cycle has got it together with enough others."""
        holders = {pod["metadata"]["uid"] for pod in self.pods() if self.node_of(pod)}
        newly, self._holders = holders - self._holders, holders
        for key in self.keys():
            members, group = self.members(key), self.group(key)
            with_place = [pod["metadata"]["name"] for pod in members if pod["metadata"]["uid"] in holders]
            got_one = [pod["metadata"]["name"] for pod in members if pod["metadata"]["uid"] in newly]
            if got_one and group is None:
                self.found.append(f"{got_one} have a place, and there is no group {key}")
            if got_one and group is not None and len(with_place) < group.min_count:
                self.found.append(f"{key} needs {group.min_count}, only {with_place} have a place")
            if got_one and group is not None and group.topology_key and len(self.racks(key)) > 1:
                self.found.append(f"{key} is to be in one rack, and is in {sorted(self.racks(key))}")

    def judge_victims(self, attempt: GroupAttempt) -> None:
        """Nobody is driven out unless the whole group then fits, and nobody as important."""
        found = attempt.search_victims()
        if found.message:
            return
        group = attempt.group
        if not found.places:
            self.found.append(f"nobody of {group.key} would have a place, and nothing is said about it")
        uids = [victim.uid for victim in found.victims]
        scheduled = sum(bool(self.node_of(pod)) for pod in self.members(group.key))
        if scheduled + min(self.room(group, uids), len(attempt.pods)) < group.min_count:
            names = [victim.name for victim in found.victims]
            self.found.append(f"{names} would go in vain: {group.key} does not fit even then")
        for pod in self.pods():
            if pod["metadata"]["uid"] in uids and self.priority_of(pod) >= group.priority:
                self.found.append(f"{pod['metadata']['name']} is as important as {group.key} and would go for it")
        units = Counter(group.key for victim in found.victims if (group := self._disrupted_as_one(victim.name)))
        for key, count in units.items():
            placed = sum(bool(self.node_of(pod)) for pod in self.members(key))
            if count != placed:
                self.found.append(f"{count} of the {placed} pods of {key} would go, which goes as a whole")

    def _disrupted_as_one(self, name: str) -> PodGroup | None:
        pod = self.api.find(("Pod", "default", name))
        group = None if pod is None else self.group(naive_key(pod))
        return group if group is not None and group.is_disrupted_as_one else None

    def judge_counts(self) -> None:
        """What the index and the queue count is what there is."""
        queue, groups = self.stage.queue, self.cluster.index(PodGroups)
        queue.check()
        self.cluster.check()
        self.cluster.nominations.check()
        in_flight = {ticket.uid for ticket in queue.tickets()}
        incomplete = 0
        for key in self.keys():
            members = self.members(key)
            scheduled = {pod["metadata"]["uid"] for pod in members if self.node_of(pod)}
            waiting = {pod["metadata"]["uid"] for pod in members} - scheduled
            assert set(groups.scheduled(key)) == scheduled, key
            assert set(groups.unscheduled(key, "default-scheduler")) == waiting, key
            if self.group(key) is None:
                incomplete += len(waiting - in_flight)
        assert queue.size(SubQueue.INCOMPLETE) == incomplete
        pending = self.stage.scheduler.metrics.pending_pods.values()
        assert pending.get(("incomplete",), 0) == incomplete

    def judge_rest(self) -> None:
        """When all is quiet: no group waits that fits, or would fit if less important pods went."""
        assert not self.stage.queue.recorded_events, "nothing is kept when all is quiet"
        for key in self.keys():
            group, members = self.group(key), self.members(key)
            placed = [pod for pod in members if self.node_of(pod)]
            self._judge_nominations(key, members)
            if (
                group is None
                or len(placed) == len(members)
                or any(p["spec"].get("priority", 0) != group.priority for p in members)
            ):
                continue
            lesser = [pod["metadata"]["uid"] for pod in self.pods() if self.priority_of(pod) < group.priority]
            for text, gone in (("it fits", []), ("it can preempt", lesser)):
                more = min(self.room(group, gone), len(members) - len(placed))
                if more and len(placed) + more >= group.min_count:
                    self.found.append(f"{key} waits with {len(placed)} of {group.min_count}, and {text}")
                    break

    def _judge_nominations(self, key: str, members: list[Json]) -> None:
        """No node is kept for a group for which no room is being made: that would hold it like a place."""
        nominations = self.cluster.nominations
        names = [pod["metadata"]["name"] for pod in members if nominations.node_of(pod["metadata"]["uid"])]
        if names:
            self.found.append(f"{key}: nodes are kept for {names}, and nobody is leaving them")
