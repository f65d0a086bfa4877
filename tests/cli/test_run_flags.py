from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pilotage.cli.errors import CommandError
from pilotage.cli.flag_table import FLAGS, FlagValues
from pilotage.cli.main import call
from pilotage.cli.run_flags import settings_of
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.config.load import parse_configuration

FILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaseDuration: 60s, renewDeadline: 40s, resourceName: mine}
clientConnection: {qps: 7, burst: 8}
"""


def settings(given: dict[str, str], file: str = "") -> SchedulerConfiguration:
    configuration = parse_configuration(file) if file else SchedulerConfiguration()
    return settings_of(configuration, FlagValues(given), has_file=bool(file)).configuration


def test_flags_of_leader_election_override_the_file_one_by_one() -> None:
    election = settings({"leader-elect-lease-duration": "50s"}, FILE).scheduler.leader_election
    assert (election.lease_duration, election.renew_deadline, election.resource_name) == (50.0, 40.0, "mine")


def test_without_flags_the_file_holds() -> None:
    election = settings({}, FILE).scheduler.leader_election
    assert (election.lease_duration, election.leader_elect, election.retry_period) == (60.0, True, 2.0)


def test_deprecated_flags_count_only_without_a_file() -> None:
    given = {"kube-api-qps": "5", "kube-api-burst": "6", "profiling": "false"}
    with_file = settings(given, FILE).scheduler
    assert (with_file.client_connection.qps, with_file.client_connection.burst, with_file.enable_profiling) == (
        7,
        8,
        True,
    )
    without = settings(given).scheduler
    assert (without.client_connection.qps, without.client_connection.burst, without.enable_profiling) == (5, 6, False)


def test_a_limit_is_set_by_the_flag_that_is_given_and_by_no_other() -> None:
    assert settings({"profiling": "false"}).scheduler.client_connection.calls_per_second == 0
    assert settings({"kube-api-qps": "50"}).scheduler.client_connection.calls_per_second == 50


def test_flags_without_effect_are_named_with_the_reason() -> None:
    values = FlagValues({"kube-api-qps": "5", "vmodule": "a=1", "leader-elect": "false"})
    assert values.warnings(with_config=True) == [
        "--kube-api-qps has no effect: the file of --config decides",
        "--vmodule has no effect: there is one verbosity for all modules",
    ]
    assert values.warnings(with_config=False) == ["--vmodule has no effect: there is one verbosity for all modules"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"leader-elect": "perhaps"}, '--leader-elect: "perhaps" is neither true nor false'),
        ({"leader-elect-lease-duration": "soon"}, '--leader-elect-lease-duration: "soon" is not a duration'),
        ({"leader-elect-renew-deadline": "15s"}, "LeaseDuration must be greater than RenewDeadline"),
        ({"leader-elect-resource-lock": "endpoints"}, 'resourceLock value must be "leases"'),
        ({"kube-api-burst": "-1"}, "--kube-api-burst: Invalid value: -1: must be non-negative"),
        ({"tls-sni-cert-key": "a,b"}, "--tls-sni-cert-key: not supported: one certificate is served"),
    ],
)
def test_what_makes_no_sense_is_rejected_with_the_name_of_the_flag(given: dict[str, str], problem: str) -> None:
    with pytest.raises(CommandError) as refused:
        settings(given)
    assert problem in str(refused.value)


def test_port_is_a_number_of_a_port() -> None:
    assert FlagValues({}).port("secure-port") == 10259
    with pytest.raises(CommandError, match="is no port"):
        FlagValues({"secure-port": "99999"}).port("secure-port")


def test_every_flag_has_help_or_a_reason_why_it_has_no_effect() -> None:
    assert [flag.name for flag in FLAGS if not (flag.help or flag.ignored or flag.refused)] == []
    assert len({flag.name for flag in FLAGS}) == len(FLAGS)


@pytest.mark.parametrize("form", ["--leader-elect=false", "--leader-elect false"])
def test_configuration_is_written_as_it_would_be_used(tmp_path: Path, form: str) -> None:
    written = tmp_path / "out.yaml"
    assert call(["run", *form.split(), "--profiling", "-v=2", f"--write-config-to={written}"]) == 0
    content, _ = yaml.safe_load_all(written.read_text())
    assert content["leaderElection"]["leaderElect"] is False and content["enableProfiling"] is True


def test_flag_that_may_stand_alone_is_true(tmp_path: Path) -> None:
    written = tmp_path / "out.yaml"
    assert call(["run", "--leader-elect", f"--write-config-to={written}"]) == 0
    content, _ = yaml.safe_load_all(written.read_text())
    assert content["leaderElection"]["leaderElect"] is True
