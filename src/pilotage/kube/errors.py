"""What can go wrong between us and an API server, sorted by who can fix it.

    KubeconfigError     the configuration is wrong: a person must edit a file; never worth a retry
    CredentialsError    no credentials just now (token file gone, plugin failed): may work later
    ApiStatusError      the server answered and said no
    TransportError      there was no answer (see transport.py)

Every message is one line that names the thing, the fact and the way out.
"""

from __future__ import annotations

from pilotage.kube.permissions import rule_for_refusal


class KubeconfigError(Exception):
    """The configuration cannot be used as it is written."""


class CredentialsError(Exception):
    """Credentials could not be obtained at this moment."""


class ApiStatusError(Exception):
    """The server answered with an error status.

    `reason` is the machine-readable word of Kubernetes ("NotFound", "Conflict", ...), "" if the answer carried none.
    `retry_after` is the number of seconds that the server asked us to wait, None if it did not say.
    """

    def __init__(self, code: int, reason: str, message: str, retry_after: float | None = None) -> None:
        rule = rule_for_refusal(message) if code == 403 else ""
        way_out = f"; add to the role: {rule}" if rule else ""
        super().__init__(f"{message} (HTTP {code}{' ' + reason if reason else ''}){way_out}")
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after

    @property
    def is_gone(self) -> bool:
        """The resourceVersion or continue token is too old: only a fresh list helps."""
        return self.code == 410
