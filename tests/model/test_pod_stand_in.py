"""A stand-in has what the pods of a class share, and notes whatever else is looked at."""

from __future__ import annotations

import pytest

from pilotage.model import Pod
from pilotage.model.pod_stand_in import SHARED_FIELDS, stand_in
from pilotage.testing import pod

EXAMPLE = pod("p").label("app", "web").annotation("a", "b").owner("ReplicaSet", "web").nominated("n").build()


@pytest.mark.parametrize("field", Pod.__struct_fields__)
def test_fields(field: str) -> None:
    """All that there are: one that is added to Pod belongs to one pod, unless somebody says that it is shared."""
    alike = stand_in(EXAMPLE)
    assert getattr(alike, field) == getattr(EXAMPLE, field)
    assert alike.noted == (set() if field in SHARED_FIELDS else {field})


@pytest.mark.parametrize(
    ("name", "noted"),
    [
        ("key", {"name"}),
        ("priority", set()),
        ("is_terminating", {"deletion_timestamp"}),
        ("is_finished", {"status"}),
        ("controller", {"owner_references"}),
    ],
)
def test_what_follows_from_fields(name: str, noted: set[str]) -> None:
    alike = stand_in(EXAMPLE)
    assert getattr(alike, name) == getattr(EXAMPLE, name)
    assert alike.noted == noted


def test_it_is_found_among_pods_under_the_name_of_its_example() -> None:
    alike, other = stand_in(EXAMPLE), pod("other").build()
    assert alike == EXAMPLE and alike == stand_in(EXAMPLE) and EXAMPLE in [alike]
    assert alike != other and other != alike and alike in {EXAMPLE} and alike not in {other}
    assert alike.noted == {"identity"}
