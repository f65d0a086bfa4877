"""docs/kubectl.md lists what is served and tried."""

from __future__ import annotations

from tools.kubectl_page import PAGE, page_with_tables, tried_commands


def test_the_tables_are_what_the_generator_writes() -> None:
    text = PAGE.read_text()
    assert text.count("make kubectl-page -->") == 4, "a table for commands, kinds, effects and the suite"
    assert text == page_with_tables(text), "run `make kubectl-page`"


def test_no_command_is_listed_that_shows_nothing_at_all() -> None:
    silent = [one.run for group in tried_commands().values() for one in group if not one.shows]
    assert len(silent) < 5, silent
