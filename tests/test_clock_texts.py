"""Times and identities as texts: what the fast way writes is what the standard library would."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime

from pilotage.clock import rfc3339, rfc3339_micro
from pilotage.rng import random_uid, seeded

TIMES = [0.0, 0.9999996, 1.0, 1_700_000_000.25, *(random.Random(1).uniform(0, 4e9) for _ in range(500))]


def test_times_are_written_as_the_standard_library_does() -> None:
    for at in TIMES:
        assert rfc3339(at) == datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        assert rfc3339_micro(at) == datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def test_a_random_uid_is_a_uuid_of_version_4_of_the_same_bits() -> None:
    ours, theirs = seeded(7), seeded(7)
    for _ in range(500):
        assert random_uid(ours) == str(uuid.UUID(int=theirs.getrandbits(128), version=4))
