"""Kueue's Configuration file: what it means, and everything that is said about a wrong one."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.config.problems import ConfigError
from pilotage.jobs.configuration.kinds import (
    QueueingConfiguration,
    RequeuingStrategy,
    WaitForPodsReady,
)
from pilotage.jobs.configuration.load import (
    is_queueing_text,
    parse_queueing,
    queueing_of,
    unserved_queueing,
    without_effect,
)

V2 = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
V1 = "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\n"


def readiness(text: str) -> WaitForPodsReady | None:
    return parse_queueing(text).wait_for_pods_ready


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as error:
        parse_queueing(text, "kueue.yaml")
    return list(error.value.lines)


def test_an_empty_file_of_the_present_version_waits_half_an_hour() -> None:
    assert parse_queueing(V2) == QueueingConfiguration()
    assert readiness(V2) == WaitForPodsReady(timeout=1800.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(V1, None, id="v1beta1 is off by default"),
        pytest.param(V1 + "waitForPodsReady: {timeout: 1m}", None, id="v1beta1 is off without enable"),
        pytest.param(
            V1 + "waitForPodsReady: {enable: true}",
            WaitForPodsReady(timeout=300.0, block_admission=True),
            id="v1beta1 waits five minutes and blocks admission",
        ),
        pytest.param(V2 + "waitForPodsReady: {enable: false}", None, id="enable: false is off in any version"),
        pytest.param(V2 + "featureGates: {DisableWaitForPodsReady: true}", None, id="off by the gate"),
        pytest.param(V2 + "waitForPodsReady: {timeout: 0s}", WaitForPodsReady(1800.0), id="zero is the default"),
    ],
)
def test_whether_and_how_long_to_wait(text: str, expected: WaitForPodsReady | None) -> None:
    assert readiness(text) == expected


def test_every_field_of_the_readiness_block_is_read() -> None:
    text = V2 + (
        "waitForPodsReady:\n"
        "  timeout: 10m\n"
        "  recoveryTimeout: 3m\n"
        "  blockAdmission: true\n"
        "  requeuingStrategy:\n"
        "    timestamp: Creation\n"
        "    backoffLimitCount: 5\n"
        "    backoffBaseSeconds: 10\n"
        "    backoffMaxSeconds: 0\n"
    )
    assert readiness(text) == WaitForPodsReady(600.0, 180.0, True, RequeuingStrategy("Creation", 5, 10, 0))


@pytest.mark.parametrize(
    ("written", "seconds"), [("", 600.0), ("recoveryTimeout: 0s", 0.0), ("recoveryTimeout: 1m", 60)]
)
def test_recovery_is_timed_as_the_start_unless_told_otherwise(written: str, seconds: float) -> None:
    block = readiness(V2 + f"waitForPodsReady: {{timeout: 10m, {written}}}")
    assert block is not None and block.effective_recovery_timeout == seconds


def test_the_spelling_of_the_kep_is_read_and_must_not_contradict() -> None:
    block = readiness(V2 + "waitForPodsReady: {requeuingTimestamp: Creation}")
    assert block is not None and block.requeuing_strategy.timestamp == "Creation"
    contradiction = "waitForPodsReady: {requeuingTimestamp: Creation, requeuingStrategy: {timestamp: Eviction}}"
    [problem] = problems(V2 + contradiction)
    assert 'waitForPodsReady.requeuingTimestamp: Invalid value: "Creation"' in problem


def test_all_problems_at_once_with_line_path_and_suggestion() -> None:
    text = V2 + (
        "waitForPodsReady:\n"
        "  timout: 5m\n"
        "  recoveryTimeout: -3s\n"
        "  requeuingStrategy: {timestamp: Evicton, backoffMaxSeconds: -1}\n"
        "integrations: {frameworks: [pod, pod]}\n"
        "fairSharing: {preemptionStrategies: [LessThanInitialShares]}\n"
        "manageJobs: true\n"
    )
    assert problems(text) == [
        'kueue.yaml:4: waitForPodsReady.timout: unknown field (did you mean "timeout"?)',
        'kueue.yaml:5: waitForPodsReady.recoveryTimeout: Invalid value: "-3s": must not be negative',
        "kueue.yaml:6: waitForPodsReady.requeuingStrategy.backoffMaxSeconds: Invalid value: -1: must not be negative",
        'kueue.yaml:6: waitForPodsReady.requeuingStrategy.timestamp: Unsupported value: "Evicton"'
        ' (did you mean "Eviction"?): supported values: "Eviction", "Creation"',
        'kueue.yaml:7: integrations.frameworks[1]: Duplicate value: "pod"',
        'kueue.yaml:8: fairSharing.preemptionStrategies[0]: Unsupported value: "LessThanInitialShares"'
        ' (did you mean "LessThanInitialShare"?): supported values: "LessThanOrEqualToFinalShare", '
        '"LessThanInitialShare"',
        "kueue.yaml:9: manageJobs: unknown field",
    ]


def test_a_file_that_is_no_configuration_is_told_what_to_write() -> None:
    assert problems("kind: Configurations\n") == [
        'kueue.yaml:1: apiVersion: Required value: write "apiVersion: config.kueue.x-k8s.io/v1beta2"',
        'kueue.yaml:1: kind: Unsupported value: "Configurations" (did you mean "Configuration"?): '
        'supported values: "Configuration"',
    ]
    assert problems("") == ["kueue.yaml: is empty; it should hold a Configuration"]


def test_the_config_map_of_an_installation_is_read_with_its_own_lines() -> None:
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kueue-manager-config}\ndata:\n"
        "  controller_manager_config.yaml: |\n"
        "    apiVersion: config.kueue.x-k8s.io/v1beta1\n    kind: Configuration\n"
        "    waitForPodsReady:\n      enable: true\n      requeuingTimestamp: Creation\n"
    )
    block = readiness(text)
    assert block is not None and block.requeuing_strategy.timestamp == "Creation"
    [problem] = problems(text.replace("Creation", "Front"))
    assert problem.startswith("kueue.yaml:10: waitForPodsReady.requeuingTimestamp: Unsupported value")


def test_what_only_another_manager_needs_is_accepted() -> None:
    text = (
        V2 + "health: {healthProbeBindAddress: ':8081'}\nwebhook: {port: 9443}\ninternalCertManagement: {enable: true}"
    )
    assert parse_queueing(text) == QueueingConfiguration()


@pytest.mark.parametrize(
    ("text", "is_ours"),
    [(V2, True), ("kind: ConfigMap", True), ("apiVersion: config.kueue.x-k8s.io/v1", True), ("kind: Pod", False)],
)
def test_which_files_are_meant_for_queueing(text: str, is_ours: bool) -> None:
    assert is_queueing_text(text) is is_ours


@pytest.mark.parametrize(
    ("selector", "namespace", "is_managed"),
    [
        (None, "team-a", True),
        (None, "kube-system", False),
        ({"matchLabels": {"queued": "yes"}}, "team-a", False),
    ],
)
def test_jobs_without_a_queue_are_managed_where_the_selector_says(
    selector: Any, namespace: str, is_managed: bool
) -> None:
    value: dict[str, Any] = {"manageJobsWithoutQueueName": True}
    if selector is not None:
        value["managedJobsNamespaceSelector"] = selector
    labels = {"kubernetes.io/metadata.name": namespace}
    assert queueing_of(value).manages_namespace(labels) is is_managed
    assert not QueueingConfiguration().manages_namespace(labels)


def test_strategies_of_fair_sharing_are_those_that_make_sense_together() -> None:
    default = queueing_of({"fairSharing": {}}).fair_sharing
    assert default is not None and queueing_of({"fairSharing": {"preemptionStrategies": []}}).fair_sharing == default
    [told] = problems(V2 + "fairSharing: {preemptionStrategies: [LessThanInitialShare, LessThanOrEqualToFinalShare]}")
    assert "fairSharing.preemptionStrategies: Invalid value" in told


def test_what_a_resource_counts_as_has_to_be_an_amount() -> None:
    rules = (
        "resources: {transformations: [{input: a.com/b, outputs: {c.com/d: lots}}, {input: x.io/y, outputs: {z: -1}}]}"
    )
    first, second = problems(V2 + rules)
    assert 'resources.transformations[0].outputs[c.com/d]: Invalid value: "lots"' in first
    assert 'resources.transformations[1].outputs[z]: Invalid value: "-1"' in second


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "integrations: {frameworks: [batch/job, trainer.kubeflow.org/trainjob]}", "trainjob", id="framework"
        ),
        pytest.param(
            "integrations: {frameworks: [batch/job, ray.io/rayservice]}", "its RayClusters are queued", id="Ray service"
        ),
        pytest.param("integrations: {externalFrameworks: [Foo]}", "Kind.version.group", id="no name of a kind"),
        pytest.param("integrations: {externalFrameworks: [Job.v1.batch]}", "built in", id="known kind"),
        pytest.param("integrations: {podOptions: {}}", "podOptions", id="pod options"),
        pytest.param("featureGates: {MultiKueue: true}", "always off", id="gate that is off"),
        pytest.param("featureGates: {LendingLimit: false}", "always on", id="gate that is on"),
        pytest.param("featureGates: {LendingLimits: true}", 'did you mean "LendingLimit"', id="unknown gate"),
        pytest.param("multiKueue: {origin: here}", "other clusters", id="other clusters"),
        pytest.param("resources: {deviceClassMappings: [{name: a}]}", "deviceClassMappings", id="mappings"),
    ],
)
def test_what_is_asked_for_in_vain_is_said_with_its_line(text: str, said: str) -> None:
    [problem] = unserved_queueing(V2 + text)
    assert problem.line == 3 and said in problem.text("kueue.yaml")
    in_map = "kind: ConfigMap\ndata:\n  controller_manager_config.yaml: |\n" + "".join(
        f"    {line}\n" for line in (V2 + text).splitlines()
    )
    assert len(unserved_queueing(in_map)) == 1
    parse_queueing(V2 + text)  # it is no reason not to start


def test_what_is_served_is_not_complained_about() -> None:
    text = "integrations: {frameworks: [pod, ray.io/rayjob], externalFrameworks: [Widget.v1alpha1.example.com]}\n"
    gates = "featureGates: {LocalQueueDefaulting: false, LendingLimit: true, MultiKueue: false}\n"
    assert unserved_queueing(V2 + text + gates) == []
    assert without_effect(V2 + "health: {}\nwebhook: {}\n") == ["health", "webhook"]
