"""Tokens and passwords: never over plain HTTP, never in a message, never in a repr."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from typing import Any

import pytest

from pilotage.cli.main import call
from pilotage.kube.connection import Connection, is_loopback
from pilotage.kube.credentials import StaticCredentials
from pilotage.kube.errors import CredentialsError, KubeconfigError
from pilotage.kube.exec_credentials import ExecCredentials, ExecPlugin
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.kubeconfig_file import read_kubeconfigs
from pilotage.kube.secrets import redacted, without_user_part
from pilotage.kube.tls import TlsSettings
from pilotage.kube.transport import TransportError
from pilotage.sandbox.embedded import EmbeddedOptions
from pilotage.sandbox.http.exchange import Request
from pilotage.serve.component_pages import flagz
from pilotage.serve.page import PageRequest

from .manual_clock import ManualClock
from .test_exec_credentials import V1, script
from .test_kubeconfig import EXEC, config, write

SECRET = "correct-horse-battery"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"


def load(path: str) -> Connection:
    return load_connection(path, clock=ManualClock(), environ={})


# --- plain HTTP -------------------------------------------------------------------------------------------------------

USERS = [
    pytest.param({"token": SECRET}, id="token"),
    pytest.param({"username": "u", "password": SECRET}, id="password"),
    pytest.param({"exec": EXEC}, id="exec"),
]


@pytest.mark.parametrize("user", USERS)
def test_credentials_are_not_sent_over_plain_http(tmp_path: Path, user: dict[str, Any]) -> None:
    path = write(tmp_path / "config", config(cluster_fields={"server": "http://10.0.0.1:8080"}, user_fields=user))
    with pytest.raises(KubeconfigError, match=r"10\.0\.0\.1:8080 is plain HTTP.*as https://") as caught:
        load(path)
    assert SECRET not in str(caught.value)


def test_a_password_in_the_address_counts_as_one() -> None:
    with pytest.raises(KubeconfigError, match="plain HTTP") as caught:
        Connection(f"http://u:{SECRET}@example.com", TlsSettings(), StaticCredentials(), "--master")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "[::1]", "localhost", "LOCALHOST"])
async def test_a_server_on_this_machine_gets_them(tmp_path: Path, host: str) -> None:
    document = config(cluster_fields={"server": f"http://{host}:8080"}, user_fields={"token": SECRET})
    connection = load(write(tmp_path / "config", document))
    assert (await connection.credentials.identity()).authorization == f"Bearer {SECRET}"


@pytest.mark.parametrize(
    "host", ["localhost.example.com", "128.0.0.1", "0.0.0.0", "10.127.0.1", "::2", "", "localhost."]
)
def test_other_hosts_are_not_this_machine(host: str) -> None:
    assert not is_loopback(host)


def test_plain_http_without_credentials_is_allowed(tmp_path: Path) -> None:
    document = config(cluster_fields={"server": "http://10.0.0.1:8080"}, user_fields={})
    assert load(write(tmp_path / "config", document)).server == "http://10.0.0.1:8080"


@pytest.mark.parametrize("master", ["http://10.0.0.1:8080", "10.0.0.1:8080"])
def test_master_does_not_lead_the_token_of_the_kubeconfig_onto_plain_http(
    tmp_path: Path, master: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "config", config(user_fields={"token": SECRET}))
    assert call(["run", "--kubeconfig", path, "--master", master]) == 2
    told = capsys.readouterr().err
    assert "--master" in told and "plain HTTP" in told and SECRET not in told


def test_a_master_that_is_no_address_is_reported_without_its_password(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["run", "--master", f"ftp://u:{SECRET}@h"]) == 2
    told = capsys.readouterr().err
    assert "--master ftp://***@h: write it as https://HOST:PORT" in told and SECRET not in told


# --- warnings ---------------------------------------------------------------------------------------------------------


def test_a_server_that_is_not_checked_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "config", config(cluster_fields={"insecure-skip-tls-verify": True}))
    Path(path).chmod(0o600)
    load(path)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "insecure-skip-tls-verify: whoever answers at https://10.0.0.1:6443 is believed" in record.getMessage()


@pytest.mark.parametrize(
    ("user", "mode", "is_warned"),
    [
        ({"token": SECRET}, 0o644, True),
        ({"username": "u", "password": SECRET}, 0o604, True),
        ({"token": SECRET}, 0o640, False),
        ({"token": SECRET}, 0o600, False),
        ({"exec": EXEC}, 0o644, False),
    ],
)
def test_a_kubeconfig_that_everyone_can_read_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, user: dict[str, Any], mode: int, is_warned: bool
) -> None:
    path = write(tmp_path / "config", config(user_fields=user))
    Path(path).chmod(mode)
    load(path)
    assert ["chmod 600" in record.getMessage() for record in caplog.records] == [True] * is_warned


# --- messages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f"login failed for https://joe:{SECRET}@idp.example.com/x", "login failed for https://***@idp.example.com/x"),
        (f"401 for Authorization: Bearer {SECRET}", "401 for Authorization: Bearer ***"),
        (f"refused header basic {SECRET}=", "refused header basic ***"),
        (f'bad answer {{"access_token": "{SECRET}", "x": 1}}', 'bad answer {"access_token": "***", "x": 1}'),
        (f"client_secret={SECRET}&scope=a", "client_secret=***"),
        (f"AWS_SESSION_TOKEN='{SECRET}' is expired", "AWS_SESSION_TOKEN='***' is expired"),
        (f"cannot parse {JWT}!", "cannot parse ***!"),
        ("the token is expired; sign in again", "the token is expired; sign in again"),
        ("ended: no such profile", "ended: no such profile"),
    ],
)
def test_what_looks_like_a_secret_is_not_repeated(said: str, shown: str) -> None:
    assert redacted(said) == shown


async def test_an_exec_plugin_that_fails_does_not_bring_secrets_into_messages(tmp_path: Path) -> None:
    command = script(tmp_path / "plugin", f"sys.exit('no ' + os.environ['KEY'] + ' ' + sys.argv[1] + ' {JWT}')")
    plugin = ExecPlugin(str(command), V1, "user 'u': exec", args=("argument-secret",), env={"KEY": SECRET})
    with pytest.raises(CredentialsError, match=r"ended with code 1: no \*\*\* \*\*\* \*\*\*$"):
        await ExecCredentials(plugin, StaticCredentials(), ManualClock()).identity()


async def test_no_traceback_of_a_failed_request_has_the_password() -> None:
    server = f"https://joe:{SECRET}@127.0.0.1:1"
    transport = HttpTransport(Connection(server, TlsSettings(), StaticCredentials(token=JWT), "here"))
    try:
        with pytest.raises(TransportError) as caught:
            await transport.request("GET", "/api")
    finally:
        await transport.close()
    told = "".join(traceback.format_exception(caught.value))
    assert "https://127.0.0.1:1" in told and SECRET not in told and JWT not in told


def test_nothing_that_holds_credentials_shows_them_in_its_repr(tmp_path: Path) -> None:
    user = {"token": SECRET, "password": SECRET, "client-key-data": SECRET}
    user["exec"] = EXEC | {"args": [SECRET], "env": [{"name": "A", "value": SECRET}]}  # type: ignore[assignment]
    document = config(cluster_fields={"server": f"https://u:{SECRET}@h"}, user_fields=user)
    path = Path(write(tmp_path / "config", document))
    connection = Connection(f"https://u:{SECRET}@h", TlsSettings(), StaticCredentials(SECRET, None, "u", SECRET), "x")
    holders = [
        read_kubeconfigs([path]),
        connection,
        ExecPlugin("c", V1, "f", (SECRET,), {"A": SECRET}),
        PageRequest("/x", headers={"authorization": SECRET}, lines=[("authorization", SECRET)]),
        Request("GET", "/api", {}, {"authorization": SECRET}),
        EmbeddedOptions(token=SECRET),
    ]
    assert [repr(one) for one in holders if SECRET in repr(one)] == []


async def test_an_identity_does_not_show_itself() -> None:
    identity = await StaticCredentials(token=SECRET).identity()
    assert SECRET in (identity.authorization or "") and SECRET not in repr(identity)


def test_the_page_of_flags_hides_the_password_of_an_address() -> None:
    page = flagz({"master": f"https://u:{SECRET}@h:1", "config": "f"})
    for accept in ("", "application/json"):
        body = page(PageRequest("/flagz", headers={"accept": accept})).body.decode()
        assert "https://***@h:1" in body and SECRET not in body


def test_user_parts_of_addresses() -> None:
    assert without_user_part("https://h/p@q") == "https://h/p@q"
    assert without_user_part("a https://u@h b http://x:y@z") == "a https://***@h b http://***@z"
