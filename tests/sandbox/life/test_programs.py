"""Commands whose outcome is known, and those that are left to annotations."""

from __future__ import annotations

import pytest

from pilotage.sandbox.life.programs import FOREVER, ProgramOutcome, outcome_of, run_command

ENV = {"A": "1", "B": "x y", "JOB_COMPLETION_INDEX": "3"}


def shell(script: str) -> tuple[float, int, str] | None:
    outcome = outcome_of({"command": ["/bin/sh", "-c"], "args": [script]}, lambda: ENV)
    return None if outcome is None else (outcome.seconds, outcome.exit_code, outcome.output)


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ({"command": ["/bin/true"]}, (0.0, 0, "")),
        ({"command": ["/bin/false"]}, (0.0, 1, "")),
        ({"command": ["sleep"], "args": ["1.5"]}, (1.5, 0, "")),
        ({"command": ["sleep", "1m", "30"]}, (90.0, 0, "")),
        ({"command": ["sleep", "infinity"]}, (FOREVER, 0, "")),
        ({"command": ["echo", "a", "it's"]}, (0.0, 0, "a it's\n")),
        ({"command": ["echo", "$(A)", "$(NONE)", "$$(A)"]}, (0.0, 0, "1 $(NONE) $(A)\n")),
        ({"command": ["printenv", "B"]}, (0.0, 0, "x y\n")),
        ({"command": ["env"]}, (0.0, 0, "A=1\nB=x y\nJOB_COMPLETION_INDEX=3\n")),
        ({"image": "registry.k8s.io/pause:3.10"}, (FOREVER, 0, "")),
        ({"image": "nginx"}, None),
        ({"command": ["nginx", "-g"]}, None),
        ({"command": ["sleep", "soon"]}, None),
        ({"command": ["echo", "*"]}, (0.0, 0, "*\n")),
    ],
)
def test_programs(container: dict[str, object], expected: tuple[float, int, str] | None) -> None:
    outcome = outcome_of(container, lambda: ENV)
    assert (None if outcome is None else (outcome.seconds, outcome.exit_code, outcome.output)) == expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", (0.0, 0, "")),
        ("exit 3", (0.0, 3, "")),
        ("sleep 5; echo done; exit 42", (5.0, 42, "done\n")),
        ("false && echo no", (0.0, 1, "")),
        ("false || echo yes", (0.0, 0, "yes\n")),
        ("true && sleep 2 && exit 1", (2.0, 1, "")),
        ("! true; echo $?", (0.0, 0, "1\n")),
        ("\n  sleep 1\n  # nothing\n  exit 0\n", (1.0, 0, "")),
        ('echo "one; two"', (0.0, 0, "one; two\n")),
        ("exec sleep 7; echo never", (7.0, 0, "")),
        ("sleep infinity; exit 1", (FOREVER, 0, "")),
        ("until false; do sleep 1; done", (FOREVER, 0, "")),
        ("while true; do true; done", (FOREVER, 0, "")),
        ("exit 1 2> /dev/null", (0.0, 1, "")),
        ("echo a > /tmp/x; echo b >> /tmp/x; cat /tmp/x", (0.0, 0, "a\nb\n")),
        ("touch /tmp/x; if [ -f /tmp/x ]; then exit 4; fi", (0.0, 4, "")),
        ("if [ $(expr ${JOB_COMPLETION_INDEX} % 2) -ne 0 ]; then\n exit 1\nelse\n exit 0\nfi", (0.0, 1, "")),
        ("if false; then echo a; elif true; then echo b; else echo c; fi; echo $?", (0.0, 0, "b\n0\n")),
        ("for i in 1 2 3; do echo $i; sleep 1; done", (3.0, 0, "1\n2\n3\n")),
        ("i=0; while [ $i -lt 3 ]; do i=$((i+1)); done; echo $i $((i - 5)) $((-7 / 2))", (0.0, 0, "3 -2 -3\n")),
        ("echo $B; echo \"$B\" '$B' \\$B", (0.0, 0, "x y\nx y $B $B\n")),
        ("echo ${X:-no $A} $(echo in; echo ner)", (0.0, 0, "no 1 in ner\n")),
        ('[[ "${A:?}" == "${A:?}" ]] && echo OK || echo bad', (0.0, 0, "OK\n")),
        ("echo ${NOTHING:?}; echo never", (0.0, 1, "NOTHING: parameter not set\n")),
        ("sh -c 'sleep 1; echo deep; exit 4'; echo $?", (1.0, 0, "deep\n4\n")),
        ("{ echo a; echo b; } && echo c", (0.0, 0, "a\nb\nc\n")),
        ("A=2 printenv A; A=3 echo $A; A='4 5'; echo $A", (0.0, 0, "2\n1\n4 5\n")),
        *(
            (text, None)
            for text in (
                *("exit $(( $RANDOM / 16384 ))", "cat /data/foo", "[ -r /data/foo ]", "sleep 1 &", "echo 'unclosed"),
                *("ls | wc", "echo a*b", "echo `date`", "if", "then", "do; done", ";;", "()", "f() { true; }", "$("),
                *("${", "[", "[ a", "!", "&& a", "if true; then echo x; fi extra", "exit $((1 / 0))"),
                *("set -e; false; echo x", "echo $$", "cat < /etc/hosts", "for i; do echo; done"),
            )
        ),
    ],
)
def test_scripts(script: str, expected: tuple[float, int, str] | None) -> None:
    assert shell(script) == expected


@pytest.mark.parametrize("script", ["true;" * 5_000, "if true; then " * 40 + "true" + "; fi" * 40, "sh -c " * 3_000])
def test_a_script_that_is_too_long_or_too_deep_is_unknown(script: str) -> None:
    assert shell(script) is None


def test_a_script_that_prints_without_end_is_taken_to_run_for_ever() -> None:
    outcome = outcome_of({"command": ["sh", "-c", "while true; do echo hello; sleep 5; done"]})
    assert outcome is not None and outcome.seconds == FOREVER
    assert outcome.output_until(11.0) == "hello\n" * 3


@pytest.mark.parametrize(
    ("script", "container", "message"),
    [
        ("echo -n OK > /dev/termination-log; echo DONE", {}, "OK"),
        ("echo -n OK > /tmp/why", {"terminationMessagePath": "/tmp/why"}, "OK"),
        ("echo DONE; false", {"terminationMessagePolicy": "FallbackToLogsOnError"}, "DONE\n"),
        ("echo DONE; true", {"terminationMessagePolicy": "FallbackToLogsOnError"}, ""),
        ("echo DONE; false", {}, ""),
    ],
)
def test_a_container_leaves_a_message_behind(script: str, container: dict[str, str], message: str) -> None:
    outcome = run_command(("sh", "-c", script))
    assert isinstance(outcome, ProgramOutcome) and outcome.termination_message(container) == message
