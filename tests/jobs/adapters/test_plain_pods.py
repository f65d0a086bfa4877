"""Pods held back by a gate: who takes part, which of them are one workload, and when it is ready or done."""

from __future__ import annotations

import pytest

from pilotage.jobs.adapters import marks, plain_pods
from pilotage.jobs.adapters.facts import JobEnding
from pilotage.jobs.adapters.pod_set_info import PodSetInfo
from pilotage.model.pod_spec import Toleration
from pilotage.testing.builders import PodBuilder, pod


def single(name: str = "p") -> PodBuilder:
    return pod(name).label(marks.QUEUE_NAME, "lq").gate(marks.GATE).requests(cpu="1")


def member(name: str, total: int = 2, cpu: str = "1") -> PodBuilder:
    grouped = pod(name).label(marks.QUEUE_NAME, "lq").label(marks.GROUP_NAME, "g").requests(cpu=cpu)
    return grouped.annotation(marks.GROUP_TOTAL_COUNT, str(total)).uid(name)


def group(*pods: PodBuilder) -> plain_pods.PodGroup:
    return plain_pods.group("g", [one.build() for one in pods])


def ready(builder: PodBuilder) -> PodBuilder:
    return builder.phase("Running").status(conditions=[{"type": "Ready", "status": "True"}])


@pytest.mark.parametrize(
    ("builder", "expected"),
    [
        pytest.param(single(), True, id="label and gate"),
        pytest.param(pod("p").label(marks.QUEUE_NAME, "lq"), False, id="not gated"),
        pytest.param(pod("p").gate(marks.GATE), False, id="no queue"),
        pytest.param(pod("p").label(marks.QUEUE_NAME, "lq").label(marks.MANAGED, "true"), True, id="let go by us"),
    ],
)
def test_who_takes_part(builder: PodBuilder, expected: bool) -> None:
    assert plain_pods.takes_part(builder.build()) is expected


def test_start_removes_our_gate_only_and_steers() -> None:
    waiting = single().gate("other").node_selector({"arch": "arm"}).tolerate("own").build()
    info = PodSetInfo("main", 1, {"l": "1"}, {}, {"pool": "spot"}, (Toleration(key="spot"),))
    patch = plain_pods.start_patch(waiting, info)
    assert patch["spec"]["schedulingGates"] == [{"name": "other"}]
    assert patch["spec"]["nodeSelector"] == {"arch": "arm", "pool": "spot"}
    assert [one["key"] for one in patch["spec"]["tolerations"]] == ["own", "spot"]
    assert patch["metadata"]["labels"] == {"l": "1", marks.MANAGED: "true"}
    assert patch["metadata"]["annotations"] == {marks.ROLE_HASH: "main"}


def test_members_of_the_same_shape_are_one_pod_set() -> None:
    sets = plain_pods.pod_sets(group(member("a", 3), member("b", 3), member("c", 3, cpu="4")))
    assert sorted(one.count for one in sets) == [1, 2]
    assert plain_pods.role_of(member("a").build()) == plain_pods.role_of(member("b").build())


def test_the_first_member_stands_for_the_missing_ones_if_it_may() -> None:
    alone = group(member("a", 3))
    assert not alone.is_complete
    fast = group(member("a", 3).annotation(marks.GROUP_FAST_ADMISSION, "true"))
    assert fast.is_complete
    assert [one.count for one in plain_pods.pod_sets(fast)] == [3]


def test_members_must_agree() -> None:
    assert "must be the same number" in group(member("a", 2), member("b", 3)).problem
    assert "different queues" in group(member("a"), member("b").label(marks.QUEUE_NAME, "x")).problem
    assert not group(member("a", 2), member("b", 3)).is_complete


def test_more_members_than_wanted_go_youngest_first_but_never_one_that_runs() -> None:
    names = [one.name for one in plain_pods.excess(group(member("a").gate(marks.GATE), member("b"), member("c")))]
    assert names == ["a"], "b and c are not gated any more"


def test_failed_members_may_be_replaced() -> None:
    broken = member("a").phase("Failed")
    assert not group(broken, member("b")).is_complete
    assert group(broken, member("b"), member("c")).is_complete


def test_a_succeeded_member_counts_as_ready() -> None:
    assert plain_pods.run_facts(group(ready(member("a")), member("b").phase("Succeeded"))).are_pods_ready
    assert not plain_pods.run_facts(group(ready(member("a")), member("b").phase("Running"))).are_pods_ready
    assert not plain_pods.run_facts(group(ready(member("a")))).are_pods_ready, "one is missing"


def test_how_groups_end() -> None:
    done, failed = member("a").phase("Succeeded"), member("b").phase("Failed")
    assert plain_pods.run_facts(group(done, member("b").phase("Succeeded"))).ending == JobEnding(
        True, "Pods succeeded: 2/2."
    )
    assert plain_pods.run_facts(group(done, failed)).ending is None, "b may be replaced"
    final = failed.annotation(marks.RETRIABLE_IN_GROUP, "false")
    assert plain_pods.run_facts(group(done, final)).ending == JobEnding(False, "Pods succeeded: 1/2.")
    serving = member("b").phase("Succeeded").annotation(marks.GROUP_SERVING, "true")
    assert plain_pods.run_facts(group(done, serving)).ending is None


def test_a_pod_alone_ends_with_its_phase() -> None:
    facts = plain_pods.run_facts(plain_pods.group("", [single().phase("Failed").build()]))
    assert facts.ending == JobEnding(False, "Pods succeeded: 0/1.")
    waiting = plain_pods.run_facts(plain_pods.group("", [single().build()]))
    assert waiting.is_suspended and not waiting.has_active_pods and waiting.ending is None
