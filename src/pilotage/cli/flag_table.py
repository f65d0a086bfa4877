"""The flags of kube-scheduler, one row each: what they mean here, or why they mean nothing.

Values are texts as they were written; `FlagValues` reads them. A flag that has no meaning here is accepted with a
warning if leaving it out is harmless, so that the manifest of a kube-scheduler can be taken over as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from pilotage.cli.errors import CommandError, bad_input
from pilotage.model.durations import parse_duration

_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})


class Flag(Struct, frozen=True):
    """`is_bool` flags may stand without a value. `ignored` says why a flag has no effect."""

    name: str
    default: str = ""
    help: str = ""
    is_bool: bool = False
    ignored: str = ""
    refused: str = ""

    @property
    def parameter(self) -> str:
        return self.name.replace("-", "_")


def _ignored(name: str, why: str, default: str = "", *, is_bool: bool = False) -> Flag:
    return Flag(name, default, ignored=why, is_bool=is_bool)


_JSON_ONLY: Final = "the API server is spoken to in JSON"
_NO_HTTP2: Final = "HTTP/1.1 is served"
_ONE_VERSION: Final = "one version of Kubernetes is followed"
_OWN_LOGS: Final = "logs are lines of text on stderr"

_LEADER_ELECTION: Final = (
    Flag("leader-elect", "true", "Schedule only while holding the lease.", is_bool=True),
    Flag("leader-elect-lease-duration", "15s", "After this time without renewal others may take the lease."),
    Flag("leader-elect-renew-deadline", "10s", "After this time without renewal the leader stops."),
    Flag("leader-elect-retry-period", "2s", "Pause between attempts to get or renew the lease."),
    Flag("leader-elect-resource-lock", "leases", "Only leases."),
    Flag("leader-elect-resource-name", "kube-scheduler", "Name of the lease."),
    Flag("leader-elect-resource-namespace", "kube-system", "Namespace of the lease."),
)
_SUPERVISION: Final = (
    Flag(
        "max-silence",
        "30s",
        "Kill and replace a scheduler that has been stuck for so long; 0 never. (Ours.)",
    ),
)
_SERVING: Final = (
    Flag("bind-address", "0.0.0.0", "Address to serve HTTPS on."),
    Flag("secure-port", "10259", "Port for HTTPS; 0 for none."),
    Flag("insecure-port", "0", "Port for plain HTTP without authentication, on 127.0.0.1 only; 0 for none. (Ours.)"),
    Flag("console", "false", "Serve the console at /console/ on the secure port. (Ours.)", is_bool=True),
    Flag("cert-dir", "", "Keep a certificate of our own here.  [default: a new one for every run]"),
    Flag("tls-cert-file", "", "Certificate to serve with, intermediates after it."),
    Flag("tls-private-key-file", "", "Its key."),
    Flag("tls-cipher-suites", "", "Suites for TLS 1.2, comma-separated, by their Go names."),
    Flag("tls-min-version", "", "VersionTLS12 (default), VersionTLS13, ..."),
    Flag("tls-sni-cert-key", "", refused="one certificate is served; give it with --tls-cert-file"),
    _ignored("tls-curve-preferences", "OpenSSL chooses the curve"),
    _ignored("http2-max-streams-per-connection", _NO_HTTP2),
    _ignored("disable-http2-serving", _NO_HTTP2, "false", is_bool=True),
    _ignored("permit-port-sharing", "the port is not shared", "false", is_bool=True),
    _ignored("permit-address-sharing", "the address is not shared", "false", is_bool=True),
)
_ACCESS: Final = (
    Flag("authentication-kubeconfig", "", "Ask this API server whose a token is.  [default: that of --kubeconfig]"),
    Flag("authentication-skip-lookup", "false", "Do not look up the cluster's client CA.", is_bool=True),
    Flag("authentication-tolerate-lookup-failure", "true", "Go on without that CA if it cannot be read.", is_bool=True),
    Flag("authentication-token-webhook-cache-ttl", "10s", "How long to remember whose a token is."),
    Flag("client-ca-file", "", "Accept client certificates that one of these authorities signed."),
    Flag("authorization-kubeconfig", "", "Ask this API server who may see what.  [default: that of --kubeconfig]"),
    Flag("authorization-always-allow-paths", "/healthz,/readyz,/livez", "Paths that are open to everyone."),
    Flag("authorization-webhook-cache-authorized-ttl", "10s", "How long to remember a yes."),
    Flag("authorization-webhook-cache-unauthorized-ttl", "10s", "How long to remember a no."),
    Flag(
        "requestheader-client-ca-file",
        "",
        "Let proxies with certificates of this CA say who asks.  [default: that of the cluster]",
    ),
    Flag("requestheader-allowed-names", "", "Common names of their certificates.  [default: any]"),
    Flag("requestheader-username-headers", "x-remote-user", "Headers with the name of the user."),
    Flag("requestheader-uid-headers", "", "Headers with the UID."),
    Flag("requestheader-group-headers", "x-remote-group", "Headers with the groups."),
    Flag("requestheader-extra-headers-prefix", "x-remote-extra-", "What headers with more about the user begin with."),
)
_DEPRECATED: Final = (
    Flag("profiling", "true", "Serve /debug/flags/v. Not with --config: enableProfiling says it there.", is_bool=True),
    Flag("kube-api-qps", "50", "Requests per second to the API server; no limit unless given. Not with --config."),
    Flag("kube-api-burst", "100", "Requests at once beyond that. Not with --config."),
    _ignored("kube-api-content-type", _JSON_ONLY, "application/vnd.kubernetes.protobuf"),
    _ignored("contention-profiling", "there are no locks to contend for", "true", is_bool=True),
)
_OTHERS: Final = (
    Flag("master", "", "Address of the API server, instead of the one in the kubeconfig."),
    Flag("write-config-to", "", "Write the complete configuration to this file and exit."),
    _ignored("emulated-version", _ONE_VERSION),
    _ignored("min-compatibility-version", _ONE_VERSION),
    _ignored("emulation-forward-compatible", _ONE_VERSION, "false", is_bool=True),
    _ignored("runtime-config-emulation-forward-compatible", _ONE_VERSION, "false", is_bool=True),
    _ignored("show-hidden-metrics-for-version", "no metric is hidden"),
    _ignored("disabled-metrics", "every metric is shown; drop it where it is scraped"),
    _ignored("allow-metric-labels", "labels have closed sets of values already"),
    _ignored("allow-metric-labels-manifest", "labels have closed sets of values already"),
    Flag("logging-format", "text", "text, or json: an object per line, with the keys of Kubernetes components."),
    _ignored("log-flush-frequency", _OWN_LOGS, "5s"),
    _ignored("log-text-split-stream", _OWN_LOGS, "false", is_bool=True),
    _ignored("log-text-info-buffer-size", _OWN_LOGS),
    _ignored("log-json-split-stream", _OWN_LOGS, "false", is_bool=True),
    _ignored("log-json-info-buffer-size", _OWN_LOGS),
    _ignored("vmodule", "there is one verbosity for all modules"),
)
FLAGS: Final = (*_LEADER_ELECTION, *_SUPERVISION, *_SERVING, *_ACCESS, *_DEPRECATED, *_OTHERS)
NOT_WITH_CONFIG: Final = tuple(flag.name for flag in _DEPRECATED)
"""Deprecated in kube-scheduler, and without effect if there is a configuration file that says the same."""
_BY_NAME: Final = {flag.name: flag for flag in FLAGS}


class FlagValues:
    """What was written, or the defaults; every reader rejects what makes no sense with the flag's name."""

    def __init__(self, given: Mapping[str, str]) -> None:
        """`given` has only the flags that were written on the command line."""
        self._given = dict(given)
        for name in given:
            if _BY_NAME[name].refused:
                raise bad_input(f"--{name}: not supported: {_BY_NAME[name].refused}")

    def is_given(self, name: str) -> bool:
        return name in self._given

    def text(self, name: str) -> str:
        return self._given.get(name, _BY_NAME[name].default)

    def all(self) -> dict[str, str]:
        return {flag.name: self.text(flag.name) for flag in FLAGS}

    def words(self, name: str) -> list[str]:
        return [word.strip() for word in self.text(name).split(",") if word.strip()]

    def boolean(self, name: str) -> bool:
        text = self.text(name)
        if text not in _TRUE | _FALSE:
            raise self._wrong(name, "is neither true nor false")
        return text in _TRUE

    def seconds(self, name: str) -> float:
        try:
            return parse_duration(self.text(name))
        except ValueError as error:
            raise bad_input(f"--{name}: {error}") from error

    def number(self, name: str) -> float:
        try:
            return float(self.text(name))
        except ValueError as error:
            raise self._wrong(name, "is no number") from error

    def port(self, name: str) -> int:
        text = self.text(name)
        if not text.isdigit() or int(text) > 65535:
            raise self._wrong(name, "is no port; write a number from 0 (none) to 65535")
        return int(text)

    def warnings(self, *, with_config: bool) -> list[str]:
        """What of the command line has no effect, and why."""
        found = []
        for name in self._given:
            if _BY_NAME[name].ignored:
                found.append(f"--{name} has no effect: {_BY_NAME[name].ignored}")
            elif with_config and name in NOT_WITH_CONFIG:
                found.append(f"--{name} has no effect: the file of --config decides")
        return found

    def _wrong(self, name: str, problem: str) -> CommandError:
        return bad_input(f'--{name}: "{self.text(name)}" {problem}')
