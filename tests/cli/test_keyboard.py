"""Keys in what a terminal sends."""

from __future__ import annotations

import pytest

from pilotage.cli.top import keys_of


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        (b"q", ["q"]),
        (b"\x1b[A\x1b[Bj", ["up", "down", "j"]),
        (b"\x1bOA\x1b[6~", ["up", "page down"]),
        (b"\x1b", ["escape"]),
        (b"\r", ["enter"]),
        (b"\x1b[1;5C\x01\xff", []),
        (b"", []),
    ],
)
def test_keys_have_names_and_what_is_none_is_left_out(sent: bytes, keys: list[str]) -> None:
    assert keys_of(sent) == keys
