"""Kubeconfig files: precedence and merge as in kubectl, and one clear line for everything that is wrong."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.kube.kubeconfig import KubeconfigError, load_connection

from .manual_clock import ManualClock


def config(**changes: Any) -> dict[str, Any]:
    """A complete kubeconfig; `changes` replace whole sections, or fields by `cluster_x` and `user_x`."""
    cluster = {"server": "https://10.0.0.1:6443/"}
    user: dict[str, Any] = {"token": "sesame"}
    for name in list(changes):
        if name == "cluster_fields":
            cluster |= changes.pop(name)
        elif name == "user_fields":
            user = changes.pop(name)
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "prod", "cluster": cluster}],
        "users": [{"name": "admin", "user": user}],
        "contexts": [{"name": "main", "context": {"cluster": "prod", "user": "admin", "namespace": "team-a"}}],
        "current-context": "main",
    } | changes


def write(path: Path, document: dict[str, Any]) -> str:
    path.write_text(yaml.safe_dump(document))
    return str(path)


def load(path: str, context: str | None = None) -> Any:
    return load_connection(path, context, clock=ManualClock(), environ={})


async def test_a_complete_file_gives_server_token_and_namespace(tmp_path: Path) -> None:
    connection = load(write(tmp_path / "config", config()))
    assert connection.server == "https://10.0.0.1:6443"
    assert connection.namespace == "team-a"
    assert (await connection.credentials.identity()).authorization == "Bearer sesame"
    assert "main" in connection.origin and str(tmp_path) in connection.origin


async def test_a_given_context_wins_over_the_current_one(tmp_path: Path) -> None:
    document = config()
    document["clusters"].append({"name": "test", "cluster": {"server": "http://127.0.0.1:8080"}})
    document["contexts"].append({"name": "other", "context": {"cluster": "test", "user": "admin"}})
    connection = load(write(tmp_path / "config", document), "other")
    assert connection.server == "http://127.0.0.1:8080"
    assert connection.namespace == "default"


async def test_of_several_files_the_first_that_states_something_wins(tmp_path: Path) -> None:
    first = config(contexts=None, users=[{"name": "admin", "user": {"token": "from-first"}}], clusters=None)
    first["current-context"] = ""
    second = config(user_fields={"token": "from-second"}, cluster_fields={"server": "https://second:1"})
    third = config(cluster_fields={"server": "https://third:1"})
    third["current-context"] = "nowhere"
    files = [write(tmp_path / f"{i}", document) for i, document in enumerate((first, second, third))]
    listed = ":".join([files[0], str(tmp_path / "missing"), *files[1:]])
    connection = load_connection(clock=ManualClock(), environ={"KUBECONFIG": listed})
    assert connection.server == "https://second:1"
    assert (await connection.credentials.identity()).authorization == "Bearer from-first"


async def test_without_a_word_the_file_in_the_home_directory_is_used(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube" / "config", config())
    connection = load_connection(clock=ManualClock(), environ={"HOME": str(tmp_path)})
    assert connection.server == "https://10.0.0.1:6443"


async def test_relative_paths_start_at_the_file_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"authority")
    (tmp_path / "token").write_text("from-file\n")
    document = config(cluster_fields={"certificate-authority": "ca.pem"}, user_fields={"tokenFile": "token"})
    connection = load(write(tmp_path / "config", document))
    assert connection.tls.authority.read() == b"authority"
    assert (await connection.credentials.identity()).authorization == "Bearer from-file"


async def test_inline_data_wins_over_files(tmp_path: Path) -> None:
    fields = {
        "certificate-authority": "/nonexistent",
        "certificate-authority-data": base64.b64encode(b"inline").decode(),
    }
    connection = load(write(tmp_path / "config", config(cluster_fields=fields)))
    assert connection.tls.authority.read() == b"inline"


async def test_a_token_file_is_read_again_when_it_changed(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one")
    clock = ManualClock()
    path = write(tmp_path / "config", config(user_fields={"tokenFile": str(token), "token": "fallback"}))
    credentials = load_connection(path, clock=clock, environ={}).credentials
    assert (await credentials.identity()).authorization == "Bearer one"
    replacement = tmp_path / "new"
    replacement.write_text("two")
    replacement.rename(token)
    assert (await credentials.identity()).authorization == "Bearer one"
    clock.now += 2
    assert (await credentials.identity()).authorization == "Bearer two"
    token.unlink()
    clock.now += 2
    assert (await credentials.identity()).authorization == "Bearer two"


async def test_a_refused_token_file_is_read_again_at_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one")
    path = write(tmp_path / "config", config(user_fields={"tokenFile": str(token)}))
    credentials = load(path).credentials
    await credentials.identity()
    before = token.stat()
    token.write_text("two")
    os.utime(token, ns=(before.st_atime_ns, before.st_mtime_ns))
    credentials.refused()
    assert (await credentials.identity()).authorization == "Bearer two"


async def test_basic_authentication_and_a_context_without_user(tmp_path: Path) -> None:
    path = write(tmp_path / "config", config(user_fields={"username": "u", "password": "p"}))
    assert (await load(path).credentials.identity()).authorization == "Basic dTpw"
    nobody = config(contexts=[{"name": "main", "context": {"cluster": "prod"}}], users=None)
    assert (await load(write(tmp_path / "anonymous", nobody)).credentials.identity()).authorization is None


EXEC = {"command": "x", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}

BAD = [
    pytest.param(config(contexts=None), "current-context: no context named 'main', the file has none", id="no-context"),
    pytest.param(config(clusters=None), "context 'main': no cluster named 'prod'", id="no-cluster"),
    pytest.param(config(users=None), "context 'main': no user named 'admin'", id="no-user"),
    pytest.param(config() | {"current-context": ""}, "current-context is not set; pass --context", id="no-current"),
    pytest.param(config(cluster_fields={"server": ""}), "cluster 'prod': server: is not set", id="no-server"),
    pytest.param(config(cluster_fields={"server": "10.0.0.1:6443"}), "write it as https://HOST:PORT", id="no-scheme"),
    pytest.param(config(cluster_fields={"server": "https://h:99999"}), "is no URL of an API server", id="bad-port"),
    pytest.param(
        config(cluster_fields={"server": 5}), "clusters[0].cluster.server: expected string, got integer", id="type"
    ),
    pytest.param(
        config(cluster_fields={"proxy-url": "ftp://a:secret@p"}), "proxy-url: '***@p' is no usable proxy", id="proxy"
    ),
    pytest.param(
        config(cluster_fields={"proxy-url": "https://a:secret@p:8443"}),
        "proxy-url: https://p:8443: proxies that are spoken to in TLS are not supported",
        id="tls-proxy",
    ),
    pytest.param(
        config(cluster_fields={"certificate-authority-data": "%%%"}),
        "certificate-authority-data: is not base64",
        id="base64",
    ),
    pytest.param(
        config(cluster_fields={"certificate-authority": "/no/such/ca"}),
        "certificate-authority: cannot read /no/such/ca: No such file or directory",
        id="missing-ca",
    ),
    pytest.param(
        config(cluster_fields={"insecure-skip-tls-verify": True, "certificate-authority-data": "YQ=="}),
        "insecure-skip-tls-verify: contradicts certificate-authority",
        id="insecure-with-ca",
    ),
    pytest.param(config(user_fields={"tokenFile": "/no/such"}), "tokenFile: cannot read /no/such", id="missing-token"),
    pytest.param(config(user_fields={"token": "a\nb"}), "token: has line breaks", id="token-with-line-break"),
    pytest.param(
        config(user_fields={"client-certificate-data": "YQ=="}),
        "client-certificate and client-key must be given together",
        id="half-a-pair",
    ),
    pytest.param(config(user_fields={"as": "root"}), "as: impersonation is not supported", id="impersonation"),
    pytest.param(config(user_fields={"auth-provider": {"name": "gcp"}}), "use an exec plugin", id="auth-provider"),
    pytest.param(config(user_fields={"exec": EXEC | {"command": ""}}), "exec.command: is not set", id="exec-command"),
    pytest.param(
        config(user_fields={"exec": EXEC | {"apiVersion": "client.authentication.k8s.io/v1alpha1"}}),
        "is not supported; use client.authentication.k8s.io/v1 or",
        id="exec-version",
    ),
    pytest.param(
        config(user_fields={"exec": EXEC | {"interactiveMode": "Always"}}),
        "exec.interactiveMode: Always: a scheduler has no terminal to ask at; set it to Never or",
        id="exec-always-interactive",
    ),
    pytest.param(
        config(user_fields={"exec": EXEC | {"interactiveMode": ""}}),
        "exec.interactiveMode: not set: a scheduler",
        id="exec-mode-missing",
    ),
    pytest.param(config(clusters=[{"name": "a"}, {"name": "a"}]), "the name 'a' appears twice", id="twice"),
    pytest.param(config(kind="Pod"), "is a v1 Pod, not a v1 Config", id="wrong-kind"),
]


@pytest.mark.parametrize(("document", "expected"), BAD)
def test_what_is_wrong_is_said_in_one_line_with_file_and_field(
    tmp_path: Path, document: dict[str, Any], expected: str
) -> None:
    path = write(tmp_path / "config", document)
    with pytest.raises(KubeconfigError) as caught:
        load(path)
    assert expected in str(caught.value)
    assert path in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(b"clusters: [", "line 2, column 1: is no valid YAML", id="malformed"),
        pytest.param(b"a: b: c", "line 1, column 5: is no valid YAML", id="nested-colon"),
        pytest.param(b"\x00\x01\xff", "is no valid YAML", id="binary"),
        pytest.param(b"[" * 10_000 + b"]" * 10_000, "is nested too deeply", id="deep"),
        pytest.param(b"- 1\n- 2", "expected a mapping", id="list"),
        pytest.param(b"", "current-context is not set", id="empty"),
        pytest.param(b"clusters: {a: b}", "clusters: expected array, got object", id="old-shape"),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_refused(tmp_path: Path, text: bytes, expected: str) -> None:
    path = tmp_path / "config"
    path.write_bytes(text)
    with pytest.raises(KubeconfigError) as caught:
        load(str(path))
    assert expected in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match=r"kubeconfig /no/where: no such file; check --kubeconfig"):
        load("/no/where")
    with pytest.raises(KubeconfigError, match="cannot be read: Is a directory"):
        load(str(tmp_path))
    with pytest.raises(KubeconfigError, match=r"no kubeconfig found: .*\.kube/config does not exist; pass"):
        load_connection(clock=ManualClock(), environ={"HOME": str(tmp_path)})
    with pytest.raises(KubeconfigError, match=r"\$KUBECONFIG \(/a:/b\) does not exist"):
        load_connection(clock=ManualClock(), environ={"KUBECONFIG": "/a:/b"})
    with pytest.raises(KubeconfigError, match="--context: no context named 'x', there is main"):
        load(write(tmp_path / "config", config()), "x")
