"""No missed wake-up: with the periodic flush off, every pod that could be scheduled is scheduled in the end.

Random small clusters live for a while under the real scheduler with all default plugins: nodes, pods, volumes, claims,
devices, namespaces and services come, change and go. When all is quiet, every pod that still waits is tried once more
by force. If that places one, something had happened that helped it, and nothing woke it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.api import (
    Action,
    CycleState,
    Filter,
    Hint,
    NodeView,
    Plugin,
    Reason,
    Reject,
    Rejection,
    Resource,
    on_event,
)
from pilotage.assembly import SchedulerOptions, options_from_configuration
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.config.load import parse_configuration
from pilotage.model import Node, Pod
from pilotage.simulate.memory_api import Key
from pilotage.simulate.shorthands import SHORTHANDS, full_object, merge_patch
from pilotage.simulate.stage import Stage

Json = dict[str, Any]
Deed = tuple[str, str, str | int, Json]
"""What is done to which kind of object; a number picks one of those that there are, or a free name."""

NODES = ("n1", "n2")
PODS = ("p1", "p2", "p3", "p4")
NAMES = {
    "node": NODES,
    "pod": PODS,
    "pv": ("v1", "v2"),
    "pvc": ("data", "more"),
    "claim": ("c1", "c2"),
    "deviceClass": ("device",),
    "slice": ("s1", "s2"),
    "taintRule": ("r1", "r2"),
    "namespace": ("default",),
    "service": ("web",),
}
ZONE = "topology.kubernetes.io/zone"
LONGEST_BACKOFF_SECONDS = 30


def _devices_of(node_name: str) -> Json:
    return {"driver": "d", "node": node_name, "devices": ["d0"]}


few = st.integers(1, 3)
apps = st.sampled_from(["red", "blue"])
pools = st.sampled_from(["a", "b"])
one_pool = st.lists(pools, min_size=1, max_size=1)
zones = st.sampled_from(["z1", "z2"])
keys = st.sampled_from([ZONE, "kubernetes.io/hostname"])
gpus = st.fixed_dictionaries({"example.com/gpu": few})
a_taint = st.sampled_from(["gpu:NoSchedule", "repair:NoExecute", "soft:PreferNoSchedule"])
taints = st.lists(a_taint, unique=True, max_size=2)
tolerations = st.lists(st.sampled_from(["gpu", "repair", "*"]), unique=True, min_size=1, max_size=2)
pod_labels = st.fixed_dictionaries({"app": apps})
terms = st.lists(st.fixed_dictionaries({"match": pod_labels, "key": keys}), min_size=1, max_size=1)
constraint = st.fixed_dictionaries(
    {"match": pod_labels, "key": keys},
    optional={"minDomains": st.just(2), "nodeTaintsPolicy": st.just("Honor")},
)

taint_rules = st.builds(
    lambda selected, effect: {"driver": "d", **selected, "taint": f"broken:{effect}"},
    st.sampled_from([{}, {"node": "n1"}, {"device": "d0"}]),
    st.sampled_from(["NoSchedule", "NoExecute", "None"]),
)

Fields = dict[str, st.SearchStrategy[Any]]

IN_ANY_POD: Fields = {
    "cpu": few,
    "labels": pod_labels,
    "nodeSelector": st.fixed_dictionaries({"pool": pools}),
    "tolerations": tolerations,
}
IN_ANY_NODE: Fields = {
    "cpu": few,
    "labels": st.fixed_dictionaries({}, optional={"pool": pools, ZONE: zones}),
    "taints": taints,
}


def some(fields: Fields, most: int, least: int = 0) -> st.SearchStrategy[Json]:
    """Any of these fields, but not many at once: each must have a chance to be the one that matters."""
    names = st.lists(st.sampled_from(sorted(fields)), unique=True, min_size=least, max_size=most)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: fields[name] for name in sorted(chosen)}))


def deed(verb: str, short: str, fields: st.SearchStrategy[Json]) -> st.SearchStrategy[Deed]:
    return st.tuples(st.just(verb), st.just(short), st.integers(0, 3), fields)


def gone(short: str) -> st.SearchStrategy[Deed]:
    return deed("gone", short, st.just({}))


def histories(
    pod_fields: Fields, node_fields: Fields, *others: st.SearchStrategy[Deed]
) -> st.SearchStrategy[list[Deed]]:
    """A few nodes and pods to begin with, and then all kinds of changes."""
    changes: Fields = {"labels": pod_labels, "tolerations": tolerations, "cpu": st.just(1), "gates": st.just([])}
    return lives_of(
        some(IN_ANY_NODE | node_fields, 1),
        some(IN_ANY_POD | pod_fields, 2, 1),
        some(IN_ANY_NODE | node_fields, 1, 1),
        some(changes, 1, 1),
        *others,
    )


def lives_of(
    node: st.SearchStrategy[Json],
    pod: st.SearchStrategy[Json],
    node_changes: st.SearchStrategy[Json],
    pod_changes: st.SearchStrategy[Json],
    *others: st.SearchStrategy[Deed],
    first: Sequence[st.SearchStrategy[Deed]] = (),
) -> st.SearchStrategy[list[Deed]]:
    """`first` is done before there are pods."""
    new_node, new_pod = deed("put", "node", node), deed("put", "pod", pod)
    node_change, pod_change = deed("set", "node", node_changes), deed("set", "pod", pod_changes)
    deeds = st.one_of(
        *(new_node, node_change, node_change, gone("node")),
        *(new_pod, new_pod, pod_change, gone("pod")),
        st.just(("wait", "", "", {})),
        *others,
    )
    # Short lives: a wake-up that was missed must not be made good by the next event.
    return st.builds(
        lambda *parts: [deed for part in parts for deed in part],
        st.lists(new_node, min_size=1, max_size=3),
        st.tuples(*first),
        st.lists(new_pod, min_size=1, max_size=5),
        st.lists(deeds, min_size=1, max_size=8),
    )


amounts = histories(
    {"extended": gpus, "hostPorts": st.just([80]), "nodeAffinity": st.fixed_dictionaries({"pool": one_pool})},
    {"extended": gpus, "pods": few, "unschedulable": st.booleans()},
)
neighbours = histories(
    {"affinity": terms, "antiAffinity": terms, "spread": st.lists(constraint, min_size=1, max_size=2)},
    {},
)
volumes = histories(
    {"pvcs": st.lists(st.sampled_from(NAMES["pvc"]), unique=True, min_size=1, max_size=2)},
    {},
    deed(
        "put",
        "pv",
        some(
            {
                "labels": st.fixed_dictionaries({ZONE: zones}),
                "claim": st.sampled_from(NAMES["pvc"]),
                "nodeAffinity": st.fixed_dictionaries({"pool": one_pool}),
            },
            2,
        ),
    ),
    deed("set", "pv", some({"labels": st.fixed_dictionaries({ZONE: zones})}, 1)),
    gone("pv"),
    deed("put", "pvc", some({"volume": st.sampled_from(["v1", "v2"])}, 1)),
    deed("set", "pvc", st.fixed_dictionaries({"volume": st.sampled_from(["v1", "v2"])})),
    gone("pvc"),
)
devices = histories(
    {
        "claims": st.lists(st.sampled_from(NAMES["claim"]), unique=True, min_size=1, max_size=1),
        "gates": st.just(["example.com/wait"]),
    },
    {},
    deed("put", "claim", st.just({"class": "device"})),
    gone("claim"),
    deed("put", "deviceClass", st.just({})),
    deed("put", "slice", st.sampled_from([_devices_of(n) for n in NODES])),
    gone("slice"),
)
# One slice for each pool: that a pool becomes usable when a slice too many goes is overlooked, as by kube-scheduler.
slices: list[Deed] = [("put", "slice", f"s{number}", _devices_of(node)) for number, node in enumerate(NODES, 1)]
tainted_devices = lives_of(
    st.just({}),
    st.fixed_dictionaries({"claims": st.lists(st.sampled_from(NAMES["claim"]), min_size=1, max_size=1)}),
    some(IN_ANY_NODE, 1),
    some(IN_ANY_POD, 1),
    *[deed("put", "taintRule", taint_rules), deed("set", "taintRule", taint_rules), gone("taintRule")] * 2,
    *(st.sampled_from(slices), gone("slice")),
    first=[
        *(deed("put", "deviceClass", st.just({})), *map(st.just, slices)),
        *[deed("put", "claim", st.just({"class": "device"}))] * 2,
        deed("put", "taintRule", taint_rules),
    ],
)
stage_labels = st.fixed_dictionaries({"stage": st.sampled_from(["test", "live"])})
selecting_terms = st.lists(
    st.fixed_dictionaries({"match": pod_labels, "key": keys, "namespaceLabels": stage_labels}), min_size=1, max_size=1
)
namespaces = histories(
    {"affinity": selecting_terms, "antiAffinity": selecting_terms},
    {},
    deed("put", "namespace", st.fixed_dictionaries({"labels": stage_labels})),
    *[deed("set", "namespace", st.fixed_dictionaries({"labels": stage_labels}))] * 2,
    gone("namespace"),
)
a_service = st.fixed_dictionaries({"match": pod_labels})
zoned = st.fixed_dictionaries({"labels": st.fixed_dictionaries({ZONE: zones}), "unschedulable": st.booleans()})
labelled = st.fixed_dictionaries({"labels": pod_labels})
services = lives_of(
    *(zoned, labelled, zoned, labelled),
    *[deed("put", "service", a_service), deed("set", "service", a_service), gone("service"), gone("service")],
    first=[deed("put", "service", a_service)],
)
wishes = st.fixed_dictionaries({"annotations": st.fixed_dictionaries({"pool": pools})})
in_a_pool = st.fixed_dictionaries({"labels": st.fixed_dictionaries({"pool": st.sampled_from(["a", "b", "c"])})})
annotated = lives_of(st.just({"labels": {"pool": "c"}}), wishes, in_a_pool, wishes)


class World:
    """A stage on which deeds are done if they are possible."""

    def __init__(self, tasks: asyncio.TaskGroup, options: SchedulerOptions) -> None:
        self.stage = Stage(replace(options, max_wait_seconds=math.inf), tasks)
        self.api = self.stage.api

    async def do(self, deed: Deed) -> None:
        verb, short, pick, fields = deed
        if verb == "wait":
            await self.stage.clock.advance(3)
            return
        name = self._picked(verb, short, pick) if isinstance(pick, int) else pick
        if not name:
            return
        key = _key(short, name)
        is_there = self.api.find(key) is not None
        if verb == "put" and not is_there:
            self.api.add(full_object({short: {"name": name, **fields}}))
        elif verb == "set" and is_there:
            self._set(key, short, fields)
        elif verb == "gone" and is_there:
            self.api.remove(key)
            if short == "node":
                self._collect_pods_of(name)
        await self.stage.clock.settle()
        self.stage.queue.check()

    def _picked(self, verb: str, short: str, pick: int) -> str:
        names = [n for n in NAMES[short] if (self.api.find(_key(short, n)) is None) == (verb == "put")]
        return names[pick % len(names)] if names else ""

    def _set(self, key: Key, short: str, fields: Json) -> None:
        if short == "pod" and self.bound(key):
            # What a running pod can change of the things that scheduling looks at.
            fields = {name: value for name, value in fields.items() if name == "labels"}
        patch = merge_patch(short, key[2], fields)
        if "tolerations" in fields and short == "pod":
            # The API server lets tolerations be added, never be exchanged.
            known = (self.api.find(key) or {})["spec"].get("tolerations", [])
            patch["spec"]["tolerations"] = [*known, *(t for t in patch["spec"]["tolerations"] if t not in known)]
        for container in patch.get("spec", {}).get("containers", ()) if short == "pod" else ():
            # Only its cpu is changed; a container keeps its ports and everything else that it requests.
            (known,) = (self.api.find(key) or {})["spec"]["containers"]
            requests = {**known.get("resources", {}).get("requests", {}), **container["resources"]["requests"]}
            container.update({**known, "resources": {**known.get("resources", {}), "requests": requests}})
        self.api.merge(key, patch)

    def _collect_pods_of(self, node_name: str) -> None:
        """What the garbage collector of pods does."""
        for name in PODS:
            pod = self.api.find(_key("pod", name))
            if pod is not None and pod["spec"].get("nodeName") == node_name:
                self.api.remove(_key("pod", name))

    def bound(self, key: Key) -> bool:
        pod = self.api.find(key)
        return pod is not None and bool(pod["spec"].get("nodeName"))

    def bound_pods(self) -> set[str]:
        return {name for name in PODS if self.bound(_key("pod", name))}

    async def stranded(self) -> dict[str, list[str]]:
        """Pods that wait although they fit, with the plugins that had rejected them."""
        await self.stage.clock.advance(LONGEST_BACKOFF_SECONDS)
        before = self.bound_pods()
        rejected = {e.pod.name: sorted(e.rejectors) for e in self.stage.queue.entries()}
        self.stage.scheduler.effects.activate([entry.pod.uid for entry in self.stage.queue.entries()])
        await self.stage.clock.advance(LONGEST_BACKOFF_SECONDS)
        assert not self.stage.queue.recorded_events, "nothing is kept when all is quiet"
        return {name: rejected[name] for name in sorted(self.bound_pods() - before)}


def _key(short: str, name: str) -> Key:
    entry = SHORTHANDS[short]
    return entry.kind, "default" if entry.is_namespaced else "", name


async def _live(history: list[Deed], options: SchedulerOptions) -> dict[str, list[str]]:
    stranded: dict[str, list[str]] = {}
    try:
        async with asyncio.TaskGroup() as tasks:
            world = World(tasks, options)
            await world.stage.clock.settle()
            for deed in history:
                await world.do(deed)
            stranded = await world.stranded()
            raise _Over
    except* _Over:
        pass
    return stranded


class _Over(Exception):
    pass


def check(history: list[Deed], options: SchedulerOptions | None = None) -> None:
    # A collection of garbage in a process full of tests would use up the budget of an innocent cycle.
    unlimited = replace(options or SchedulerOptions(), cycle_budget_seconds=math.inf)
    assert asyncio.run(_live(history, unlimited)) == {}


lives = settings(max_examples=200, deadline=None)
shorter = settings(max_examples=100, deadline=None)


@lives
@given(amounts)
def test_pods_that_lack_room_ports_or_the_right_node_are_woken(history: list[Deed]) -> None:
    check(history)


@lives
@given(neighbours)
def test_pods_that_look_at_other_pods_are_woken(history: list[Deed]) -> None:
    check(history)


@lives
@given(volumes)
def test_pods_that_wait_for_volumes_are_woken(history: list[Deed]) -> None:
    check(history)


@lives
@given(devices)
def test_pods_that_wait_for_devices_or_behind_gates_are_woken(history: list[Deed]) -> None:
    check(history)


@shorter
@given(tainted_devices)
def test_pods_that_wait_for_tainted_devices_are_woken(history: list[Deed]) -> None:
    check(history)


@shorter
@given(namespaces)
def test_pods_that_select_namespaces_by_labels_are_woken(history: list[Deed]) -> None:
    check(history)


HARD_DEFAULTS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]
"""


