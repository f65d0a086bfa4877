"""A scheduler whose extenders are slow, down or hostile, in virtual time: only the pods they are asked about wait.

What extenders answer is scripted as in scenarios; the order of the bindings is what is looked at.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from pilotage.assembly import options_from_configuration
from pilotage.config.load import configuration_of
from pilotage.simulate.extenders_file import SERVER
from pilotage.simulate.extenders_run import ScriptedExtenders
from pilotage.simulate.shorthands import full_object
from pilotage.simulate.stage import Stage

GPU = {"example.com/gpu": 1}
MANAGED = [{"name": "example.com/gpu", "ignoredByScheduler": True}]


class Over(Exception):
    pass


class Play:
    """Two nodes, and one extender `e` that is asked about pods with a GPU."""

    def __init__(self, tasks: asyncio.TaskGroup, extenders: list[dict[str, Any]]) -> None:
        self.script = ScriptedExtenders()
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": [{"urlPrefix": f"{SERVER}/{one.pop('name')}", **one} for one in extenders],
        }
        options = options_from_configuration(configuration_of(document, "test"))
        options = replace(options, cycle_budget_seconds=math.inf, max_wait_seconds=math.inf)
        self.stage = Stage(options, tasks, self.script.api_at, self.script.connect)
        self.clock = self.stage.clock
        for name in ("n1", "n2"):
            self.put("node", name, cpu=4)

    def put(self, short: str, name: str, **fields: Any) -> None:
        self.stage.api.add(full_object({short: {"name": name, **fields}}))

    def node_of(self, name: str) -> str:
        found = self.stage.api.find(("Pod", "default", name)) or {}
        node: str = found["spec"].get("nodeName", "")
        return node

    def message(self, name: str) -> str:
        conditions = (self.stage.api.find(("Pod", "default", name)) or {}).get("status", {}).get("conditions", [])
        return "".join(one["message"] for one in conditions if one["type"] == "PodScheduled" and "message" in one)

    def asked(self, verb: str = "filter") -> list[str]:
        """About whom, in which order."""
        return [one.body["Pod"]["metadata"]["name"] for one in self.script.requests if one.verb == verb]


@asynccontextmanager
async def play(*extenders: dict[str, Any], **answers: list[dict[str, Any]]) -> AsyncIterator[Play]:
    given = list(extenders) or [{"name": "e", "filterVerb": "filter", "managedResources": MANAGED}]
    try:
        async with asyncio.TaskGroup() as tasks:
            made = Play(tasks, given)
            made.script.play({"e": answers})
            await made.clock.settle()
            yield made
            made.stage.queue.check()
            made.stage.scheduler.cluster.check()
            raise Over
    except* Over:
        pass


async def test_a_slow_extender_stops_no_pod_that_it_is_not_asked_about() -> None:
    async with play(filter=[{"keep": ["n2"], "delay": 4}]) as it:
        it.put("pod", "asked", extended=GPU)
        await it.clock.settle()
        for name in ("x", "y", "z"):
            it.put("pod", name, cpu=1)
        await it.clock.settle()
        assert it.clock.monotonic() == 0, "no time has passed"
        assert [bool(it.node_of(name)) for name in ("asked", "x", "y", "z")] == [False, True, True, True]
        await it.clock.advance(4)
        assert it.node_of("asked") == "n2"


async def test_pods_that_ask_the_same_extender_stand_in_line() -> None:
    async with play(filter=[{"keep": ["n1"], "delay": 4}]) as it:
        for name in ("a", "b", "c"):
            it.put("pod", name, extended=GPU)
            await it.clock.settle()
        assert it.asked() == ["a"]
        await it.clock.advance(4)
        assert (it.asked(), it.node_of("a"), it.node_of("b")) == (["a", "b"], "n1", "")
        await it.clock.advance(8)
        assert [it.node_of(name) for name in "abc"] == ["n1", "n1", "n1"]


async def test_an_extender_that_never_answers_costs_its_pods_their_time_out_and_a_backoff() -> None:
    async with play(filter=[{"keep": ["n1"], "delay": 1000}]) as it:
        it.put("pod", "asked", extended=GPU)
        await it.clock.advance(60)
        assert it.asked() == ["asked"] * len(it.asked()) and 4 <= len(it.asked()) <= 8
        assert "timeout: no answer within 5 s" in it.message("asked")
        it.put("pod", "other", cpu=1)
        await it.clock.settle()
        assert it.node_of("other")
        it.script.play({"e": {"filter": [{"keep": ["n2"]}]}})
        await it.clock.advance(30)
        assert it.node_of("asked") == "n2", "it is tried again by time"
    calls = it.stage.scheduler.metrics.extender_call_duration_seconds
    assert calls.count(f"{SERVER}/e", "filter", "timeout") >= 4
    assert calls.count(f"{SERVER}/e", "filter", "ok") == 1


HOSTILE: list[tuple[dict[str, Any], str]] = [
    ({"status": 500}, "failed filter with extender at URL http://extenders.test/e/filter, code 500"),
    ({"status": 302}, "code 302"),
    ({"body": ["what?"]}, "the answer cannot be used: expected an object"),
    ({"body": {"NodeNames": 3, "Nodes": 4}}, "the answer cannot be used"),
    ({"body": {"Nodes": {"items": [{"metadata": {"name": "n9"}}]}}}, 'claims a filtered node "n9"'),
    ({"error": "\x1b[2Jboom"}, "\\x1b[2Jboom"),
]


@pytest.mark.parametrize(("answer", "says"), HOSTILE, ids=[says[:20] for _, says in HOSTILE])
async def test_whatever_it_answers_the_pod_backs_off_and_all_others_are_bound(
    answer: dict[str, Any], says: str
) -> None:
    says = says.replace("http://extenders.test", SERVER)
    async with play(filter=[answer]) as it:
        it.put("pod", "asked", extended=GPU)
        it.put("pod", "other", cpu=1)
        await it.clock.advance(20)
        assert it.node_of("other") and not it.node_of("asked")
        assert says in it.message("asked")
        assert len(it.asked()) <= 8, "it backs off"
        assert not it.stage.scheduler.metrics.task_errors_total.values()


async def test_scores_that_cannot_be_used_are_as_good_as_none() -> None:
    one = {"name": "e", "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1}
    async with play(one, filter=[{"keep": ["n1", "n2"]}], prioritize=[{"body": [{"Host": 1}]}]) as it:
        it.put("pod", "p", cpu=1)
        await it.clock.settle()
        assert it.node_of("p")
        assert it.asked("prioritize") == ["p"]


async def test_what_a_weight_is_worth() -> None:
    """10 points of weight 20 are worth 2,000: more than all plugins that know of an even load."""
    one = {"name": "e", "prioritizeVerb": "prioritize", "weight": 20}
    async with play(one, prioritize=[{"scores": {"n2": 10}}]) as it:
        for name in ("a", "b", "c"):
            it.put("pod", name, cpu=1)
            await it.clock.settle()
        assert {it.node_of(name) for name in "abc"} == {"n2"}


async def test_a_resource_of_an_extender_is_not_looked_for_on_nodes() -> None:
    async with play(filter=[{"keep": ["n1"]}]) as it:
        it.put("pod", "asked", extended={"example.com/gpu": 99})
        it.put("pod", "other", extended={"example.com/fpga": 1})
        await it.clock.settle()
        assert it.node_of("asked") == "n1", "no node has a GPU, but the extender looks after that"
        assert "Insufficient example.com/fpga" in it.message("other") and it.asked() == ["asked"]


async def test_a_rejection_is_reported_and_any_change_of_the_cluster_asks_again() -> None:
    rejection = {"failed": {"n1": "full", "n2": "full"}}
    async with play(filter=[rejection, rejection, {"keep": ["n2"]}]) as it:
        it.put("pod", "asked", extended=GPU)
        await it.clock.advance(30)
        assert "0/2 nodes are available: 2 full." in it.message("asked")
        assert len(it.asked()) == 1, "nothing has happened since"
        it.put("storageClass", "fast", provisioner="d", mode="Immediate")
        await it.clock.advance(2)
        assert len(it.asked()) == 2
        it.put("namespace", "elsewhere")
        await it.clock.advance(30)
        assert len(it.asked()) == 2, "kube-scheduler does not wake the pod for it either"
        it.put("node", "n3", cpu=1)
        await it.clock.advance(30)
        assert it.node_of("asked") == "n2"


async def test_another_reason_each_time_is_no_reason_to_ask_again() -> None:
    """The reason is written into the pod's status, which is an event of the pod."""
    reasons = [{"failed": {"n1": f"full at {second}", "n2": "full"}} for second in range(1000)]
    async with play(filter=reasons) as it:
        it.put("pod", "asked", extended=GPU)
        await it.clock.advance(60)
        assert len(it.asked()) == 1
        it.stage.api.merge(("Pod", "default", "asked"), {"metadata": {"annotations": {"wish": "a"}}})
        await it.clock.advance(60)
        assert len(it.asked()) == 2, "what somebody else changes is one"


