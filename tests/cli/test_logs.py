from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from pilotage.cli.logs import is_verbose, logs_held_back, set_up_logging

log = logging.getLogger("pilotage.test")


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)


def _fail() -> None:
    try:
        raise KeyError("gone")
    except KeyError:
        log.exception("pod=default/a failed\nbadly")


def test_only_warnings_are_shown_and_an_exception_takes_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging()
    log.info("not interesting")
    _fail()
    assert capsys.readouterr().err == (
        "ERROR pilotage.test: pod=default/a failed badly: KeyError: 'gone' (-v shows more)\n"
    )
    assert not is_verbose()


def test_verbose_shows_everything(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(logging.DEBUG)
    log.debug("details")
    _fail()
    err = capsys.readouterr().err
    assert "details" in err and "Traceback" in err
    assert is_verbose()


def test_logs_are_held_back_while_the_terminal_is_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging()
    with logs_held_back():
        log.warning("first")
        log.warning("second")
        assert capsys.readouterr().err == ""
    assert capsys.readouterr().err.splitlines() == ["WARNING pilotage.test: first", "WARNING pilotage.test: second"]
    log.warning("third")
    assert "third" in capsys.readouterr().err
