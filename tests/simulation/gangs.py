"""What must hold of groups of pods: while they are placed, and at rest.

when a place is given    together with enough others of the group: looked at after every turn of a leader's loop
at rest                  a group that fits has its places, or makes room for them; no node is kept for one that waits

From the first binding on a group has started: what is bound stays, whatever becomes of the others (a binding fails, the
leader crashes, members are deleted). So fewer members than the minimum may run; but then the others do not fit.
"""

from __future__ import annotations

from collections.abc import Iterator

from pilotage.api.group_members import group_key
from pilotage.api.state import CycleState
from pilotage.assembly import SchedulerOptions, watched_kinds
from pilotage.clock import Clock
from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import NoNodes, Placed, ProfileEngine, place
from pilotage.explain.engine import cluster_of_server, thinking_engines
from pilotage.kube.client import KubeClient
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup


class GangWatch:
    """Looks at one scheduler."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._assumed: set[str] = set()

    def look(self) -> Iterator[str]:
        """Groups that were given places since the last time, and too few of them."""
        if "PodGroup" not in {kind.kind for kind in self._cluster.kinds.own.values()}:
            return
        members = _members(self._cluster)
        assumed = {pod.uid for pods in members.values() for pod in pods if self._cluster.is_assumed(pod.uid)}
        newly, self._assumed = assumed - self._assumed, assumed
        for key, pods in members.items():
            given = [pod.name for pod in pods if pod.uid in newly]
            if not given:
                continue
            group: PodGroup | None = self._cluster.objects("PodGroup").get(key)
            having = [pod.name for pod in pods if pod.node_name or pod.uid in assumed]
            if group is None:
                yield f"{given} were given places, and there is no group {key}"
            elif len(having) < group.min_count:
                yield f"{given} were given places: {having} of {key} have one, it needs {group.min_count}"


def _members(cluster: Cluster) -> dict[str, list[Pod]]:
    found: dict[str, list[Pod]] = {}
    for pod in cluster.objects("Pod").values():
        if key := group_key(pod):
            found.setdefault(key, []).append(pod)
    return found


async def groups_at_unrest(client: KubeClient, clock: Clock, options: SchedulerOptions) -> list[str]:
    """Groups that wait although they fit, or could make room."""
    found = []
    for key in _members(await cluster_of_server(client)):
        for ask in (_fitting, _preempting):
            cluster = await cluster_of_server(client, watched_kinds(options))
            engine = thinking_engines(cluster, clock, options)["default-scheduler"]
            waiting = [pod for pod in _members(cluster)[key] if not pod.node_name and not pod.is_terminating]
            group: PodGroup | None = cluster.objects("PodGroup").get(key)
            if group is None or not waiting or any(engine.runner.pre_enqueue(pod) is not None for pod in waiting):
                continue
            if answer := ask(group, waiting, cluster, engine):
                found.append(f"group {key} waits: {answer}")
    return found


def _fitting(group: PodGroup, waiting: list[Pod], cluster: Cluster, engine: ProfileEngine) -> str:
    bound = len(_members(cluster)[group.key]) - len(waiting)
    fitting = sum(_fits(engine, cluster, pod) for pod in waiting)
    if fitting and bound + fitting >= group.min_count:
        return f"{bound} are bound, it needs {group.min_count}, and {fitting} more fit"
    return ""


def _preempting(group: PodGroup, waiting: list[Pod], cluster: Cluster, engine: ProfileEngine) -> str:
    """Would it fit if everybody less important were gone?"""
    names = []
    for row in range(len(cluster.nodes)):
        for pod in list(cluster.nodes.pods_on(row).values()):
            its_group: PodGroup | None = cluster.objects("PodGroup").get(group_key(pod))
            if (pod.priority if its_group is None else its_group.priority) < group.priority:
                cluster.remove_pod(pod.uid)
                names.append(pod.name)
    answer = _fitting(group, waiting, cluster, engine)
    return f"without {names}: {answer}" if answer else ""


def _fits(engine: ProfileEngine, cluster: Cluster, pod: Pod) -> bool:
    """Does the pod fit beside those before it?"""
    try:
        placement = place(engine, CycleState(), pod, asks_post_filter=False)
    except NoNodes:
        return False
    if isinstance(placement, Placed):
        cluster.assume(pod.with_node(placement.node_name))
    return isinstance(placement, Placed)
