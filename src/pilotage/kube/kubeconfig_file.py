"""A kubeconfig as it is written: reading one file, and merging several as kubectl does.

The merge rule of kubectl: of every named cluster, user and context, and of current-context, the first file that
sets it wins as a whole. Relative paths inside an entry are relative to the file that the entry came from, so each
entry remembers its file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from pilotage.kube.errors import KubeconfigError
from pilotage.kube.secrets import Unshown
from pilotage.model.errors import explain_problem


class NamedExtension(msgspec.Struct):
    name: str = ""
    extension: Any = None


class ClusterFields(Unshown, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[NamedExtension] | None = None


class ExecEnv(Unshown):
    name: str
    value: str = ""


class ExecFields(Unshown, rename="camel"):
    command: str = ""
    api_version: str = ""
    args: list[str] | None = None
    env: list[ExecEnv] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class UserFields(Unshown, rename="kebab"):
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    username: str = ""
    password: str = ""
    exec: ExecFields | None = None
    auth_provider: Any = None
    impersonate: str = msgspec.field(default="", name="as")
    impersonate_uid: str = msgspec.field(default="", name="as-uid")
    impersonate_groups: list[str] | None = msgspec.field(default=None, name="as-groups")


class ContextFields(msgspec.Struct):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: ClusterFields | None = None


class _NamedUser(msgspec.Struct):
    name: str
    user: UserFields | None = None


class _NamedContext(msgspec.Struct):
    name: str
    context: ContextFields | None = None


class _File(msgspec.Struct, rename="kebab"):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str | None = None


class ClusterEntry(msgspec.Struct, frozen=True):
    file: Path
    fields: ClusterFields


class UserEntry(msgspec.Struct, frozen=True):
    file: Path
    fields: UserFields


class ContextEntry(msgspec.Struct, frozen=True):
    file: Path
    fields: ContextFields


class Kubeconfig(msgspec.Struct):
    """All entries of all files, by name."""

    files: tuple[Path, ...]
    clusters: dict[str, ClusterEntry] = msgspec.field(default_factory=dict)
    users: dict[str, UserEntry] = msgspec.field(default_factory=dict)
    contexts: dict[str, ContextEntry] = msgspec.field(default_factory=dict)
    current_context: str = ""


def read_kubeconfigs(paths: Sequence[Path]) -> Kubeconfig:
    """The merged content of existing files; the first one that states something wins."""
    merged = Kubeconfig(tuple(paths))
    for path in paths:
        content = _read(path)
        for cluster in _unique(content.clusters, path, "clusters"):
            merged.clusters.setdefault(cluster.name, ClusterEntry(path, cluster.cluster or ClusterFields()))
        for user in _unique(content.users, path, "users"):
            merged.users.setdefault(user.name, UserEntry(path, user.user or UserFields()))
        for context in _unique(content.contexts, path, "contexts"):
            merged.contexts.setdefault(context.name, ContextEntry(path, context.context or ContextFields()))
        merged.current_context = merged.current_context or content.current_context or ""
    return merged


def _read(path: Path) -> _File:
    # A process in a pod has no kubeconfig, and does not wait for PyYAML.
    from pilotage.kube_yaml import YamlError, documents

    try:
        found = list(documents(path.read_bytes()))
    except OSError as error:
        raise KubeconfigError(f"kubeconfig {path}: cannot be read: {error.strerror or error}") from error
    except YamlError as error:
        raise KubeconfigError(f"kubeconfig {path}: {error}") from error
    if not found:
        return _File()
    if len(found) > 1:
        raise KubeconfigError(f"kubeconfig {path}: expected one document, got {len(found)}")
    document = found[0].value
    if not isinstance(document, dict):
        raise KubeconfigError(f"kubeconfig {path}: expected a mapping with clusters, users and contexts")
    _check_kind(path, document)
    try:
        return msgspec.convert(_without_nulls(document), _File)
    except msgspec.ValidationError as error:
        raise KubeconfigError(f"kubeconfig {path}: {_field_problem(error)}") from error


def _check_kind(path: Path, document: dict[Any, Any]) -> None:
    kind, version = document.get("kind") or "Config", document.get("apiVersion") or "v1"
    if kind != "Config" or version != "v1":
        raise KubeconfigError(f"kubeconfig {path}: is a {version} {kind}, not a v1 Config; is it the right file?")


def _without_nulls(value: Any) -> Any:
    # In YAML an empty value is null; Kubernetes reads it as "not set".
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _field_problem(error: msgspec.ValidationError) -> str:
    where, problem = explain_problem(str(error))
    return f"{where}: {problem}" if where else problem


class _Named(Protocol):
    name: str


_N = TypeVar("_N", bound=_Named)


def _unique(entries: list[_N] | None, path: Path, section: str) -> list[_N]:
    seen: set[str] = set()
    for entry in entries or []:
        if entry.name in seen:
            raise KubeconfigError(f"kubeconfig {path}: {section}: the name {entry.name!r} appears twice; rename one")
        seen.add(entry.name)
    return entries or []
