"""Who we are to the API server.

A request is sent under an `Identity`: an Authorization header, a client certificate, both or neither. `Credentials`
produce it anew for every request, because tokens and certificates are rotated under a running process.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Protocol

from pilotage.kube.errors import CredentialsError
from pilotage.kube.source import Source


@dataclass(frozen=True, slots=True)
class Identity:
    """What one request carries. Certificate and key are PEM and come together."""

    authorization: str | None = field(default=None, repr=False)
    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)


class Credentials(Protocol):
    """A supply of identities."""

    @property
    def are_secret(self) -> bool:
        """Whether an identity may carry a secret that a reader could use."""

    async def identity(self) -> Identity:
        """The identity to use now; cheap unless something expired. Raises CredentialsError."""

    def refused(self) -> None:
        """The server answered 401 to the identity given last: get a fresh one if there is a way to."""


@dataclass(frozen=True, slots=True)
class StaticCredentials:
    """Token, basic authentication and client certificate as the configuration states them (files are re-read).

    A token file wins over a token, as in kubectl; the token serves while the file cannot be read.
    """

    token: str = field(default="", repr=False)
    token_file: Source | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    certificate: Source | None = None
    key: Source | None = None

    @property
    def are_secret(self) -> bool:
        return bool(self.token or self.token_file or self.username)

    async def identity(self) -> Identity:
        return Identity(
            self._authorization(),
            self.certificate.read() if self.certificate else None,
            self.key.read() if self.key else None,
        )

    def refused(self) -> None:
        for source in (self.token_file, self.certificate, self.key):
            if source is not None:
                source.look_again()

    def _authorization(self) -> str | None:
        token = self._file_token() or self.token
        if token:
            return f"Bearer {token}"
        if self.username:
            pair = f"{self.username}:{self.password}".encode()
            return f"Basic {base64.b64encode(pair).decode()}"
        return None

    def _file_token(self) -> str:
        if self.token_file is None:
            return ""
        try:
            return header_safe(self.token_file.read().decode("utf-8", "replace").strip(), self.token_file.name)
        except CredentialsError:
            if self.token:
                return ""
            raise


def header_safe(token: str, origin: str) -> str:
    """`token` if it can stand in a header; a token with line breaks or blanks is the wrong file, not a token."""
    if not token:
        raise CredentialsError(f"{origin}: the token is empty")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise CredentialsError(f"{origin}: the token has characters that no token has; is it the right file?")
    return token
