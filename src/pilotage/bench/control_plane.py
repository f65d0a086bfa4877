"""A real control plane on loopback: etcd and kube-apiserver as processes, with TLS, certificates, tokens and RBAC.

There are no kubelets and no controllers: nodes are objects that the caller creates, and nothing happens to a pod after
it was bound. For the same reason two admission plugins are off: one waits for service accounts that a controller would
make, the other taints every new node until a controller finds it ready.

    plane = ControlPlane(assets, folder)
    plane.start()
    while not plane.is_ready(): ...wait...
    KubeClient(HttpTransport(load_connection(str(plane.admin))))
    plane.stop()

`folder` holds everything: data, keys, logs, kubeconfigs. etcd does not wait for the disk, because nothing here has to
outlive the machine.
"""

from __future__ import annotations

import json
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from pilotage.bench.cluster_assets import ClusterAssets
from pilotage.bench.program import ServerProgram
from pilotage.certificates import CertificateAuthority

HOST: Final = "127.0.0.1"
SCHEDULER_USER: Final = "system:kube-scheduler"
"""The user to which every Kubernetes API server grants the role of a scheduler by itself."""
SCHEDULER_TOKEN: Final = "token-of-the-scheduler"
_ADMINISTRATOR_TOKEN: Final = "token-of-the-administrator"
_ADMINISTRATORS: Final = "system:masters"
_FRONT_PROXY: Final = "front-proxy-client"
_PROBE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Files with a certificate and its key."""

    certificate: Path
    key: Path


class ControlPlane:
    """etcd and kube-apiserver. Constructed complete, started with `start()`."""

    def __init__(self, assets: ClusterAssets, folder: Path, api_server_flags: Sequence[str] = ()) -> None:
        self.assets = assets
        self.folder = folder
        self._authority = CertificateAuthority("Pilotage control plane")
        self.authority_file = self._written("ca.crt", self._authority.certificate)
        self._front_proxies = CertificateAuthority("Pilotage front proxy")
        self.front_proxy = self._client_pair(self._front_proxies, _FRONT_PROXY, "pilotage")
        """With which the API server speaks to aggregated APIs for its users."""
        self.etcd_url = f"http://{HOST}:{free_port()}"
        port = free_port()
        self.url = f"https://{HOST}:{port}"
        self.etcd = ServerProgram(self._etcd_command(assets), folder / "etcd.log")
        command = [*self._api_server_command(assets, port), *api_server_flags]
        self.api_server = ServerProgram(command, folder / "kube-apiserver.log")
        # By token: the API server verifies the chain of a client certificate anew for every request, which took a
        # twentieth of its time in benchmarks.
        self.admin = self.kubeconfig("admin", {"token": _ADMINISTRATOR_TOKEN})
        self.scheduler = self.kubeconfig("scheduler", {"token": SCHEDULER_TOKEN})

    def start(self) -> None:
        self.etcd.start()
        self.api_server.start()

    def stop(self) -> None:
        self.api_server.stop()
        self.etcd.stop()

    def is_ready(self) -> bool:
        """The API server serves; ProgramFailed if one of the two has ended."""
        self.etcd.check()
        self.api_server.check()
        trust = ssl.create_default_context(cafile=str(self.authority_file))
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=_PROBE_SECONDS, context=trust) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def client_certificate(self, user: str, group: str) -> KeyPair:
        """A certificate with which `user`, a member of `group`, may come."""
        return self._client_pair(self._authority, user, group)

    def _client_pair(self, authority: CertificateAuthority, user: str, group: str) -> KeyPair:
        issued = authority.issue(user, group)
        return KeyPair(
            self._written(f"{_file_name(user)}.crt", issued.certificate),
            self._written(f"{_file_name(user)}.key", issued.key),
        )

    def kubeconfig(self, name: str, user: dict[str, Any]) -> Path:
        """A kubeconfig that leads here as the `user` entry says."""
        cluster = {"server": self.url, "certificate-authority": str(self.authority_file)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": "real", "user": name, "namespace": "default"}}],
            "current-context": name,
        }
        return self._written(f"{_file_name(name)}.kubeconfig", yaml.safe_dump(content).encode())

    def forget_history(self) -> None:
        """Make etcd forget all versions but the current one, as the API server asks it to every five minutes."""
        revision = self._ask_etcd("maintenance/status", {})["header"]["revision"]
        self._ask_etcd("kv/compaction", {"revision": revision, "physical": True})

    def _ask_etcd(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(f"{self.etcd_url}/v3/{what}", data=json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=_PROBE_SECONDS) as answer:
            answered: dict[str, Any] = json.loads(answer.read())
            return answered

    def _etcd_command(self, assets: ClusterAssets) -> list[str | Path]:
        peers = f"http://{HOST}:{free_port()}"
        return [
            assets.program("etcd"),
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={self.etcd_url}",
            f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _api_server_command(self, assets: ClusterAssets, port: int) -> list[str | Path]:
        issued = self._authority.issue(HOST, names=(HOST, "localhost"))
        certificate = self._written("server.crt", issued.certificate)
        key = self._written("server.key", issued.key)
        known = f"{SCHEDULER_TOKEN},{SCHEDULER_USER},scheduler\n{_ADMINISTRATOR_TOKEN},admin,admin,{_ADMINISTRATORS}\n"
        tokens = self._written("tokens.csv", known.encode())
        return [
            assets.program("kube-apiserver"),
            f"--etcd-servers={self.etcd_url}",
            f"--bind-address={HOST}",
            f"--advertise-address={HOST}",
            f"--secure-port={port}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={self.authority_file}",
            f"--token-auth-file={tokens}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            f"--service-account-issuer={self.url}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            "--endpoint-reconciler-type=none",
            f"--cert-dir={self.folder}",
            *self._aggregation_flags(),
        ]

    def _aggregation_flags(self) -> list[str]:
        """How the API server shows aggregated APIs (APIService) who asks."""
        authority = self._written("front-proxy-ca.crt", self._front_proxies.certificate)
        return [
            f"--requestheader-client-ca-file={authority}",
            f"--requestheader-allowed-names={_FRONT_PROXY}",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={self.front_proxy.certificate}",
            f"--proxy-client-key-file={self.front_proxy.key}",
        ]

    def _written(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        return path


def client_certificate_user(pair: KeyPair) -> dict[str, Any]:
    return {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}


def free_port() -> int:
    """Return a port that was not in use a moment ago."""
    with closing(socket.socket()) as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _file_name(name: str) -> str:
    return name.replace(":", "-")
