"""Whatever is scaled, deleted, failed or replaced, and whenever: once idle, exactly the wanted pods are there."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.life.node_templates import make_nodes
from tests.sandbox.living_cluster import LivingCluster, budget, condition, deployment, job, replica_set, template

Object = dict[str, Any]
Step = tuple[str, int, int]

VERBS = [
    *("scale-deployment", "scale-set", "roll", "pause", "unpause", "delete-set", "new-set"),
    *("delete-pod", "fail-pod", "evict", "lose-node", "wait", "wait", "wait"),
    *("new-job", "suspend-job", "resume-job", "delete-job"),
]
STEPS = st.lists(st.tuples(st.sampled_from(VERBS), st.integers(0, 9), st.integers(0, 6)), max_size=25)


def pick(objects: list[Object], choice: int) -> Object | None:
    return objects[choice % len(objects)] if objects else None


class Chaos:
    """A cluster to which random things happen."""

    def __init__(self, strategy: str) -> None:
        self.cluster = LivingCluster(nodes=3)
        self.nodes = 3
        self.jobs = 0
        self.cluster.create(deployment("web", 3, strategy={"type": strategy}))
        self.cluster.create(replica_set("set", 2))
        self.cluster.create(budget("b", "web", maxUnavailable="50%"))

    async def do(self, verb: str, choice: int, number: int) -> None:
        try:
            await getattr(self, verb.replace("-", "_"))(choice, number)
        except ApiError as error:
            assert error.code in (404, 409, 429), error
        self.cluster.life.check()

    async def wait(self, choice: int, number: int) -> None:
        await self.cluster.run([0.0, 0.03, 0.3, 1.0, 3.0, 12.0, 40.0][number])

    async def scale_deployment(self, choice: int, number: int) -> None:
        self.cluster.edit("Deployment", "web", replicas=number)

    async def roll(self, choice: int, number: int) -> None:
        self.cluster.edit("Deployment", "web", template=template("web", image=f"v{number}"))

    async def pause(self, choice: int, number: int) -> None:
        self.cluster.edit("Deployment", "web", paused=True)

    async def unpause(self, choice: int, number: int) -> None:
        self.cluster.edit("Deployment", "web", paused=False)

    async def scale_set(self, choice: int, number: int) -> None:
        self.cluster.edit("ReplicaSet", "set", replicas=number)

    async def new_set(self, choice: int, number: int) -> None:
        self.cluster.create(replica_set("set", number))

    async def delete_set(self, choice: int, number: int) -> None:
        policy = ("Background", "Foreground", "Orphan")[number % 3]
        self.cluster.delete("ReplicaSet", "set", propagationPolicy=policy)

    async def new_job(self, choice: int, number: int) -> None:
        self.jobs += 1
        fails = {"fail": "true"} if number == 0 else {}
        mode = "Indexed" if choice % 2 else "NonIndexed"
        spec = {"completions": number, "parallelism": 1 + choice % 3, "completionMode": mode, "backoffLimit": 3}
        if choice % 3 == 1:
            spec["scheduling"] = {"schedulingPolicy": {"gang": {}} if number % 2 else {"basic": {}}}
        self.cluster.create(job(f"job-{self.jobs}", annotations=fails, **spec))

    async def suspend_job(self, choice: int, number: int) -> None:
        self._change_job(choice, suspend=True)

    async def resume_job(self, choice: int, number: int) -> None:
        self._change_job(choice, suspend=False)

    def _change_job(self, choice: int, **spec: Any) -> None:
        found = pick(self.cluster.all("Job"), choice)
        if found is not None:
            self.cluster.edit("Job", found["metadata"]["name"], **spec)

    async def delete_job(self, choice: int, number: int) -> None:
        found = pick(self.cluster.all("Job"), choice)
        if found is not None:
            policy = ("Background", "Foreground")[number % 2]
            self.cluster.delete("Job", found["metadata"]["name"], propagationPolicy=policy)

    async def delete_pod(self, choice: int, number: int) -> None:
        found = pick(self.cluster.pods(), choice)
        if found is not None:
            grace = {} if number else {"gracePeriodSeconds": 0}
            self.cluster.delete("Pod", found["metadata"]["name"], **grace)

    async def fail_pod(self, choice: int, number: int) -> None:
        found = pick([p for p in self.cluster.pods() if p["status"]["phase"] in ("Pending", "Running")], choice)
        if found is not None:
            found["status"]["phase"] = "Failed"
            self.cluster.api.update("pods", "default", found["metadata"]["name"], found, "status")

    async def evict(self, choice: int, number: int) -> None:
        found = pick(self.cluster.pods(), choice)
        if found is not None:
            self.cluster.api.evict("default", found["metadata"]["name"])

    async def lose_node(self, choice: int, number: int) -> None:
        """A node goes; a new one comes, so that pods always find a place."""
        found = pick(self.cluster.all("Node"), choice)
        assert found is not None
        self.nodes += 1
        self.cluster.create(list(make_nodes(self.nodes))[-1])
        self.cluster.delete("Node", found["metadata"]["name"])


def check_end(cluster: LivingCluster) -> None:
    """What must hold when nothing happens by itself any more."""
    pods = cluster.pods()
    assert not any("deletionTimestamp" in p["metadata"] for p in pods), "nothing is left half deleted"
    assert not any(p["metadata"].get("finalizers") for p in pods if p["status"]["phase"] not in ("Pending", "Running"))
    for found in cluster.all("ReplicaSet"):
        assert len(living(pods, found)) == found["spec"]["replicas"] == found["status"].get("readyReplicas", 0)
    check_deployment(cluster)
    for found in cluster.all("Job"):
        check_job(found, pods)
    uids = {found["metadata"]["uid"] for kind in ("ReplicaSet", "Job") for found in cluster.all(kind)}
    check_groups(cluster, pods, uids)
    owners = {ref["uid"] for p in pods for ref in p["metadata"].get("ownerReferences") or ()}
    assert owners <= uids, "no pod outlives its owner"
    status = cluster.status("PodDisruptionBudget", "b")
    assert status["currentHealthy"] == sum(is_ready(p) for p in cluster.pods(app="web"))


def check_groups(cluster: LivingCluster, pods: list[Object], uids: set[str]) -> None:
    """Each Job that asks for one has one group, and its pods are in it; no group outlives its Job."""
    groups = {found["metadata"]["ownerReferences"][0]["uid"]: found for found in cluster.all("PodGroup")}
    assert set(groups) <= uids and len(groups) == len(cluster.all("PodGroup")) == len(cluster.all("Workload"))
    assert set(groups) == {found["metadata"]["uid"] for found in cluster.all("Job") if "scheduling" in found["spec"]}
    for found in pods:
        owner = (found["metadata"].get("ownerReferences") or [{}])[0].get("uid", "")
        named = found["spec"].get("schedulingGroup")
        wanted = groups.get(owner)
        assert named == (None if wanted is None else {"podGroupName": wanted["metadata"]["name"]})


def living(pods: list[Object], owner: Object) -> list[Object]:
    mine = [p for p in pods if (p["metadata"].get("ownerReferences") or [{}])[0].get("uid") == owner["metadata"]["uid"]]
    return [p for p in mine if p["status"]["phase"] not in ("Succeeded", "Failed")]


def is_ready(found: Object) -> bool:
    return condition(found, "Ready").get("status") == "True"


def check_deployment(cluster: LivingCluster) -> None:
    wanted = cluster.get("Deployment", "web")
    pods = [p for p in cluster.pods(app="web") if p["status"]["phase"] == "Running"]
    if wanted["spec"].get("paused"):
        return
    assert len(pods) == wanted["spec"]["replicas"]
    image = wanted["spec"]["template"]["spec"]["containers"][0]["image"]
    assert all(p["spec"]["containers"][0]["image"] == image for p in pods)
    assert wanted["status"].get("availableReplicas", 0) == wanted["spec"]["replicas"]


def check_job(found: Object, pods: list[Object]) -> None:
    status = found["status"]
    assert status.get("active", 0) == len(living(pods, found)) == 0
    if condition(found, "Complete"):
        assert status.get("succeeded", 0) == found["spec"]["completions"]
    elif condition(found, "Failed"):
        assert status["failed"] > found["spec"]["backoffLimit"]
    else:
        assert found["spec"]["suspend"], "a Job that is not over waits to be resumed"


async def live_through(steps: list[Step], strategy: str) -> None:
    chaos = Chaos(strategy)
    for verb, choice, number in steps:
        await chaos.do(verb, choice, number)
    await chaos.cluster.settle()
    check_end(chaos.cluster)
    chaos.cluster.store.check()


@settings(max_examples=60, deadline=None)
@given(STEPS, st.sampled_from(["RollingUpdate", "Recreate"]))
def test_random_changes_end_with_exactly_the_wanted_pods(steps: list[Step], strategy: str) -> None:
    asyncio.run(live_through(steps, strategy))
