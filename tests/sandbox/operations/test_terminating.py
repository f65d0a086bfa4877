from __future__ import annotations

from pilotage.sandbox.operations.terminating import Terminating
from pilotage.sandbox.storage.records import Key

SHOP = Key("namespaces", "", "shop")
WIDGETS = Key("customresourcedefinitions.apiextensions.k8s.io", "", "widgets.example.com")
A, B = Key("widgets.example.com", "shop", "a"), Key("pods", "shop", "b")


def test_the_last_thing_to_go_says_whose_turn_it_is() -> None:
    terminating = Terminating()
    terminating.begin(SHOP, [A, B])
    assert terminating.is_draining(SHOP)
    assert terminating.removed(A) == []
    assert terminating.removed(B) == [SHOP]


def test_a_thing_may_be_waited_for_by_two_owners() -> None:
    terminating = Terminating()
    terminating.begin(SHOP, [A])
    terminating.begin(WIDGETS, [A])
    assert terminating.removed(A) == [SHOP, WIDGETS]


def test_an_owner_without_content_is_empty_at_once() -> None:
    terminating = Terminating()
    terminating.begin(SHOP, [])
    assert terminating.is_empty(SHOP)


def test_an_owner_that_is_gone_waits_for_nothing() -> None:
    terminating = Terminating()
    terminating.begin(SHOP, [A])
    terminating.end(SHOP)
    assert not terminating.is_draining(SHOP)
    assert terminating.removed(A) == []


def test_an_owner_that_goes_early_leaves_the_others_waiting() -> None:
    terminating = Terminating()
    terminating.begin(SHOP, [A])
    terminating.begin(WIDGETS, [A])
    terminating.end(SHOP)
    assert terminating.removed(A) == [WIDGETS]
