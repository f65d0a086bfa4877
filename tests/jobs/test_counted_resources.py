"""`resources` of the configuration: what of a pod's requests counts against quota."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.jobs.configuration.load import queueing_of
from pilotage.jobs.counted_resources import counted, counting_rules

GPU, MIG, MEM = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "example.com/gpu-memory"


def counts(asked: dict[str, int], **resources: Any) -> dict[str, int]:
    return counted(asked, counting_rules(queueing_of({"resources": resources}).resources))


def rule(input_: str, strategy: str | None = None, **more: Any) -> dict[str, Any]:
    return {"input": input_, **({"strategy": strategy} if strategy else {}), **more}


def test_without_rules_everything_counts_as_it_is_asked_for() -> None:
    assert counts({"cpu": 500, GPU: 1}) == {"cpu": 500, GPU: 1}


def test_resources_with_an_excluded_prefix_do_not_count() -> None:
    assert counts({"cpu": 500, "example.com/a": 1, GPU: 1}, excludeResourcePrefixes=["example.com/", "nvi"]) == {
        "cpu": 500
    }


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("Replace", {"cpu": 1000, MEM: 10}),
        ("Retain", {"cpu": 1000, MIG: 2, MEM: 10}),
        (None, {"cpu": 1000, MIG: 2, MEM: 10}),
    ],
)
def test_a_resource_counts_as_another_in_its_place_or_besides(strategy: str | None, expected: dict[str, int]) -> None:
    rules = [rule(MIG, strategy, outputs={MEM: 5})]
    assert counts({"cpu": 1000, MIG: 2}, transformations=rules) == expected


def test_what_several_resources_count_as_is_added_up() -> None:
    rules = [rule(MIG, "Replace", outputs={MEM: "5Gi"}), rule(GPU, "Replace", outputs={MEM: "40Gi"})]
    assert counts({MIG: 1, GPU: 1, MEM: 7}, transformations=rules) == {MEM: 45 * 2**30 + 7}


def test_parts_of_a_core_count_as_parts_and_the_sum_is_rounded_up() -> None:
    rules = [rule("cpu", "Replace", outputs={"example.com/credits": 3})]
    assert counts({"cpu": 500}, transformations=rules) == {"example.com/credits": 2}
    assert counts({"cpu": 4000}, transformations=rules) == {"example.com/credits": 12}
    assert counts({GPU: 2}, transformations=[rule(GPU, outputs={"cpu": "250m"})]) == {GPU: 2, "cpu": 500}


def test_a_resource_may_count_once_for_each_unit_of_another() -> None:
    rules = [rule(MEM, "Replace", outputs={"example.com/total": 1}, multiplyBy=GPU)]
    assert counts({MEM: 8, GPU: 3}, transformations=rules) == {"example.com/total": 24, GPU: 3}
    assert counts({MEM: 8}, transformations=rules) == {"example.com/total": 8}


def test_what_is_excluded_is_not_transformed() -> None:
    rules = [rule(MIG, "Replace", outputs={MEM: 5})]
    assert counts({MIG: 1, "cpu": 1}, transformations=rules, excludeResourcePrefixes=["nvidia.com/"]) == {"cpu": 1}
