"""Commands whose outcome is known, and those that are left to annotations."""

from __future__ import annotations

import pytest

from pilotage.sandbox.life.programs import FOREVER, ProgramOutcome, outcome_of


def shell(script: str) -> ProgramOutcome | None:
    return outcome_of({"command": ["/bin/sh", "-c"], "args": [script]})


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ({"command": ["/bin/true"]}, ProgramOutcome(0.0)),
        ({"command": ["/bin/false"]}, ProgramOutcome(0.0, 1)),
        ({"command": ["sleep"], "args": ["1.5"]}, ProgramOutcome(1.5)),
        ({"command": ["sleep", "1m", "30"]}, ProgramOutcome(90.0)),
        ({"command": ["sleep", "infinity"]}, ProgramOutcome(FOREVER)),
        ({"command": ["echo", "a", "b"]}, ProgramOutcome(0.0, 0, "a b\n")),
        ({"image": "registry.k8s.io/pause:3.10"}, ProgramOutcome(FOREVER)),
        ({"image": "nginx"}, None),
        ({"command": ["nginx", "-g"]}, None),
        ({"command": ["sleep", "soon"]}, None),
    ],
)
def test_programs(container: dict[str, object], expected: ProgramOutcome | None) -> None:
    assert outcome_of(container) == expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("exit 3", ProgramOutcome(0.0, 3)),
        ("sleep 5; echo done; exit 42", ProgramOutcome(5.0, 42, "done\n")),
        ("false && echo no", ProgramOutcome(0.0, 1)),
        ("false || echo yes", ProgramOutcome(0.0, 0, "yes\n")),
        ("true && sleep 2 && exit 1", ProgramOutcome(2.0, 1)),
        ("\n  sleep 1\n  exit 0\n", ProgramOutcome(1.0)),
        ('echo "one; two"', None),
        ("exec sleep 7", ProgramOutcome(7.0)),
        ("sleep infinity; exit 1", ProgramOutcome(FOREVER)),
        ("exit $(( $RANDOM / 16384 ))", None),
        ("cat /data/foo", None),
        ("echo a > /tmp/x", None),
        ("exit 1 2> /dev/null", None),
        ("sleep 1 &", None),
        ("echo 'unclosed", None),
    ],
)
def test_scripts(script: str, expected: ProgramOutcome | None) -> None:
    assert shell(script) == expected


def test_a_script_without_end_is_unknown() -> None:
    assert shell("true;" * 2_000) is None
