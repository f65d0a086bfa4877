"""Groups that nobody would make on purpose: nothing ends, and a gang and a pod beside them are bound."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.api.group_members import PodGroups
from pilotage.queue.sub_queues import SubQueue
from tests.properties.group_world import LONGEST_BACKOFF_SECONDS, GroupWorld

Json = dict[str, Any]

counts = st.sampled_from([-(2**31), -1, 0, 1, 2, 3, 2**31 - 1, 2**63])
policies = st.one_of(
    st.builds(lambda count: {"gang": {"minCount": count}}, counts),
    st.sampled_from([{}, {"basic": {}}, {"gang": {}}, {"basic": {}, "gang": {"minCount": 2}}, {"other": {}}]),
)
topologies = st.sampled_from([None, {}, {"topology": []}, {"topology": [{}]}, {"topology": [{"key": "none"}]}])
modes = st.sampled_from([None, {}, {"all": {}}, {"single": {}, "all": {}}])
priorities = st.sampled_from([None, -(2**31), 0, 5, 10**9])
groups = st.builds(
    lambda policy, topology, mode, priority, preemption: {
        "schedulingPolicy": policy,
        **({} if topology is None else {"schedulingConstraints": topology}),
        **({} if mode is None else {"disruptionMode": mode}),
        **({} if priority is None else {"priority": priority}),
        **({} if preemption is None else {"preemptionPolicy": preemption}),
    },
    policies,
    topologies,
    modes,
    priorities,
    st.sampled_from([None, "Never", "Sometimes"]),
)
members = st.lists(
    st.tuples(
        st.sampled_from([0, 5, -1, 10**9]),
        st.sampled_from(["default-scheduler", "nobody", "default-scheduler"]),
        st.sampled_from([None, None, "Never"]),
        st.sampled_from(["", "", "n1", "gone"]),
    ),
    max_size=5,
)


class _Over(Exception):
    pass


def group_object(name: str, spec: Json) -> Json:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": spec}


@settings(max_examples=60, deadline=None)
@given(specs=st.lists(groups, min_size=1, max_size=3), pods=members)
def test_whatever_stands_in_a_group_the_next_gang_is_bound(specs: list[Json], pods: list[Any]) -> None:
    """The group is made, its pods come, and it is made again under the same name with another policy."""

    async def live() -> None:
        async with asyncio.TaskGroup() as tasks:
            world = GroupWorld(tasks)
            world.put("node", "n1", cpu=2)
            for number, (priority, scheduler, policy, node) in enumerate(pods):
                more = {"preemptionPolicy": policy} if policy else {}
                more |= {"node": node} if node else {}
                world.put("pod", f"h{number}", cpu=1, group="hostile", priority=priority, scheduler=scheduler, **more)
            for spec in specs:
                if world.has("PodGroup", "hostile"):
                    world.remove("PodGroup", "hostile")
                    await world.stage.clock.settle()
                world.api.add(group_object("hostile", spec))
                await world.stage.clock.advance(3)
            world.put("node", "safe", cpu=3, labels={"safe": "yes"})
            world.put("podGroup", "g", min=2)
            for name in ("m1", "m2"):
                world.put("pod", name, cpu=1, group="g", nodeSelector={"safe": "yes"})
            world.put("pod", "canary", cpu=1, nodeSelector={"safe": "yes"})
            hostile = [f"h{number}" for number in range(len(pods))]
            for name in hostile:
                if not world.api.find(("Pod", "default", name))["spec"].get("nodeName"):
                    world.remove("Pod", name)
            await world.stage.clock.advance(LONGEST_BACKOFF_SECONDS)
            world.stage.queue.check()
            world.cluster.check()
            assert len(world.bound("default/g")) == 2
            assert world.api.find(("Pod", "default", "canary"))["spec"].get("nodeName") == "safe"
            metrics = world.stage.scheduler.metrics
            assert not metrics.task_errors_total.values()
            assert not [one.sentence for one in metrics.skipped]
            raise _Over

    with pytest.raises(ExceptionGroup) as over:
        asyncio.run(live())
    if not over.group_contains(_Over, match=None):
        raise over.value


async def test_a_gang_of_more_members_than_the_cluster_takes_stops_no_one() -> None:
    with pytest.raises(ExceptionGroup) as over:
        async with asyncio.TaskGroup() as tasks:
            world = GroupWorld(tasks)
            world.put("node", "n1", cpu=4)
            world.put("podGroup", "huge", min=10_000)
            world.put("podGroup", "g", min=2)
            for number in range(1_000):
                world.put("pod", f"lost-{number}", cpu=1, group="nobody-makes-it")
                world.put("pod", f"huge-{number}", cpu=1, group="huge")
            for name in ("m1", "m2"):
                world.put("pod", name, cpu=1, group="g")
            await world.stage.clock.settle()
            assert len(world.bound("default/g")) == 2
            queue = world.stage.queue
            assert (queue.size(SubQueue.INCOMPLETE), queue.size(SubQueue.GATED)) == (1_000, 1_000)
            assert world.stage.group_attempts == {"g": 1}, "a gang of too few is never tried"
            assert len(world.cluster.index(PodGroups).waiting("default/nobody-makes-it")) == 1_000
            raise _Over
    assert over.group_contains(_Over)
