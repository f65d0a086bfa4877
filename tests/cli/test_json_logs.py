"""Log lines as objects: what stands in the text as name=value is a key of its own."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from pilotage.cli.errors import report
from pilotage.cli.logs import log_as_json, logs_are_json, set_up_logging
from pilotage.cli.main import call
from pilotage.observe.verbosity import level_of

log = logging.getLogger("pilotage.test")


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


@pytest.mark.parametrize(
    ("template", "arguments", "message", "fields"),
    [
        ("became leader: lease=%s identity=%s", ("a/b", "me"), "became leader", {"lease": "a/b", "identity": "me"}),
        ("plugin=%s took %.1f s", ("P", 1.25), "plugin=P took 1.2 s", {}),
        ("%d tries failed: pod=%s seconds=%.1f", (3, "d/p", 1.26), "3 tries failed", {"pod": "d/p", "seconds": "1.3"}),
        ("failed: error=%s", ("a=b c=d",), "failed", {"error": "a=b c=d"}),
        ("watch failed: v=%s", ("1",), "watch failed", {"v_": "1"}),
        ("100 %% sure: pod=%s", ("d/p",), "100 % sure", {"pod": "d/p"}),
        ("nothing to fill in: rate=100%", (), "nothing to fill in: rate=100%", {}),
    ],
)
def test_pairs_at_the_end_of_a_message_are_keys(
    template: str, arguments: tuple[Any, ...], message: str, fields: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    set_up_logging(logging.INFO)
    log_as_json()
    log.info(template, *arguments)
    (line,) = lines(capsys)
    assert line["msg"] == message
    assert {key: line[key] for key in fields} == fields
    assert set(line) == {"ts", "level", "logger", "caller", "msg", "v"} | set(fields)
    assert line["logger"] == "pilotage.test" and line["level"] == "info" and line["v"] == 0
    assert line["caller"].startswith("test_json_logs.py:")


def test_errors_carry_what_went_wrong_and_details_the_stack(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(logging.DEBUG)
    log_as_json()
    try:
        raise KeyError("gone")
    except KeyError:
        log.exception("failed\nbadly: pod=%s", "d/p")
    (line,) = lines(capsys)
    assert (line["level"], line["msg"], line["pod"], line["err"]) == (
        "error",
        "failed\nbadly",
        "d/p",
        "KeyError: 'gone'",
    )
    assert "Traceback" in line["stacktrace"] and "v" not in line


@pytest.mark.parametrize("verbosity", [2, 4, 5])
def test_an_object_says_its_verbosity(verbosity: int, capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(level_of(verbosity))
    log_as_json()
    log.log(level_of(verbosity), "pod bound: pod=%s", "d/p")
    assert [(line["level"], line["v"], line["pod"]) for line in lines(capsys)] == [("info", verbosity, "d/p")]


def test_what_ends_the_command_is_an_object_too(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging()
    log_as_json()
    assert logs_are_json()
    report(["the lease was lost"])
    assert [(line["level"], line["msg"]) for line in lines(capsys)] == [("error", "the lease was lost")]


def test_the_flag_of_run_chooses(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["run", "--logging-format=json", "--kubeconfig", "/no/such/file"]) == 2
    told = lines(capsys)
    assert told and all("/no/such/file" in line["msg"] for line in told)
    assert call(["run", "--logging-format=yaml"]) == 2
    assert '--logging-format: "yaml" is neither text nor json' in capsys.readouterr().err
