"""Chance as a parameter: the only module that creates entropy.

A `random.Random` made here from a seed is handed to whatever needs chance, so that a run is replayable from its seed.
"""

from __future__ import annotations

import random
import secrets

_UUID_FIXED_BITS = (0xF << 76) | (0x3 << 62)
_UUID_VERSION_4 = (0x4 << 76) | (0x2 << 62)


def fresh_seed() -> int:
    """A seed from the operating system, for runs that need not be replayable."""
    return secrets.randbits(63)


def seeded(seed: int) -> random.Random:
    """A random source that gives the same sequence for the same seed."""
    return random.Random(seed)


def fresh_token() -> str:
    """An unguessable bearer token."""
    return secrets.token_urlsafe(32)


def random_uid(rng: random.Random) -> str:
    """A version-4 UUID drawn from `rng`."""
    # As uuid.UUID does it, without the detour over an object of that class.
    bits = rng.getrandbits(128) & ~_UUID_FIXED_BITS | _UUID_VERSION_4
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def random_suffix(rng: random.Random, length: int = 5) -> str:
    """A name suffix as Kubernetes generates it: no vowels, nothing that reads as a word."""
    return "".join(rng.choices(_NAME_ALPHABET, k=length))
