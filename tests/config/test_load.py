"""KubeSchedulerConfiguration: what is accepted, the defaults, and the texts of what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.config.kinds import (
    ClientConnection,
    KubeSchedulerConfiguration,
    LeaderElection,
    PluginRef,
    PluginSet,
    SchedulerConfiguration,
)
from pilotage.config.load import configuration_of, default_configuration, load_configuration, parse_configuration
from pilotage.config.problems import ConfigError

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def parse(body: str) -> SchedulerConfiguration:
    return parse_configuration(HEADER + body, "f")


def problems_of(text: str) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        parse_configuration(text, "f")
    return list(raised.value.lines)


def test_a_file_that_says_nothing_is_the_default() -> None:
    assert parse("").scheduler == default_configuration().scheduler
    assert parse("profiles: []\n").scheduler == default_configuration().scheduler


def test_the_defaults_are_those_of_kube_scheduler() -> None:
    scheduler = default_configuration().scheduler
    assert (scheduler.parallelism, scheduler.percentage_of_nodes_to_score) == (16, 0)
    assert (scheduler.pod_initial_backoff_seconds, scheduler.pod_max_backoff_seconds) == (1, 10)
    assert scheduler.leader_election == LeaderElection(True, 15, 10, 2, "leases", "kube-scheduler", "kube-system")
    assert scheduler.client_connection == ClientConnection("", "", "application/vnd.kubernetes.protobuf", None, None)
    assert scheduler.enable_profiling and scheduler.enable_contention_profiling
    assert not scheduler.delay_cache_until_active
    assert [profile.scheduler_name for profile in scheduler.profiles] == ["default-scheduler"]


def test_contention_profiling_follows_profiling_unless_it_is_given() -> None:
    assert parse("enableProfiling: false").scheduler.enable_contention_profiling is False
    assert parse("enableProfiling: false\nenableContentionProfiling: true").scheduler.enable_contention_profiling


@pytest.mark.parametrize(
    ("written", "limit"),
    [
        ("{}", (0, 100)),
        ("{kubeconfig: k}", (0, 100)),
        ("{qps: 50, burst: 100}", (50, 100)),
        ("{qps: 50}", (50, 100)),
        ("{burst: 100}", (50, 100)),
        ("{qps: 7.5, burst: 3}", (7.5, 3)),
        ("{qps: -1}", (0, 100)),
        ("{qps: 0, burst: 5}", (0, 5)),
    ],
)
def test_calls_are_limited_if_a_file_says_so_also_by_the_default_numbers(
    written: str, limit: tuple[float, int]
) -> None:
    connection = parse(f"clientConnection: {written}").scheduler.client_connection
    assert (connection.calls_per_second, connection.calls_at_once) == limit


def test_every_field_is_read() -> None:
    scheduler = parse(
        """
parallelism: 8
percentageOfNodesToScore: 40
podInitialBackoffSeconds: 3
podMaxBackoffSeconds: 3
delayCacheUntilActive: true
clientConnection: {kubeconfig: k, acceptContentTypes: a, contentType: c, qps: 12.5, burst: 7}
leaderElection: {leaderElect: true, leaseDuration: 20s, renewDeadline: 15s, retryPeriod: 1s, resourceName: "n",
                 resourceNamespace: ns, resourceLock: leases}
profiles:
- schedulerName: a
  percentageOfNodesToScore: 10
