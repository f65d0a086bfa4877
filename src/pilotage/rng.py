"""Chance as a parameter: the only module that creates entropy.

A `random.Random` made here from a seed is handed to whatever needs chance, so that a run is replayable from its seed.
"""

from __future__ import annotations

import random
import secrets
import uuid


def fresh_seed() -> int:
    """A seed from the operating system, for runs that nobody asked to be replayable."""
    return secrets.randbits(63)


def seeded(seed: int) -> random.Random:
    """A random source that gives the same sequence for the same seed."""
    return random.Random(seed)


def fresh_token() -> str:
    """An unguessable bearer token."""
    return secrets.token_urlsafe(32)


def random_uid(rng: random.Random) -> str:
    """A version-4 UUID drawn from `rng`."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def random_suffix(rng: random.Random, length: int = 5) -> str:
    """A name suffix as Kubernetes generates it: no vowels, nothing that reads as a word."""
    return "".join(rng.choices(_NAME_ALPHABET, k=length))
