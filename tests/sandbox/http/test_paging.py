from __future__ import annotations

import pytest

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.http.paging import ListPages, Page
from pilotage.sandbox.storage.records import NO_LABELS, Key, Record
from pilotage.testing.virtual_clock import VirtualClock

RECORDS = [Record(Key("pods", "default", f"p{at}"), at, b"{}", "u", NO_LABELS) for at in range(1, 8)]


def names(page: object) -> list[str]:
    assert isinstance(page, Page)
    return [record.key.name for record in page.records]


@pytest.fixture
def pages() -> ListPages:
    return ListPages(VirtualClock(), "epoch")


def test_pages_follow_each_other_to_the_end(pages: ListPages) -> None:
    first = pages.first(RECORDS, 7, 3, "pods")
    second = pages.following(first.continue_token, 3, "pods")
    assert isinstance(second, Page)
    third = pages.following(second.continue_token, 3, "pods")
    assert names(first) + names(second) + names(third) == [f"p{at}" for at in range(1, 8)]
    assert (first.remaining, second.remaining) == (4, 1)
    assert isinstance(third, Page) and third.continue_token == ""


def test_the_size_of_a_page_may_change_on_the_way(pages: ListPages) -> None:
    first = pages.first(RECORDS, 7, 3, "pods")
    assert names(pages.following(first.continue_token, 0, "pods")) == ["p4", "p5", "p6", "p7"]


def test_a_page_can_be_asked_for_twice(pages: ListPages) -> None:
    """The answer may have been lost on its way."""
    first = pages.first(RECORDS, 7, 3, "pods")
    assert names(pages.following(first.continue_token, 3, "pods")) == ["p4", "p5", "p6"]
    assert names(pages.following(first.continue_token, 3, "pods")) == ["p4", "p5", "p6"]


def test_only_so_many_lists_are_kept(pages: ListPages) -> None:
    oldest = pages.first(RECORDS, 7, 3, "pods")
    for _ in range(100):
        newest = pages.first(RECORDS, 7, 3, "pods")
    with pytest.raises(ApiError) as gone:
        pages.following(oldest.continue_token, 3, "pods")
    assert gone.value.code == 410
    assert names(pages.following(newest.continue_token, 3, "pods")) == ["p4", "p5", "p6"]


def test_an_expired_list_leads_to_the_place_where_it_stopped(pages: ListPages) -> None:
    first = pages.first(RECORDS, 7, 3, "pods")
    with pytest.raises(ApiError) as gone:
        ListPages(VirtualClock(), "after a restart").following(first.continue_token, 3, "pods")
    assert pages.following(gone.value.metadata["continue"], 3, "pods") == Key("", "default", "p3")


@pytest.mark.parametrize("token", ["", "x", "e30", "!!!!", "eyJsaXN0X2lkIjoiZXBvY2guMSJ9"])
def test_a_token_that_was_never_given_is_400(pages: ListPages, token: str) -> None:
    pages.first(RECORDS, 7, 3, "pods")
    with pytest.raises(ApiError) as refused:
        pages.following(token, 3, "pods")
    assert refused.value.code == 400