"""
    ).scheduler
    assert scheduler.client_connection == ClientConnection("k", "a", "c", 12.5, 7)
    assert scheduler.leader_election == LeaderElection(True, 20, 15, 1, "leases", "n", "ns")
    assert (scheduler.parallelism, scheduler.percentage_of_nodes_to_score) == (8, 40)
    assert (scheduler.pod_initial_backoff_seconds, scheduler.pod_max_backoff_seconds) == (3, 3)
    assert scheduler.delay_cache_until_active
    assert scheduler.profiles[0].percentage_of_nodes_to_score == 10


def test_a_single_profile_without_a_name_is_the_default_scheduler() -> None:
    assert (
        parse("profiles: [{percentageOfNodesToScore: 5}]").scheduler.profiles[0].scheduler_name == "default-scheduler"
    )


def test_a_plain_list_replaces_the_default_list_of_its_point() -> None:
    profile = parse("profiles: [{plugins: {score: [{name: A, weight: 3}, {name: B}]}}]").scheduler.profiles[0]
    assert profile.plugin_set("score") == PluginSet((PluginRef("A", 3), PluginRef("B")), (PluginRef("*"),))
    assert profile.plugin_set("filter") == PluginSet()


def test_plugins_at_the_top_are_one_profile() -> None:
    """The form of KEP-624, which has neither kind nor version."""
    scheduler = configuration_of(
        {"plugins": {"filter": [{"name": "A"}]}, "pluginConfig": [{"name": "A", "args": {"x": 1}}]}
    ).scheduler
    assert [profile.scheduler_name for profile in scheduler.profiles] == ["default-scheduler"]
    assert scheduler.profiles[0].plugin_set("filter").enabled == (PluginRef("A"),)
    args = scheduler.profiles[0].plugin_config[0].args
    assert args is not None and args.plain() == {"x": 1}


def test_plugins_at_the_top_and_profiles_do_not_go_together() -> None:
    assert problems_of(HEADER + "plugins: {}\nprofiles: []\n") == [
        "f:3: plugins: either profiles or plugins at the top (one profile), not both"
    ]


def test_names_of_plugins_know_where_they_were_written() -> None:
    profile = parse("profiles:\n- plugins:\n    score:\n      enabled:\n      - name: A\n").scheduler.profiles[0]
    place = profile.plugin_set("score").enabled[0].place
    assert (place.line, place.path) == (7, "profiles[0].plugins.score.enabled[0]")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("parallelism: 0", "parallelism: Invalid value: 0: should be an integer value greater than zero"),
        ("percentageOfNodesToScore: 101", "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"),
        ("percentageOfNodesToScore: -1", "percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]"),
        ("podInitialBackoffSeconds: 0", "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"),
        (
            "podMaxBackoffSeconds: 10\npodInitialBackoffSeconds: 11",
            "podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds",
        ),
        ("leaderElection: {retryPeriod: 0s}", 'leaderElection.retryPeriod: Invalid value: "0s": must be greater than'),
        (
            "leaderElection: {leaseDuration: 10s}",
            'leaderElection.leaseDuration: Invalid value: "10s": LeaseDuration must be greater than RenewDeadline',
        ),
        (
            "leaderElection: {resourceLock: endpoints}",
            'leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"',
        ),
        ("leaderElection: {resourceName: ''}", "leaderElection.resourceName: Required value: resourceName is required"),
        (
            "leaderElection: {resourceNamespace: ''}",
            "leaderElection.resourceNamespace: Required value: resourceNamespace is required",
        ),
        ("clientConnection: {burst: -1}", "clientConnection.burst: Invalid value: -1: must be non-negative"),
        ("profiles: [{schedulerName: a}, {schedulerName: a}]", 'profiles[1].schedulerName: Duplicate value: "a"'),
        ("profiles: [{schedulerName: a}, {}]", "profiles[1].schedulerName: Required value"),
        (
            "profiles: [{percentageOfNodesToScore: 101}]",
            "profiles[0].percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        ),
        (
            "profiles: [{plugins: {filter: {enabled: [{name: EBSLimits}]}}}]",
            'profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": was invalid in version '
            '"kubescheduler.config.k8s.io/v1" (KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")',
        ),
        (
            "profiles: [{pluginConfig: [{name: CinderLimits}]}]",
            'profiles[0].pluginConfig[0]: Invalid value: "CinderLimits": was invalid in version',
        ),
        (
            "profiles: [{pluginConfig: [{name: A}, {name: A}]}]",
            'profiles[0].pluginConfig[1]: Duplicate value: "A"',
        ),
        (
            "profiles: [{plugins: {queueSort: {enabled: [{name: A}, {name: B}]}}}]",
            "profiles[0].plugins.queueSort.enabled: only one queue sort plugin can be enabled",
        ),
        (
            "profiles: [{plugins: {score: {enabled: [{name: A, weight: -1}]}}}]",
            "profiles[0].plugins.score.enabled[0].weight: Invalid value: -1: must not be negative",
        ),
        (
            "profiles: [{plugins: {score: {enabled: [{name: '*'}]}}}]",
            'profiles[0].plugins.score.enabled[0]: "*" can only be disabled, not enabled',
        ),
        ("plugins: {score: [{name: A, weight: -1}]}", "plugins.score[0].weight: Invalid value: -1"),
        ("extenders: [{filterVerb: f}]", "extenders[0].urlPrefix: Required value"),
        ("extenders: [{urlPrefix: ''}]", 'extenders[0].urlPrefix: Invalid value: "": must be a URL such as http://'),
        (
            "extenders: [{urlPrefix: 'http://x', prioritizeVerb: p}]",
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
        ),
        (
            "extenders: [{urlPrefix: 'http://x', bindVerb: b}, {urlPrefix: 'http://y', bindVerb: b}]",
            'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind',
        ),
        (
            "extenders: [{urlPrefix: 'http://x', managedResources: [{name: cpu}]}]",
            'extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name',
        ),
        (
            "extenders: [{urlPrefix: 'http://x', managedResources: [{name: a.io/b}, {name: a.io/b}]}]",
            'extenders[0].managedResources[1].name: Invalid value: "a.io/b": duplicate extender managed resource name',
        ),
        (
            "extenders: [{urlPrefix: 'http://x', httpTimeout: -1s}]",
            'extenders[0].httpTimeout: Invalid value: "-1s": must not be negative',
        ),
        (
            "extenders: [{urlPrefix: 'https://x', tlsConfig: {insecure: true, caFile: ca.pem}}]",
            "extenders[0].tlsConfig.insecure: Invalid value: true: "
            "specifying a root certificates file with the insecure flag is not allowed",
        ),
        (
            "extenders: [{urlPrefix: 'https://x', tlsConfig: {certFile: c.pem}}]",
            "extenders[0].tlsConfig.keyFile: Required value: a client certificate and its key come together",
        ),
        (
            "extenders: [{urlPrefix: 'https://x', tlsConfig: {caData: '?'}}]",
            "extenders[0].tlsConfig.caData: Invalid value: is not base64",
        ),
        (
            "extenders: [{urlPrefix: 'https://x', enableHttps: true}]",
            'extenders[0].enableHttps: unknown field (did you mean "enableHTTPS"?)',
        ),
        ("profiles: [{plugin: {}}]", 'profiles[0].plugin: unknown field (did you mean "plugins"?)'),
        ("profiles: [{plugins: {scoer: {}}}]", 'profiles[0].plugins.scoer: unknown field (did you mean "score"?)'),
        (
            "profiles: [{plugins: {score: {enable: []}}}]",
            'profiles[0].plugins.score.enable: unknown field (did you mean "enabled"?)',
        ),
        ("healthzBindAddress: ''", "healthzBindAddress: removed in v1; remove it"),
        ("leaderElection: {lockObjectName: x}", "leaderElection.lockObjectName: renamed in v1: write resourceName"),
    ],
)
def test_a_value_that_is_not_allowed_is_rejected_in_the_words_of_kube_scheduler(body: str, problem: str) -> None:
    found = problems_of(HEADER + body)
    assert len(found) == 1
    assert found[0].startswith(f"f:3: {problem}")


def test_leader_election_is_only_checked_if_it_is_wanted() -> None:
    body = "leaderElection: {leaderElect: false, leaseDuration: 0s, resourceLock: x, resourceName: ''}"
    assert parse(body).scheduler.leader_election.leader_elect is False


def test_removed_plugins_are_not_looked_for_in_multi_point() -> None:
    assert parse("profiles: [{plugins: {multiPoint: {enabled: [{name: EBSLimits}]}}}]")
    assert parse("profiles: [{plugins: {filter: {disabled: [{name: EBSLimits}]}}}]")


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v1beta3"])
def test_an_older_version_is_rejected_with_what_to_change(version: str) -> None:
    text = (
        f"apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\n"
        "algorithmSource: {provider: x}\nbindTimeoutSeconds: 3\n"
    )
    first, second, third = problems_of(text)
    assert first.startswith(f'f:1: apiVersion: Unsupported value: "kubescheduler.config.k8s.io/{version}"')
    assert 'write "kubescheduler.config.k8s.io/v1"' in first
    assert second.startswith("f:3: algorithmSource: removed in v1: ")
    assert "bindTimeoutSeconds of VolumeBinding" in third


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "f: is empty; it should hold a KubeSchedulerConfiguration"),
        ("# nothing\n", "f: is empty; it should hold a KubeSchedulerConfiguration"),
        ("- 1", "f:1: expected an object of kind KubeSchedulerConfiguration, got a list"),
        ("parallelism: 1", 'f:1: kind: Required value: write "kind: KubeSchedulerConfiguration" and'),
        (
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfig",
            'f:2: kind: Unsupported value: "KubeSchedulerConfig" (did you mean "KubeSchedulerConfiguration"?)',
        ),
        ("kind: KubeSchedulerConfiguration", "f:1: apiVersion: Required value"),
        (
            "apiVersion: v1\nkind: KubeSchedulerConfiguration",
            'f:1: apiVersion: Unsupported value: "v1": supported values: "kubescheduler.config.k8s.io/v1"',
        ),
        (
            "apiVersion: config.pilotage.dev/v1\nkind: PilotageConfiguration",
            'f:1: apiVersion: Unsupported value: "config.pilotage.dev/v1": supported values: '
            '"config.pilotage.dev/v1alpha1"',
        ),
        (
            "apiVersion: config.pilotage.dev/v1alpha1\nkind: PilotageConfiguration\nplugins: [a.py]",
            "f:3: plugins: unknown field",
        ),
        (f"{HEADER}---\n{HEADER}", "f:5: kind: there is a second KubeSchedulerConfiguration in this file"),
        ("a: [", "f:2: is no valid YAML: "),
    ],
)
def test_a_file_of_another_kind_is_rejected(text: str, problem: str) -> None:
    found = problems_of(text)
    assert len(found) == 1
    assert found[0].startswith(problem)


def test_our_own_additions_are_a_document_of_their_own() -> None:
    additions = (
        "---\napiVersion: config.pilotage.dev/v1alpha1\nkind: PilotageConfiguration\n"
        "pluginFiles: [a.py]\nfeatureGates: {X: true}\n"
    )
    both = parse(f"parallelism: 3\n{additions}")
    assert both.scheduler.parallelism == 3
    assert both.additions.plugin_files == ("a.py",)
    assert both.additions.feature_gates == {"X": True}
    alone = parse_configuration(additions)
    assert alone.scheduler == KubeSchedulerConfiguration()
    assert alone.additions == both.additions


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read: no such file or directory"):
        load_configuration(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="cannot be read: is a directory"):
        load_configuration(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff\xfe")
    with pytest.raises(ConfigError, match=r"latin\.yaml: cannot be read: is not UTF-8 text"):
        load_configuration(tmp_path / "latin.yaml")