async def test_a_binding_that_fails_gives_the_place_back() -> None:
    one = {"name": "e", "bindVerb": "bind"}
    denied = {"error": "denied"}
    async with play(one, bind=[denied, {"status": 503}, {"binds": True}]) as it:
        it.put("pod", "p", cpu=4)
        await it.clock.settle()
        assert not it.node_of("p") and it.stage.scheduler.cluster.assumed_count == 0
        assert it.message("p") == f"extender {SERVER}/e: denied"
        await it.clock.advance(10)
        assert it.node_of("p") and it.stage.api.bindings == 0, "the scheduler itself binds nothing"


async def test_victims_that_no_one_knows_are_evicted_by_no_one() -> None:
    one = {"name": "e", "preemptVerb": "preempt"}
    unknown = {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "nobody"}], "NumPDBViolations": 10**40}}}
    nowhere = {"NodeNameToMetaVictims": {"n9": {"Pods": [{"UID": "nobody"}]}}}
    async with play(one, preempt=[{"body": unknown}, {"body": nowhere}]) as it:
        for name, node in (("low-1", "n1"), ("low-2", "n2")):
            it.put("pod", name, cpu=4, node=node)
        it.put("pod", "high", cpu=4, priority=10)
        await it.clock.advance(30)
        assert it.node_of("low-1") == "n1" and it.node_of("low-2") == "n2" and not it.node_of("high")
        it.put("node", "n3", cpu=4)
        await it.clock.advance(30)
        assert it.node_of("high") == "n3"


async def test_a_pod_that_goes_while_it_is_asked_about_leaves_nothing_behind() -> None:
    async with play(filter=[{"keep": ["n1"], "delay": 4}]) as it:
        it.put("pod", "asked", extended=GPU)
        await it.clock.settle()
        it.stage.api.remove(("Pod", "default", "asked"))
        it.put("pod", "next", extended=GPU)
        await it.clock.advance(8)
        assert it.node_of("next") == "n1"
        assert not list(it.stage.queue.tickets()) and not it.stage.queue.recorded_events
