"""Exec plugins as real small programs."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pilotage.clock import rfc3339
from pilotage.kube.credentials import StaticCredentials
from pilotage.kube.errors import CredentialsError
from pilotage.kube.exec_credentials import ExecCredentials, ExecPlugin
from pilotage.kube.kubeconfig import load_connection

from .manual_clock import ManualClock
from .test_kubeconfig import config, write

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!{sys.executable}\nimport json, os, sys\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def printing(path: Path, status: dict[str, Any], *, version: str = V1) -> Path:
    """A plugin that counts its runs in a file next to it and prints `status` with the run number in the token."""
    answer = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
    return script(
        path,
        f"runs = open({str(path) + '.runs'!r}, 'a+'); runs.write('x'); runs.seek(0); count = len(runs.read())\n"
        f"print({answer!r}.replace('COUNT', str(count)))",
    )


def credentials(command: Path, clock: ManualClock, *, version: str = V1) -> ExecCredentials:
    plugin = ExecPlugin(command=str(command), api_version=version, field_name="user 'u': exec")
    return ExecCredentials(plugin, StaticCredentials(), clock)


def content_once_written(path: Path) -> str:
    while not (path.exists() and path.read_text()):
        time.sleep(0.01)
    return path.read_text()


async def test_a_token_is_kept_until_shortly_before_it_expires(tmp_path: Path) -> None:
    clock = ManualClock()
    status = {"token": "t-COUNT", "expirationTimestamp": rfc3339(clock.now + 600)}
    supply = credentials(printing(tmp_path / "plugin", status), clock)
    assert (await supply.identity()).authorization == "Bearer t-1"
    clock.now += 580
    assert (await supply.identity()).authorization == "Bearer t-1"
    clock.now += 15
    assert (await supply.identity()).authorization == "Bearer t-2"


async def test_a_token_without_expiry_is_kept_until_the_server_refuses_it(tmp_path: Path) -> None:
    clock = ManualClock()
    supply = credentials(printing(tmp_path / "plugin", {"token": "t-COUNT"}, version=V1BETA1), clock, version=V1BETA1)
    assert (await supply.identity()).authorization == "Bearer t-1"
    clock.now += 1e9
    assert (await supply.identity()).authorization == "Bearer t-1"
    supply.refused()
    assert (await supply.identity()).authorization == "Bearer t-2"


async def test_requests_that_come_together_share_one_run(tmp_path: Path) -> None:
    supply = credentials(printing(tmp_path / "plugin", {"token": "t-COUNT"}), ManualClock())
    identities = await asyncio.gather(*(supply.identity() for _ in range(10)))
    assert {identity.authorization for identity in identities} == {"Bearer t-1"}


async def test_a_token_that_is_expired_on_arrival_does_not_start_the_plugin_for_every_request(tmp_path: Path) -> None:
    clock = ManualClock()
    status = {"token": "t-COUNT", "expirationTimestamp": rfc3339(clock.now - 5)}
    supply = credentials(printing(tmp_path / "plugin", status), clock)
    for _ in range(3):
        assert (await supply.identity()).authorization == "Bearer t-1"
    clock.now += 2
    assert (await supply.identity()).authorization == "Bearer t-2"


async def test_a_cancelled_request_stops_its_plugin_and_the_next_one_starts_anew(tmp_path: Path) -> None:
    marker = tmp_path / "started"
    slow = script(
        tmp_path / "plugin", f"import time; open({str(marker)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    )
    supply = credentials(slow, ManualClock())
    waiting = asyncio.ensure_future(supply.identity())
    process = await asyncio.to_thread(content_once_written, marker)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(ProcessLookupError):
        os.kill(int(process), 0)
    printing(slow, {"token": "t"})
    assert (await supply.identity()).authorization == "Bearer t"


async def test_the_plugin_learns_cluster_and_environment_from_the_kubeconfig(tmp_path: Path) -> None:
    script(
        tmp_path / "plugin",
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "token = '|'.join([info['spec']['cluster']['server'], str(info['spec']['interactive']),\n"
        "  info['spec']['cluster']['config']['audience'], os.environ['FLAVOUR'], sys.argv[1], str(sys.stdin.read())])\n"
        "print(json.dumps({'apiVersion': info['apiVersion'], 'kind': 'ExecCredential', 'status': {'token': token}}))",
    )
    entry = {
        "apiVersion": V1,
        "command": "./plugin",
        "args": ["get-token"],
        "env": [{"name": "FLAVOUR", "value": "lemon"}],
        "interactiveMode": "IfAvailable",
        "provideClusterInfo": True,
    }
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me"}}
    document = config(user_fields={"exec": entry}, cluster_fields={"extensions": [extension]})
    connection = load_connection(write(tmp_path / "config", document), clock=ManualClock(), environ={})
    identity = await connection.credentials.identity()
    assert identity.authorization == "Bearer https://10.0.0.1:6443/|False|me|lemon|get-token|"


async def test_a_certificate_comes_with_its_key(tmp_path: Path) -> None:
    status = {"clientCertificateData": "CERT", "clientKeyData": "KEY"}
    identity = await credentials(printing(tmp_path / "plugin", status), ManualClock()).identity()
    assert (identity.authorization, identity.certificate, identity.key) == (None, b"CERT", b"KEY")


async def test_a_token_in_the_user_entry_wins_over_the_plugin(tmp_path: Path) -> None:
    plugin = ExecPlugin(command="/no/such/plugin", api_version=V1, field_name="exec")
    supply = ExecCredentials(plugin, StaticCredentials(token="own"), ManualClock())
    assert (await supply.identity()).authorization == "Bearer own"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("sys.exit('first\\nplease log in')", "ended with code 1: please log in", id="fails"),
        pytest.param("print('hello')", "printed no ExecCredential: JSON is malformed", id="no-json"),
        pytest.param("print('{}')", "printed no ExecCredential with a status", id="empty"),
        pytest.param(
            f"print(json.dumps(dict(apiVersion={V1BETA1!r}, kind='ExecCredential', status=dict(token='t'))))",
            "set exec.apiVersion to what the plugin speaks",
            id="other-version",
        ),
        pytest.param(
            f"print(json.dumps(dict(apiVersion={V1!r}, kind='ExecCredential', status=dict())))",
            "neither a token nor a certificate",
            id="nothing",
        ),
        pytest.param(
            f"print(json.dumps(dict(apiVersion={V1!r}, kind='ExecCredential', status=dict(clientKeyData='k'))))",
            "a certificate without its key or a key alone",
            id="half-a-pair",
        ),
        pytest.param(
            f"print(json.dumps(dict(apiVersion={V1!r}, kind='ExecCredential',"
            " status=dict(token='t', expirationTimestamp='tomorrow'))))",
            "'tomorrow' is no RFC 3339 time",
            id="expiry",
        ),
        pytest.param(
            f"print(json.dumps(dict(apiVersion={V1!r}, kind='ExecCredential', status=dict(token='a\\r\\nX-Evil: 1'))))",
            "characters that no token has",
            id="header-injection",
        ),
    ],
)
async def test_a_plugin_that_misbehaves_is_reported_in_one_line(tmp_path: Path, body: str, expected: str) -> None:
    with pytest.raises(CredentialsError) as caught:
        await credentials(script(tmp_path / "plugin", body), ManualClock()).identity()
    assert expected in str(caught.value)
    assert str(caught.value).startswith("user 'u': exec: ")
    assert "\n" not in str(caught.value)


async def test_a_plugin_that_is_not_installed_comes_with_the_hint() -> None:
    plugin = ExecPlugin(
        command="no-such-plugin-here", api_version=V1, field_name="exec", install_hint="get it from\n  the shop"
    )
    with pytest.raises(CredentialsError, match=r"cannot run no-such-plugin-here.*install it \(get it from the shop\)"):
        await ExecCredentials(plugin, StaticCredentials(), ManualClock()).identity()
