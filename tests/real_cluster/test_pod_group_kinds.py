"""PodGroups, Workloads and members are judged in the same words by a real API server, as far as that one has them.

The sandbox serves v1beta1 of Kubernetes 1.37. With a 1.36, which has the two kinds as v1alpha2 with other names and
forms of some fields, what both have is compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .client import MERGE, Client, Json, Refused
from .objects import node, pod
from .scheduler_process import SchedulerProcess
from .servers import Server, eventually

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@dataclass(frozen=True)
class Kinds:
    """The kinds of pod groups at one server."""

    client: Client
    version: str
    scheduler: Path
    """With what a scheduler comes to it."""

    def path(self, plural: str, name: str = "") -> str:
        path = f"/apis/scheduling.k8s.io/{self.version}/namespaces/default/{plural}"
        return f"{path}/{name}" if name else path

    def create(self, kind: str, spec: Json, name: str = "g") -> Json:
        body = {
            "apiVersion": f"scheduling.k8s.io/{self.version}",
            "kind": kind,
            "metadata": {"name": name},
            "spec": spec,
        }
        return self.client.request("POST", self.path(f"{kind.lower()}s"), body)

    def clear(self) -> None:
        for plural in ("podgroups", "workloads"):
            for found in self.client.request("GET", self.path(plural))["items"]:
                path = self.path(plural, found["metadata"]["name"])
                self.client.request("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
                self.client.request("DELETE", path)


@pytest.fixture(scope="module")
def real(grouped_server: Server) -> Kinds:
    version = grouped_server.kinds["podgroups"].version
    return Kinds(Client(grouped_server.admin), version, grouped_server.scheduler)


@pytest.fixture(scope="module")
def sandbox(sandbox_server: Server) -> Kinds:
    return Kinds(Client(sandbox_server.admin), "v1beta1", sandbox_server.scheduler)


@pytest.fixture(autouse=True)
def empty(real: Kinds, sandbox: Kinds) -> Iterator[None]:
    yield
    real.clear()
    sandbox.clear()


def rejection(server: Kinds, kind: str, spec: Json) -> tuple[int, Any]:
    """Code and causes (or the sentence, if there are none); nothing if it was taken."""
    try:
        server.create(kind, spec)
    except Refused as refused:
        causes = sorted((one["field"], one["reason"], one["message"]) for one in refused.causes)
        return refused.code, causes or str(refused)
    return 201, []


BASIC: Json = {"schedulingPolicy": {"basic": {}}}
GANG: Json = {"schedulingPolicy": {"gang": {"minCount": 2}}}


def claims(*entries: Json) -> Json:
    return {**BASIC, "resourceClaims": list(entries)}


def topology(*keys: str) -> Json:
    return {**BASIC, "schedulingConstraints": {"topology": [{"key": key} for key in keys]}}


GROUPS: dict[str, Json] = {
    "basic": BASIC,
    "gang": GANG,
    "nothing": {},
    "no-policy": {"schedulingPolicy": {}},
    "two-policies": {"schedulingPolicy": {**BASIC["schedulingPolicy"], **GANG["schedulingPolicy"]}},
    "zero": {"schedulingPolicy": {"gang": {"minCount": 0}}},
    "negative": {"schedulingPolicy": {"gang": {"minCount": -3}}},
    "no-count": {"schedulingPolicy": {"gang": {}}},
    "constraint": topology("topology.kubernetes.io/zone"),
    "no-constraint": topology(),
    "two-constraints": topology("a", "b"),
    "empty-key": topology(""),
    "bad-key": topology("a b"),
    "bad-prefix": topology("A_/b"),
    "long-key": topology("x" * 64),
    "claim": claims({"name": "a", "resourceClaimName": "c"}),
    "claim-template": claims({"name": "a", "resourceClaimTemplateName": "c"}),
    "five-claims": claims(*({"name": f"a{at}", "resourceClaimName": "c"} for at in range(5))),
    "claim-without-source": claims({"name": "a"}),
    "claim-with-two-sources": claims({"name": "a", "resourceClaimName": "c", "resourceClaimTemplateName": "t"}),
    "claim-without-name": claims({"name": "", "resourceClaimName": "c"}),
    "bad-claim-name": claims({"name": "A/b", "resourceClaimName": "c_"}),
    "unknown-class": {**BASIC, "priorityClassName": "nowhere"},
    "bad-class": {**BASIC, "priorityClassName": "no/where"},
    "other-priority": {**BASIC, "priority": 7},
    "same-priority": {**BASIC, "priority": 0},
    "critical": {**BASIC, "priorityClassName": "system-cluster-critical"},
}


@pytest.mark.parametrize("name", GROUPS)
def test_pod_groups_are_judged_in_the_same_words(real: Kinds, sandbox: Kinds, name: str) -> None:
    assert rejection(sandbox, "PodGroup", GROUPS[name]) == rejection(real, "PodGroup", GROUPS[name])


NEWER_GROUPS: dict[str, Json] = {
    "single": {**BASIC, "disruptionMode": {"single": {}}},
    "all": {**GANG, "disruptionMode": {"all": {}}},
    "basic-all": {**BASIC, "disruptionMode": {"all": {}}},
    "two-modes": {**GANG, "disruptionMode": {"all": {}, "single": {}}},
    "no-mode": {**GANG, "disruptionMode": {}},
    "never": {**GANG, "preemptionPolicy": "Never"},
    "sometimes": {**GANG, "preemptionPolicy": "Sometimes"},
    "of-a-workload": {**GANG, "workloadRef": {"workloadName": "w", "templateName": "t"}},
    "of-half-a-workload": {**GANG, "workloadRef": {"workloadName": "w"}},
    "of-nothing": {**GANG, "workloadRef": {}},
    "of-bad-names": {**GANG, "workloadRef": {"workloadName": "W_", "templateName": "a.b"}},
}
"""With fields and forms that 1.36 has not."""


def of_1_37(real: Kinds) -> None:
    if real.version == "v1alpha2":
        pytest.skip("needs the programs of a 1.37")


@pytest.mark.parametrize("name", NEWER_GROUPS)
def test_newer_fields_are_judged_in_the_same_words(real: Kinds, sandbox: Kinds, name: str) -> None:
    of_1_37(real)
    assert rejection(sandbox, "PodGroup", NEWER_GROUPS[name]) == rejection(real, "PodGroup", NEWER_GROUPS[name])
    if rejection(real, "PodGroup", NEWER_GROUPS[name])[0] == 409:
        theirs, ours = (server.client.request("GET", server.path("podgroups", "g")) for server in (real, sandbox))
        assert ours["spec"] == theirs["spec"]


NEWER_CHANGES: dict[str, Json] = {
    "more": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    "fewer": {"schedulingPolicy": {"gang": {"minCount": 1}}},
    "none": {"schedulingPolicy": {"gang": {"minCount": 0}}},
    "another-policy": {"schedulingPolicy": {"gang": None, "basic": {}}},
    "another-mode": {"disruptionMode": {"single": None, "all": {}}},
    "another-preemption": {"preemptionPolicy": "Never"},
    "a-workload": {"workloadRef": {"workloadName": "w", "templateName": "t"}},
}


@pytest.mark.parametrize("name", NEWER_CHANGES)
def test_changes_are_judged_in_the_same_words(real: Kinds, sandbox: Kinds, name: str) -> None:
    of_1_37(real)
    said: list[Any] = []
    for server in (real, sandbox):
        server.create("PodGroup", GANG)
        try:
            change = {"spec": NEWER_CHANGES[name]}
            said.append(server.client.request("PATCH", server.path("podgroups", "g"), change, MERGE)["spec"])
        except Refused as refused:
            said.append((refused.code, sorted(sorted(cause.items()) for cause in refused.causes)))
    assert said[1] == said[0]


@pytest.mark.parametrize("name", [name for name in GROUPS if name in ("basic", "gang", "constraint", "claim-template")])
def test_what_is_stored_is_the_same(real: Kinds, sandbox: Kinds, name: str) -> None:
    theirs, ours = (server.create("PodGroup", GROUPS[name]) for server in (real, sandbox))
    if real.version == "v1alpha2":
        # A union since 1.37, a word before; there was no preemption policy yet, and another reference to the Workload.
        assert theirs["spec"].pop("podGroupTemplateRef", None) is None
        assert theirs["spec"].pop("disruptionMode") == "Pod"
        assert ours["spec"].pop("disruptionMode") == {"single": {}}
        assert ours["spec"].pop("preemptionPolicy") == "PreemptLowerPriority"
    assert ours["spec"] == theirs["spec"]
    assert ours["metadata"]["finalizers"] == theirs["metadata"]["finalizers"]
    assert theirs.get("status") == ours.get("status")


def test_what_may_not_change_is_rejected_in_the_same_words(real: Kinds, sandbox: Kinds) -> None:
    """`gang.minCount` may change since 1.37."""
    changes: list[Json] = [
        {"schedulingConstraints": {"topology": [{"key": "a"}]}},
        {"resourceClaims": [{"name": "a", "resourceClaimName": "c"}]},
        {"priorityClassName": "other"},
        {"priority": 7},
    ]
    said: list[list[Any]] = []
    for server in (real, sandbox):
        server.create("PodGroup", BASIC)
        said.append([])
        for change in changes:
            with pytest.raises(Refused) as refused:
                server.client.request("PATCH", server.path("podgroups", "g"), {"spec": change}, MERGE)
            said[-1].append((refused.value.code, refused.value.causes))
    assert said[1] == said[0]


STATUSES: dict[str, Json] = {
    "good": {
        "conditions": [
            {
                "type": "X",
                "status": "True",
                "reason": "Good",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ]
    },
    "bare-condition": {"conditions": [{"type": "X", "status": "", "reason": "", "message": ""}]},
    "two-of-a-type": {
        "conditions": [
            {
                "type": "X",
                "status": status,
                "reason": "Good",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
            for status in ("True", "False")
        ]
    },
    "condition-without-type": {
        "conditions": [
            {
                "type": "",
                "status": "True",
                "reason": "Good",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ]
    },
    "bad-condition": {
        "conditions": [
            {
                "type": "a b",
                "status": "Maybe",
                "reason": "a b",
                "message": "",
                "observedGeneration": -1,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ]
    },
    "unknown-claim": {"resourceClaimStatuses": [{"name": "b", "resourceClaimName": "c"}]},
    "known-claim": {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "c"}]},
}


@pytest.mark.parametrize("name", STATUSES)
def test_statuses_are_judged_in_the_same_words(real: Kinds, sandbox: Kinds, name: str) -> None:
    if real.version == "v1alpha2" and name in ("bare-condition", "condition-without-type", "two-of-a-type"):
        pytest.skip("1.37 has other words")
    said: list[Any] = []
    for server in (real, sandbox):
        made = server.create("PodGroup", GROUPS["claim-template"])
        path = server.path("podgroups", made["metadata"]["name"])
        try:
            written = server.client.request("PATCH", f"{path}/status", {"status": STATUSES[name]}, MERGE)
            said.append(written["status"])
        except Refused as refused:
            said.append((refused.code, sorted(sorted(cause.items()) for cause in refused.causes)))
    assert said[1] == said[0]


def workload(*templates: Json, **spec: Any) -> Json:
    return {"podGroupTemplates": list(templates), **spec}


A: Json = {"name": "a", **BASIC}
B: Json = {"name": "b", **GANG}
WORKLOADS: dict[str, Json] = {
    "one": workload(A),
    "two": workload(A, B),
    "nine": workload(*({**A, "name": f"a{at}"} for at in range(9))),
    "unnamed": workload({**A, "name": ""}),
    "bad-name": workload({**A, "name": "a.b"}),
    "no-policy": workload({"name": "a", "schedulingPolicy": {}}),
    "controller": workload(A, controllerRef={"apiGroup": "batch", "kind": "Job", "name": "x"}),
    "bad-controller": workload(A, controllerRef={"apiGroup": "b_", "kind": "a/b", "name": ".."}),
    "empty-controller": workload(A, controllerRef={"kind": "", "name": ""}),
    "high": workload({**A, "priority": 2_000_000_000}),
}


NEWER_WORKLOADS: dict[str, Json] = {
    "priorities": workload({**A, "priority": 1}, {**B, "priority": 2}),
    "classes": workload({**A, "priorityClassName": "a"}, B),
    "modes": workload({**A, "disruptionMode": {"all": {}}}, {**B, "disruptionMode": {}}),
    "policy": workload({**A, "preemptionPolicy": "Maybe"}),
    "empty": {},
    "none": workload(),
}


@pytest.mark.parametrize("name", NEWER_WORKLOADS)
def test_newer_fields_of_workloads_are_judged_in_the_same_words(real: Kinds, sandbox: Kinds, name: str) -> None:
    of_1_37(real)
    assert rejection(sandbox, "Workload", NEWER_WORKLOADS[name]) == rejection(real, "Workload", NEWER_WORKLOADS[name])


@pytest.mark.parametrize("name", WORKLOADS)
def test_workloads_are_judged_in_the_same_words(real: Kinds, sandbox: Kinds, name: str) -> None:
    assert rejection(sandbox, "Workload", WORKLOADS[name]) == rejection(real, "Workload", WORKLOADS[name])


@pytest.mark.parametrize("kind", ["PodGroup", "Workload"])
def test_tables_have_the_same_columns_and_cells(real: Kinds, sandbox: Kinds, kind: str) -> None:
    tables: list[tuple[Any, Any]] = []
    for server in (real, sandbox):
        server.create(kind, GANG if kind == "PodGroup" else WORKLOADS["two"])
        path = server.path(f"{kind.lower()}s")
        table = server.client.request("GET", path, accept=TABLE)
        (row,) = table["rows"]
        tables.append(([column["name"] for column in table["columnDefinitions"]], row["cells"][:-1]))
    assert tables[1] == tables[0]


MEMBERS: dict[str, Json] = {
    "member": {"podGroupName": "g"},
    "of-nothing": {},
    "of-a-bad-name": {"podGroupName": "A_"},
}


@pytest.mark.parametrize("name", MEMBERS)
def test_members_are_judged_in_the_same_words(real: Kinds, sandbox: Kinds, name: str) -> None:
    said: list[Any] = []
    for server in (real, sandbox):
        spec = {"schedulingGroup": MEMBERS[name], "containers": [{"name": "c", "image": "i"}]}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p"}, "spec": spec}
        try:
            made = server.client.request("POST", "/api/v1/namespaces/default/pods?dryRun=All", body)
            said.append(made["spec"]["schedulingGroup"])
        except Refused as refused:
            said.append((refused.code, refused.causes))
    assert said[1] == said[0]


def test_a_gang_is_scheduled_in_the_version_that_the_server_has(real: Kinds, tmp_path: Path) -> None:
    """The group is read in it, v1alpha2 at a 1.36, and its status is written there."""
    client = real.client
    client.request("POST", "/api/v1/nodes", node("gang-node"))
    scheduler = SchedulerProcess(real.scheduler, tmp_path / "log", "--leader-elect=false", "--secure-port=0")
    try:
        real.create("PodGroup", GANG)
        create_member(client, "first")

        def condition() -> Any:
            status = client.request("GET", real.path("podgroups", "g"))["status"]
            return next((c["message"] or c["status"] for c in status.get("conditions", ())), None)

        eventually("the group says what it waits for", lambda: condition() == "waiting for pods: 1 of 2")
        create_member(client, "second")
        eventually("both are bound", lambda: {bound_to(client, name) for name in OF_GANG} == {"gang-node"})
        eventually("the group says so", lambda: condition() == "True")
    finally:
        scheduler.end()
        for name in OF_GANG:
            client.request("DELETE", f"/api/v1/namespaces/default/pods/{name}", {"gracePeriodSeconds": 0})
        client.request("DELETE", "/api/v1/nodes/gang-node")


OF_GANG = ("first", "second")


def create_member(client: Client, name: str) -> None:
    made = pod(name)
    made["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    client.request("POST", "/api/v1/namespaces/default/pods", made)


def bound_to(client: Client, name: str) -> str:
    return str(client.request("GET", f"/api/v1/namespaces/default/pods/{name}")["spec"].get("nodeName", ""))
