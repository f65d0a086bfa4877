"""Tokens of ServiceAccounts: issued by TokenRequest, known again by TokenReview and by the server's door.

A token is a JSON Web Token that names the account by name and uid, for whom it is (audiences) and when it ends. It is
signed with a key of this server (ES256), so that tokens of a sandbox are worth nothing in another one, nor after a
restart. It is good only while the account, and the pod or secret that it is bound to, exist with the same uid. Others
can verify tokens by themselves: the public key is served, and where it is found (OpenID Connect discovery).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pilotage.clock import rfc3339
from pilotage.sandbox.api import Api
from pilotage.sandbox.errors import FieldError, invalid, not_found
from pilotage.sandbox.http.exchange import Request, ServerResponse, encode_json
from pilotage.sandbox.rules.json_fields import dicts_in
from pilotage.sandbox.storage.records import Key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"

_DEFAULT_SECONDS: Final = 3600
_SHORTEST_SECONDS: Final = 600
_LONGEST_SECONDS: Final = 2**32
_BOUND_TO: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
_LONGEST_TOKEN: Final = 16_384
_CONFIGURATION: Final = "/.well-known/openid-configuration"
_KEYS: Final = "/openid/v1/jwks"
_NUMBER_BYTES: Final = 32
"""Of a coordinate of the key, and of each half of a signature."""

Object = dict[str, Any]


class AccountTokens:
    """The tokens of one server."""

    def __init__(self, api: Api) -> None:
        self._api = api

    @property
    def documents(self) -> Mapping[str, Callable[[Request], ServerResponse]]:
        """What is served for those who verify tokens, by path."""
        return {_CONFIGURATION: self._configuration, _KEYS: self._key_set}

    def issue(self, namespace: str, name: str, request: Object) -> Object:
        """The TokenRequest with its status; ApiError if it asks for what cannot be."""
        account = self._api.get("serviceaccounts", namespace, name)
        spec = request.setdefault("spec", {})
        seconds = spec.get("expirationSeconds") or _DEFAULT_SECONDS
        if not isinstance(seconds, int) or not _SHORTEST_SECONDS <= seconds <= _LONGEST_SECONDS:
            bound = (
                "less than 10 minutes" if not isinstance(seconds, int) or seconds < 600 else "larger than 2^32 seconds"
            )
            error = FieldError("spec.expirationSeconds", f"may not specify a duration {bound}", seconds)
            raise invalid("TokenRequest", "authentication.k8s.io", name, [error])
        spec["expirationSeconds"], audiences = seconds, spec.get("audiences") or [ISSUER]
        spec["audiences"] = audiences
        now = int(self._api.clock.time())
        claims: Object = {
            "aud": audiences,
            "exp": now + seconds,
            "iat": now,
            "nbf": now,
            "iss": ISSUER,
            "sub": f"system:serviceaccount:{namespace}:{name}",
            "kubernetes.io": {
                "namespace": namespace,
                "serviceaccount": {"name": name, "uid": account["metadata"]["uid"]},
                **self._binding(namespace, spec.get("boundObjectRef")),
            },
        }
        status = {"token": self._sign(claims), "expirationTimestamp": rfc3339(now + seconds)}
        metadata = {"name": name, "namespace": namespace, "creationTimestamp": rfc3339(now)}
        head = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": metadata}
        return {**head, "spec": spec, "status": status}

    def user_of(self, token: str, audiences: Sequence[str] = ()) -> Object | None:
        """The user whom this token shows, if it is good for one of the audiences (none given: for this server)."""
        claims = self._verified(token)
        if claims is None or not set(audiences or [ISSUER]) & set(claims["aud"]):
            return None
        about = claims["kubernetes.io"]
        namespace, account = about["namespace"], about["serviceaccount"]
        if not self._exists("serviceaccounts", namespace, account) or not self._is_still_bound(namespace, about):
            return None
        extra = {
            f"authentication.kubernetes.io/{kind}-{field}": [about[kind][field]]
            for kind in ("pod", "node")
            for field in ("name", "uid")
            if kind in about
        }
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
        user: Object = {"username": claims["sub"], "uid": account["uid"], "groups": groups}
        return {**user, **({"extra": extra} if extra else {})}

    def audiences_of(self, token: str) -> list[str]:
        claims = self._verified(token)
        return list(claims["aud"]) if claims is not None else []

    def _binding(self, namespace: str, reference: Mapping[str, Any] | None) -> Object:
        if not reference:
            return {}
        resource = _BOUND_TO.get(str(reference.get("kind")))
        if resource is None:
            problem = "cannot bind token to this kind, only to Pod, Node and Secret"
            error = FieldError("spec.boundObjectRef.kind", problem, reference.get("kind"))
            raise invalid("TokenRequest", "authentication.k8s.io", "", [error])
        name = str(reference.get("name"))
        found = self._api.get(resource, "" if resource == "nodes" else namespace, name)
        uid = found["metadata"]["uid"]
        if reference.get("uid") not in (None, "", uid):
            raise not_found(resource, name)
        return {str(reference["kind"]).lower(): {"name": name, "uid": uid}}

    def _is_still_bound(self, namespace: str, about: Object) -> bool:
        return all(
            self._exists(resource, "" if resource == "nodes" else namespace, about[kind.lower()])
            for kind, resource in _BOUND_TO.items()
            if kind.lower() in about
        )

    def _exists(self, resource: str, namespace: str, wanted: Mapping[str, str]) -> bool:
        record = self._api.store.get(Key(resource, namespace, wanted["name"]))
        return record is not None and record.uid == wanted["uid"]

    def _configuration(self, _: Request) -> ServerResponse:
        document = {
            "issuer": ISSUER,
            "jwks_uri": f"{self._address()}{_KEYS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }
        return ServerResponse(200, encode_json(document))

    def _address(self) -> str:
        """Where this server is, as the Service `kubernetes` says."""
        for subset in dicts_in(self._api.find("endpoints", "default", "kubernetes") or {}, "subsets"):
            for address in dicts_in(subset, "addresses"):
                for port in dicts_in(subset, "ports"):
                    return f"{port.get('name') or 'https'}://{address['ip']}:{port['port']}"
        return ISSUER

    def _key_set(self, _: Request) -> ServerResponse:
        numbers = self._key.public_key().public_numbers()
        x, y = (_encoded(number.to_bytes(_NUMBER_BYTES, "big")) for number in (numbers.x, numbers.y))
        head = {"use": "sig", "kty": "EC", "kid": self._key_id, "crv": "P-256", "alg": "ES256"}
        return ServerResponse(200, encode_json({"keys": [{**head, "x": x, "y": y}]}), "application/jwk-set+json")

    @cached_property
    def _key(self) -> EllipticCurvePrivateKey:
        # Made, and what makes it imported, when the first token is: most sandboxes never see one.
        from cryptography.hazmat.primitives.asymmetric import ec

        return ec.generate_private_key(ec.SECP256R1())

    @cached_property
    def _key_id(self) -> str:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        form = self._key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return _encoded(hashlib.sha256(form).digest())

    def _sign(self, claims: Object) -> str:
        from cryptography.hazmat.primitives.asymmetric import ec, utils
        from cryptography.hazmat.primitives.hashes import SHA256

        head = {"alg": "ES256", "kid": self._key_id}
        signed = ".".join(_encoded(msgspec.json.encode(part)) for part in (head, claims))
        halves = utils.decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(SHA256())))
        return f"{signed}.{_encoded(b''.join(half.to_bytes(_NUMBER_BYTES, 'big') for half in halves))}"

    def _verified(self, token: str) -> Object | None:
        """The claims of a token that this server has signed and that has not ended."""
        signed, dot, signature = token.rpartition(".")
        if not dot or len(token) > _LONGEST_TOKEN or not token.isascii():
            return None
        try:
            if not self._is_ours(signed, _decoded(signature)):
                return None
            claims: Object = msgspec.json.decode(_decoded(signed.partition(".")[2]))
        except (binascii.Error, msgspec.DecodeError):
            return None
        return claims if claims["exp"] > self._api.clock.time() else None

    def _is_ours(self, signed: str, signature: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec, utils
        from cryptography.hazmat.primitives.hashes import SHA256

        if len(signature) != 2 * _NUMBER_BYTES:
            return False
        r, s = (int.from_bytes(half, "big") for half in (signature[:_NUMBER_BYTES], signature[_NUMBER_BYTES:]))
        try:
            self._key.public_key().verify(utils.encode_dss_signature(r, s), signed.encode(), ec.ECDSA(SHA256()))
        except InvalidSignature:
            return False
        return True


def _decoded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