@shorter
@given(services)
def test_pods_that_default_constraints_hold_back_are_woken(history: list[Deed]) -> None:
    check(history, options_from_configuration(parse_configuration(HARD_DEFAULTS)))


class PoolOfChoice(Plugin, Filter):
    """Pods choose a pool by an annotation: nothing that pods of a class share tells which."""

    pure_hints = True

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return None if self._suits(pod, node.labels) else Reject(Reason("WrongPool", "node(s) were in another pool"))

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        return Hint.QUEUE if self._suits(pod, new.labels) else Hint.SKIP

    @on_event(Resource.TARGET_POD, Action.UPDATE)
    def after_own_change(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        return Hint.QUEUE if old.annotations != new.annotations else Hint.SKIP

    def _suits(self, pod: Pod, labels: Mapping[str, str]) -> bool:
        return pod.annotations.get("pool") in (None, labels.get("pool"))


@shorter
@given(annotated)
def test_pods_that_differ_in_annotations_only_are_woken(history: list[Deed]) -> None:
    check(history, options_from_configuration(SchedulerConfiguration(), [PoolOfChoice]))


KEEPS_RED_OUT = {"antiAffinity": [{"match": {"app": "red"}, "key": ZONE}]}
SPREAD_RED = {"labels": {"app": "red"}, "spread": [{"match": {"app": "red"}, "key": ZONE}]}
WANTS_POOL_B = {"nodeSelector": {"pool": "b"}, "tolerations": ["gpu"]}
WAITS_FOR_A_DEVICE: list[Deed] = [
    ("put", "node", "n1", {}),
    ("put", "deviceClass", "device", {}),
    ("put", "slice", "s1", _devices_of("n1")),
    ("put", "taintRule", "r1", {"driver": "d", "taint": "broken:NoSchedule"}),
    ("put", "claim", "c1", {"class": "device"}),
    ("put", "pod", "p1", {"claims": ["c1"]}),
]
FOUND: dict[str, list[Deed]] = {
    "the rule that taints the device is deleted": [*WAITS_FOR_A_DEVICE, ("gone", "taintRule", "r1", {})],
    "the rule only informs from now on": [
        *WAITS_FOR_A_DEVICE,
        ("set", "taintRule", "r1", {"driver": "d", "taint": "broken:None"}),
    ],
    "the rule is about other devices from now on": [
        *WAITS_FOR_A_DEVICE,
        ("set", "taintRule", "r1", {"driver": "d", "device": "d7", "taint": "broken:NoSchedule"}),
    ],
    "kept out by the anti-affinity of another pod, and a node joins": [
        ("put", "node", "n1", {"labels": {ZONE: "z1"}}),
        ("put", "pod", "p1", KEEPS_RED_OUT),
        ("put", "pod", "p2", {"labels": {"app": "red"}}),
        ("put", "node", "n2", {}),
    ],
    "kept out by the anti-affinity of another pod, and a node leaves the zone": [
        ("put", "node", "n1", {"labels": {ZONE: "z1"}}),
        ("put", "pod", "p1", KEEPS_RED_OUT),
        ("put", "node", "n2", {"labels": {ZONE: "z1"}}),
        ("put", "pod", "p2", {"labels": {"app": "red"}}),
        ("set", "node", "n2", {"labels": {ZONE: "z2"}}),
    ],
    "an emptier zone is not counted any more": [
        ("put", "node", "n1", {"labels": {ZONE: "z1", "pool": "a"}}),
        ("put", "pod", "p1", {"labels": {"app": "red"}}),
        ("put", "pod", "p2", {"labels": {"app": "red"}}),
        ("put", "node", "n2", {"cpu": 1, "labels": {ZONE: "z2", "pool": "a"}}),
        ("put", "pod", "p3", {"cpu": 1, "nodeSelector": {"kubernetes.io/hostname": "n2"}}),
        ("put", "pod", "p4", {**SPREAD_RED, "cpu": 1, "nodeSelector": {"pool": "a"}}),
        ("set", "node", "n2", {"labels": {"pool": "b"}}),
    ],
    "a place was kept for a pod that went elsewhere": [
        ("put", "node", "n1", {}),
        ("put", "pod", "p1", {**WANTS_POOL_B, "cpu": 4, "nominated": "n1", "gates": ["example.com/wait"]}),
        ("put", "pod", "p2", {"cpu": 4}),
        ("put", "node", "n2", {"labels": {"pool": "b"}, "taints": ["gpu:NoSchedule"]}),
        ("set", "pod", "p1", {"gates": []}),
    ],
}


@pytest.mark.parametrize("history", FOUND.values(), ids=FOUND.keys())
def test_wake_ups_that_were_missed_once(history: list[Deed]) -> None:
    check(history)
