"""A wide world of queues in which anything may happen: trees of cohorts, two flavors and resources, checks, pod sets.

Everything follows from the seed. `excess` works the limits out from their definitions, not with the engine's tree.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pilotage.jobs.configuration.load import queueing_of
from pilotage.simulate.queueing_file import Named
from pilotage.simulate.queueing_stage import QueueingStage, is_true

Json = dict[str, Any]
Pair = tuple[str, str]

FLAVORS = ("std", "spot")
RESOURCES = ("cpu", "gpu")
PAIRS: tuple[Pair, ...] = tuple((flavor, resource) for flavor in FLAVORS for resource in RESOURCES)
PARENTS = {"top": "", "left": "top", "right": "top", "deep": "left"}
QUEUES = {"alone": "", "a": "left", "b": "left", "c": "deep", "d": "right", "e": "top"}
PREEMPTION: tuple[Json, ...] = (
    {},
    {"withinClusterQueue": "LowerPriority"},
    {"withinClusterQueue": "LowerOrNewerEqualPriority", "reclaimWithinCohort": "LowerPriority"},
    {"reclaimWithinCohort": "LowerPriority", "borrowWithinCohort": {"policy": "LowerPriority"}},
    {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "LowerPriority"},
)
FUNGIBILITY: tuple[Json, ...] = (
    {},
    {"whenCanBorrow": "TryNextFlavor"},
    {"whenCanPreempt": "MayStopSearch"},
    {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor", "preference": "PreemptionOverBorrowing"},
)
MODE = "UsageBasedAdmissionFairSharing"


class WideHistory:
    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.stage = QueueingStage(queueing_of(self._configuration()))
        self.names: list[str] = []
        self.submitted = 0
        self.changes = 0
        """Of the configuration so far."""
        self.cohorts: dict[str, Json] = {}
        self.queues: dict[str, Json] = {}
        for flavor in FLAVORS:
            self._put("flavor", name=flavor, labels={"kind": flavor})
        for check in ("gate", "budget"):
            self._put("admissionCheck", name=check)
        for name, parent in PARENTS.items():
            groups = self._groups(rng.random() < 0.5, bool(parent)) if rng.random() < 0.5 else []
            self.cohorts[name] = {"name": name, "parent": parent, "groups": groups, "fairWeight": rng.choice([1, 1, 2])}
            self._put("cohort", **self.cohorts[name])
        for name in QUEUES:
            self._add_queue(name)

    def _configuration(self) -> Json:
        rng = self.rng
        strategy = {"timestamp": rng.choice(["Eviction", "Creation"]), "backoffBaseSeconds": 5, "backoffLimitCount": 3}
        ready = {"timeout": "20s", "recoveryTimeout": "10s", "requeuingStrategy": strategy}
        config: Json = {"waitForPodsReady": {**ready, "blockAdmission": rng.random() < 0.1}}
        if rng.random() < 0.3:
            config["fairSharing"] = {}
        if rng.random() < 0.3:
            config["admissionFairSharing"] = {"usageHalfLifeTime": "60s", "usageSamplingInterval": "10s"}
        return config

    def _put(self, kind: str, **fields: Any) -> None:
        self.stage.apply(Named(kind, fields["name"], "ns", fields))

    def _patch(self, kind: str, name: str, **fields: Any) -> None:
        self.stage.patch(Named(kind, name, "ns", fields))

    def _delete(self, kind: str, name: str) -> None:
        self.stage.delete(Named(kind, name, "ns", {}))

    # --- queues -------------------------------------------------------------------------------------------------------

    def _quota(self, most: int, has_parent: bool) -> Json:
        rng = self.rng
        quota = {"nominal": rng.randint(0, most)}
        if has_parent and rng.random() < 0.3:
            quota["borrow"] = rng.randint(0, 5)
        if has_parent and rng.random() < 0.3:
            quota["lend"] = rng.randint(0, quota["nominal"])
        return quota

    def _groups(self, is_split: bool, has_parent: bool) -> list[Json]:
        """Both resources in one group with two flavors, or each in its own with one."""
        if not is_split:
            flavors = [
                {"name": flavor, "quotas": {name: self._quota(6, has_parent) for name in RESOURCES}}
                for flavor in FLAVORS
            ]
            return [{"resources": [*RESOURCES], "flavors": flavors}]
        return [
            {"resources": [name], "flavors": [{"name": flavor, "quotas": {name: self._quota(8, has_parent)}}]}
            for flavor, name in zip(FLAVORS, RESOURCES, strict=True)
        ]

    def _add_queue(self, name: str) -> None:
        rng, cohort = self.rng, QUEUES[name]
        self.queues[name] = fields = {
            "name": name,
            "cohort": cohort,
            "strategy": rng.choice(["StrictFIFO", "BestEffortFIFO", "BestEffortFIFO"]),
            "groups": self._groups(rng.random() < 0.3, bool(cohort)),
            "preemption": rng.choice(PREEMPTION if cohort else PREEMPTION[:2]),
            "fungibility": rng.choice(FUNGIBILITY),
            "fairWeight": rng.choice([0, 1, 1, 2]),
        }
        if rng.random() < 0.3:
            fields["admissionMode"] = MODE
        if rng.random() < 0.2:
            fields["checks"] = [{"name": "gate"}, {"name": "budget", "onFlavors": ["spot"]}]
        self._put("clusterQueue", **fields)
        for door in ("front", "back"):
            self._put("localQueue", name=f"{door}-{name}", clusterQueue=name, fairWeight=rng.choice([1, 2]))

    # --- what happens -------------------------------------------------------------------------------------------------

    def step(self) -> None:
        actions = [self.submit, self.advance, self.finish, self.ready, self.evicted, self.change, self.administer]
        self.rng.choices(actions, [7, 4, 3, 3, 2, 3, 1])[0]()
        self.stage.settle()
        self.stage.engine.check()

    def submit(self) -> None:
        rng = self.rng
        self.submitted += 1
        name = f"w{self.submitted:03}"
        self.names.append(name)
        queue = f"{rng.choice(['front', 'front', 'back'])}-{rng.choice([*QUEUES])}"
        fields: Json = {"name": name, "queue": queue, "priority": rng.choice([0, 0, 1, 5])}
        sets = [self._pod_set(f"s{number}") for number in range(rng.choice([1, 1, 1, 2, 3]))]
        if rng.random() < 0.25 and sets[0]["count"] > 1:
            sets[0]["minCount"] = 1
        fields |= {"podSets": sets, "eviction": rng.choice(["auto", "manual"])}
        if rng.random() < 0.1:
            fields["maxExecutionSeconds"] = rng.choice([5, 30])
        self._put("workload", **fields)

    def _pod_set(self, name: str) -> Json:
        rng = self.rng
        requests = {"cpu": rng.randint(1, 3)} | ({"gpu": rng.randint(0, 2)} if rng.random() < 0.4 else {})
        made: Json = {"name": name, "count": rng.randint(1, 3), "requests": requests}
        if rng.random() < 0.15:
            made["nodeSelector"] = {"kind": rng.choice(FLAVORS)}
        return made

    def advance(self) -> None:
        self.stage.advance(self.rng.choice([1, 3, 10, 25]))

    def _some(self, *kinds: str) -> str | None:
        found = [
            name
            for name in self.names
            if (workload := self.stage.workloads.get(f"ns/{name}")) is not None
            and all(is_true(workload, kind) for kind in kinds)
            and not is_true(workload, "Finished")
        ]
        return self.rng.choice(found) if found else None

    def finish(self) -> None:
        if (name := self._some("Admitted")) is not None:
            self.stage.engine.finished(f"ns/{name}", "Succeeded", "")

    def ready(self) -> None:
        if (name := self._some("Admitted")) is not None:
            self.stage.engine.pods_ready(f"ns/{name}", self.rng.random() < 0.8)

    def evicted(self) -> None:
        if (name := self._some("Evicted", "QuotaReserved")) is not None:
            self.stage.engine.pods_gone(f"ns/{name}")

    def change(self) -> None:
        name = self._some()
        if name is None:
            return
        rng, workload = self.rng, self.stage.workloads[f"ns/{name}"]
        checks = workload.status.admission_checks
        match rng.randrange(6):
            case 0:
                self._patch("workload", name, active=not workload.spec.active)
            case 1:
                self._patch("workload", name, priority=rng.choice([0, 1, 5]))
            case 2:
                self._delete("workload", name)
                self.names.remove(name)
            case 3 if workload.spec.pod_sets[0].count > 1:
                self.stage.reclaim(name, 1)
            case 4 if checks:
                state = rng.choice(["Ready", "Ready", "Ready", "Retry", "Rejected", "Pending"])
                given: Json = {"workload": name, "name": rng.choice(checks).name, "state": state}
                if rng.random() < 0.3:
                    given["requeueAfterSeconds"] = 7
                self.stage.write_check(given)
            case 5 if not is_true(workload, "QuotaReserved"):
                self._patch("workload", name, queue=f"front-{rng.choice([*QUEUES])}")

    def administer(self) -> None:
        rng, name = self.rng, self.rng.choice([*QUEUES])
        match rng.randrange(7):
            case 0:
                self._patch("clusterQueue", name, stopPolicy=rng.choice(["None", "None", "Hold", "HoldAndDrain"]))
            case 1:
                policy = rng.choice(["None", "None", "Hold", "HoldAndDrain"])
                self._patch("localQueue", f"front-{name}", stopPolicy=policy)
            case 2:
                self.queues[name]["groups"] = self._groups(rng.random() < 0.3, bool(self.queues[name]["cohort"]))
                self._patch("clusterQueue", name, groups=self.queues[name]["groups"])
                self.changes += 1
            case 3 if QUEUES[name]:
                self.queues[name]["cohort"] = rng.choice(["left", "right", "deep", "top"])
                self._patch("clusterQueue", name, cohort=self.queues[name]["cohort"])
                self.changes += 1
            case 4:
                self.cohorts["deep"]["parent"] = rng.choice(["left", "right", ""])
                self._patch("cohort", "deep", parent=self.cohorts["deep"]["parent"])
                self.changes += 1
            case 5:
                self._patch("clusterQueue", name, admissionMode=rng.choice([MODE, "NoAdmissionFairSharing"]))
            case 6:
                self._patch("clusterQueue", name, strategy=rng.choice(["StrictFIFO", "BestEffortFIFO"]))

    # --- what must hold -----------------------------------------------------------------------------------------------

    def excess(self) -> Counter[str]:
        """By how much which limit is exceeded."""
        held = {report.name: {(q.flavor, q.resource): q for q in report.quotas} for report in self._reports()}
        over: Counter[str] = Counter()
        for pair in PAIRS:
            for root in [name for name, one in self.cohorts.items() if not one["parent"]]:
                self._node(f"cohort {root}", self.cohorts[root], pair, held, over)
            for name, queue in self.queues.items():
                if not queue["cohort"]:
                    self._node(name, queue, pair, held, over)
        return Counter({name: amount for name, amount in over.items() if amount > 0})

    def _reports(self) -> Iterator[Any]:
        yield from self.stage.engine.cluster_queues()

    def _node(self, name: str, fields: Json, pair: Pair, held: Any, over: Counter[str]) -> tuple[int, int]:
        """What it gives to its parent, and what of its usage counts there; events what is over."""
        quota = _quota_of(fields["groups"], pair)
        subtree, usage = quota.get("nominal", 0), 0
        if name in self.queues:
            report = held[name].get(pair)
            usage = 0 if report is None else report.used // (1000 if pair[1] == "cpu" else 1)
        else:
            for child, below in self._children(name.removeprefix("cohort ")):
                given, counted = self._node(child, below, pair, held, over)
                subtree, usage = subtree + given, usage + counted
        kept = max(0, subtree - quota["lend"]) if "lend" in quota else 0
        is_root = not fields.get("parent", fields.get("cohort"))
        if is_root:
            over[f"{name} {pair}"] = usage - subtree
        elif "borrow" in quota:
            over[f"{name} {pair}"] = usage - subtree - quota["borrow"]
        return subtree - kept, max(0, usage - kept)

    def _children(self, cohort: str) -> Iterator[tuple[str, Json]]:
        yield from ((f"cohort {name}", one) for name, one in self.cohorts.items() if one["parent"] == cohort)
        yield from ((name, one) for name, one in self.queues.items() if one["cohort"] == cohort)

    def wake(self, queue: str) -> None:
        """Have everybody tried again."""
        self._patch("clusterQueue", queue, fairWeight=3 + self.rng.random())
        self._patch("clusterQueue", queue, fairWeight=self.queues[queue]["fairWeight"])

    def picture(self) -> str:
        """Everything that can be seen."""
        waiting = {name: [one.key for one in self.stage.engine.pending(name)] for name in self.queues}
        return f"{self.stage.now()} {waiting} {sorted(self.stage.workloads.items())}"


def _quota_of(groups: list[Json], pair: Pair) -> Json:
    for group in groups:
        for flavor in group["flavors"]:
            if flavor["name"] == pair[0] and pair[1] in flavor["quotas"]:
                found: Json = flavor["quotas"][pair[1]]
                return found
    return {}
