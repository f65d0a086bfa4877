"""Tokens of ServiceAccounts: what they say, and how long they are good."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from pilotage.sandbox.api import Api
from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.http.account_tokens import AccountTokens
from pilotage.sandbox.storage.store import Store
from pilotage.testing.virtual_clock import VirtualClock
from tests.sandbox.api_world import World as ServerWorld
from tests.sandbox.living_cluster import pod

Object = dict[str, Any]


class World:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.api = Api(Store(history=100), clock=self.clock, rng=random.Random(1))
        self.api.create("serviceaccounts", "default", {"metadata": {"name": "robot"}})
        self.tokens = AccountTokens(self.api)

    def token(self, **spec: Any) -> str:
        return str(self.tokens.issue("default", "robot", {"spec": spec})["status"]["token"])


def test_token_shows_its_account() -> None:
    world = World()
    user = world.tokens.user_of(world.token())
    assert user is not None and user["username"] == "system:serviceaccount:default:robot"
    assert "system:serviceaccounts:default" in user["groups"]


async def test_token_ends_with_its_time() -> None:
    world = World()
    token = world.token(expirationSeconds=600)
    await world.clock.advance(599)
    assert world.tokens.user_of(token) is not None
    await world.clock.advance(1)
    assert world.tokens.user_of(token) is None


def test_token_ends_with_its_account_and_its_pod() -> None:
    world = World()
    world.api.create("pods", "default", pod("p"))
    bound = world.token(boundObjectRef={"kind": "Pod", "name": "p"})
    user = world.tokens.user_of(bound)
    assert user is not None and user["extra"]["authentication.kubernetes.io/pod-name"] == ["p"]
    world.api.delete("pods", "default", "p")
    assert world.tokens.user_of(bound) is None
    token = world.token()
    world.api.delete("serviceaccounts", "default", "robot")
    world.api.create("serviceaccounts", "default", {"metadata": {"name": "robot"}})
    assert world.tokens.user_of(token) is None, "a namesake is another one"


def test_token_is_good_for_its_audiences_only() -> None:
    world = World()
    token = world.token(audiences=["vault"])
    assert world.tokens.user_of(token) is None
    assert world.tokens.user_of(token, ["vault"]) is not None


@pytest.mark.parametrize(
    "alter", [lambda t: t[:-2], lambda t: "x" + t, lambda t: t.replace(".", ".a", 1), lambda t: ""]
)
def test_altered_tokens_are_worth_nothing(alter: Any) -> None:
    world = World()
    assert world.tokens.user_of(alter(world.token())) is None
    assert AccountTokens(world.api).user_of(world.token()) is None


@pytest.mark.parametrize("spec", [{"expirationSeconds": 60}, {"boundObjectRef": {"kind": "Job", "name": "x"}}])
def test_what_cannot_be_is_rejected(spec: Object) -> None:
    with pytest.raises(ApiError) as caught:
        World().token(**spec)
    assert caught.value.code == 422


def test_others_can_verify_a_token_by_what_is_served() -> None:
    world = ServerWorld()
    world.api.create("serviceaccounts", "default", {"metadata": {"name": "robot"}})
    path = "/api/v1/namespaces/default/serviceaccounts/robot/token"
    token = world.ok("POST", path, {"spec": {}})["status"]["token"]
    configuration = world.ok("GET", "/.well-known/openid-configuration")
    assert configuration["jwks_uri"] == configuration["issuer"] + "/openid/v1/jwks"
    assert configuration["id_token_signing_alg_values_supported"] == ["ES256"]
    answer = world.send("GET", "/openid/v1/jwks")
    assert answer.content_type == "application/jwk-set+json"
    [key] = json.loads(answer.body)["keys"]
    head, claims, signature = token.split(".")
    assert json.loads(decoded(head)) == {"alg": "ES256", "kid": key["kid"]}
    assert json.loads(decoded(claims))["iss"] == configuration["issuer"]
    numbers = ec.EllipticCurvePublicNumbers(
        int.from_bytes(decoded(key["x"]), "big"), int.from_bytes(decoded(key["y"]), "big"), ec.SECP256R1()
    )
    halves = decoded(signature)
    r, s = int.from_bytes(halves[:32], "big"), int.from_bytes(halves[32:], "big")
    signed = f"{head}.{claims}".encode()
    numbers.public_key().verify(encode_dss_signature(r, s), signed, ec.ECDSA(SHA256()))


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
