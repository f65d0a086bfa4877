"""A list in pages that is carried on, not started again, after a failed request.

The server keeps a list consistent over its pages by a token that it forgets after some minutes. If that happens
(410), the list starts from the beginning with larger pages, so that it needs fewer requests than before.
"""

from __future__ import annotations

from typing import Any

from pilotage.model.errors import DecodeError
from pilotage.model.kinds import ListPage

PAGE_GROWTH = 10


class Listing:
    """What has been listed so far and how to ask for the next page."""

    def __init__(self, page_size: int) -> None:
        self.limit = page_size
        self.continue_token = ""
        self.resource_version = ""
        self.items: list[Any] = []
        self.errors: list[DecodeError] = []

    def add(self, page: ListPage) -> bool:
        """True if this was the last page."""
        if not self.continue_token:
            # The version of the first page is safe for a watch whether or not the server freezes the later ones:
            # what those already contain is at worst told once more.
            self.resource_version = page.resource_version
        self.items.extend(page.items)
        self.errors.extend(page.errors)
        self.continue_token = page.continue_token
        return not page.continue_token

    def start_again(self) -> None:
        """The token expired: begin anew with fewer, larger pages."""
        self.limit *= PAGE_GROWTH
        self.continue_token = ""
        self.items.clear()
        self.errors.clear()
