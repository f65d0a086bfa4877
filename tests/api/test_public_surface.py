"""What plugins and other programs may rely on does not change unnoticed."""

from __future__ import annotations

from difflib import unified_diff

from tools import api_surface

_ADVICE = """
The public surface has changed. If that is meant, run `make api-surface`, commit tests/api/public_surface.txt, and say
so in changes/. A line that begins with "-" is a removal or a change: it breaks plugins unless the old way still works.
Deprecate it first, see docs/api-stability.md.
"""


def test_the_public_surface_is_the_recorded_one() -> None:
    recorded, present = api_surface.SNAPSHOT.read_text().splitlines(), api_surface.surface().splitlines()
    changes = list(unified_diff(recorded, present, "recorded", "present", n=0, lineterm=""))
    assert not changes, "\n".join([*changes, _ADVICE])


def test_the_record_has_signatures_fields_members_and_aliases() -> None:
    lines = api_surface.SNAPSHOT.read_text().splitlines()
    for expected in (
        "pilotage.api.Clock.sleep: async def(self, seconds: float) -> None",
        "pilotage.api.Taint.__init__: (key, value, effect, time_added)",
        "pilotage.api.Hint.QUEUE = 'Queue'",
        "pilotage.api.Mask: TypeAlias = NDArray[np.bool_]",
        "pilotage.library.Framework.fits: def(self, pod: Given) -> Answer",
    ):
        assert expected in lines
