"""Claims as they are believed to be: what is taken while it is pending, assumed, or known."""

from __future__ import annotations

import msgspec

from pilotage.model.resource import ResourceClaim
from pilotage.plugins.dynamic_resources.claim_book import ClaimBook
from pilotage.plugins.dynamic_resources.devices import DeviceID
from pilotage.testing import pod
from tests.plugins.dynamic_resources.objects import DRIVER, allocated, claim, exactly

A = DeviceID(DRIVER, "n", "a")
FREE = claim("c", exactly())
TAKEN = allocated("c", "a")
assert TAKEN.status.allocation is not None
ALLOCATION = TAKEN.status.allocation


def at_version(obj: ResourceClaim, version: int) -> ResourceClaim:
    metadata = msgspec.structs.replace(obj.metadata, resource_version=str(version))
    return msgspec.structs.replace(obj, metadata=metadata)


POD, ONE, TWO = pod("pod").build(), pod("one").build(), pod("two").build()


def book_with(*claims: ResourceClaim) -> ClaimBook:
    book = ClaimBook()
    for known in claims:
        book.object_put("ResourceClaim", None, known)
    return book


def test_a_pending_allocation_takes_the_device_and_giving_up_frees_it() -> None:
    book = book_with(FREE)
    book.reserve(FREE, ALLOCATION, POD)
    assert A in book.ledger.taken
    book.unreserve(FREE.uid, POD.uid)
    book.unreserve(FREE.uid, POD.uid)
    assert A not in book.ledger.taken
    assert book.pending(FREE.uid) is None
    book.check()


def test_an_allocation_that_two_pods_need_stays_until_both_gave_up() -> None:
    book = book_with(FREE)
    book.reserve(FREE, ALLOCATION, ONE)
    book.reserve(FREE, ALLOCATION, TWO)
    book.unreserve(FREE.uid, ONE.uid)
    assert A in book.ledger.taken
    book.unreserve(FREE.uid, TWO.uid)
    assert A not in book.ledger.taken


def test_a_device_is_never_free_between_reservation_and_watch() -> None:
    book = book_with(FREE)
    book.reserve(FREE, ALLOCATION, POD)
    written = at_version(TAKEN, 2)
    book.assume(written)
    book.settle(FREE.uid)
    assert A in book.ledger.taken
    assert book.get(FREE.key) is written
    book.object_put("ResourceClaim", FREE, at_version(FREE, 1))
    assert book.get(FREE.key) is written, "an old event does not bring back what was"
    seen = at_version(TAKEN, 2)
    book.object_put("ResourceClaim", FREE, seen)
    assert book.get(FREE.key) is seen
    assert A in book.ledger.taken
    book.object_removed("ResourceClaim", seen)
    assert A not in book.ledger.taken
    book.check()


def test_what_is_older_than_what_is_known_is_not_assumed() -> None:
    book = book_with(at_version(TAKEN, 5))
    book.assume(at_version(FREE, 4))
    assert A in book.ledger.taken
    book.assume(at_version(claim("stranger", exactly()), 9))
    assert book.get("default/stranger") is None


def test_a_claim_that_was_deallocated_is_free_again() -> None:
    book = book_with(TAKEN)
    book.object_put("ResourceClaim", TAKEN, at_version(FREE, 2))
    assert A not in book.ledger.taken


def test_a_claim_of_the_same_name_is_another_one() -> None:
    book = book_with(TAKEN)
    other = msgspec.structs.replace(FREE, metadata=msgspec.structs.replace(FREE.metadata, uid="other"))
    book.object_put("ResourceClaim", TAKEN, other)
    assert A not in book.ledger.taken
    book.check()


def test_shares_add_up_and_go_one_by_one() -> None:
    shares = [allocated(f"s{n}", "a", shareID=str(n), consumedCapacity={"gb": str(n)}) for n in (1, 2)]
    book = book_with(*shares)
    assert book.ledger.consumed(A) == {"gb": 3}
    assert A not in book.ledger.taken
    assert book.ledger.is_shared(A)
    book.object_removed("ResourceClaim", shares[1])
    assert book.ledger.consumed(A) == {"gb": 1}
    book.object_removed("ResourceClaim", shares[0])
    assert not book.ledger.is_shared(A)
    book.check()
