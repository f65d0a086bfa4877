"""The list of Kubernetes' conformance specs, and what a run of the suite says about it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import kubernetes_suite
from tools.kubernetes_suite import (
    FAILED,
    LIST,
    NOT_APPLICABLE,
    PASSED,
    Expected,
    Outcome,
    chosen,
    read_list,
    report,
    written,
)

A, B, C, D = "[sig-apps] a", "[sig-apps] b [Serial]", "[sig-node] c", "[sig-node] d"
EXPECTED = {
    A: Expected(A, PASSED, seconds=2.0),
    B: Expected(B, PASSED, seconds=3.0),
    C: Expected(C, FAILED, "no such thing"),
    D: Expected(D, NOT_APPLICABLE, "needs a container"),
}


def test_the_list_has_every_spec_of_the_release_once_and_a_reason_for_each_that_is_not_applicable() -> None:
    expected = read_list(LIST)
    assert len(expected) == 446
    assert all(one.reason for one in expected.values() if one.state == NOT_APPLICABLE)
    assert sum(one.state == PASSED for one in expected.values()) >= 220


@pytest.mark.parametrize(
    ("specs", "names"),
    [("passing", [A, B]), ("quick", [A]), ("all", [A, B, C]), ("sig-node", [C, D]), ("nothing like it", [])],
)
def test_specs_are_chosen_by_state_or_by_name(specs: str, names: list[str]) -> None:
    assert chosen(EXPECTED, specs) == names


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([Outcome(A, True, 1.0, ""), Outcome(C, False, 1.0, "still")], 0),
        ([Outcome(A, True, 1.0, ""), Outcome(C, True, 1.0, "")], 0),
        ([Outcome(A, False, 1.0, "broken"), Outcome(C, False, 1.0, "still")], 1),
        ([Outcome(C, False, 1.0, "still")], 1),
    ],
)
def test_what_passed_and_fails_or_does_not_run_ends_with_1(
    outcomes: list[Outcome], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(EXPECTED, outcomes, [A, C]) == code
    printed = capsys.readouterr().out
    assert ("broken" in printed) == any(one.message == "broken" for one in outcomes)
    assert "sig-apps" in printed and " known to fail" in printed


def test_the_list_is_written_from_what_was_found_and_keeps_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "list.yaml"
    file.write_text("# head\n\npasses: {}\n")
    monkeypatch.setattr(kubernetes_suite, "LIST", file)
    file.write_text(written(EXPECTED, [Outcome(A, False, 1.0, "broken\nnow"), Outcome(C, True, 4.26, "")]))
    found = read_list(file)
    assert file.read_text().startswith("# head\n\n")
    assert found[A] == Expected(A, FAILED, "broken now")
    assert found[C] == Expected(C, PASSED, seconds=4.3)
    assert (found[B], found[D]) == (EXPECTED[B], EXPECTED[D])
