from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from pilotage.cli.logs import is_verbose, logs_held_back, set_up_logging
from pilotage.observe.verbosity import level_of

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


@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG])
def test_values_of_several_words_are_quoted_so_that_no_pair_can_be_forged(
    level: int, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up_logging(level)
    log.warning("attempt failed: pod=%s nominated=%s message=%s", "default/a", "", 'no "room" node=b\nERROR x: y')
    assert capsys.readouterr().err == (
        "WARNING pilotage.test: attempt failed: "
        'pod=default/a nominated="" message="no \\"room\\" node=b\\nERROR x: y"\n'
    )


@pytest.mark.parametrize(("verbosity", "name"), [(0, "INFO"), (2, "INFO"), (4, "DEBUG"), (5, "DEBUG")])
def test_lines_of_every_verbosity_have_a_name_that_people_know(
    verbosity: int, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up_logging(level_of(verbosity))
    log.log(level_of(verbosity), "told")
    log.log(level_of(verbosity + 2), "not told")
    assert capsys.readouterr().err == f"{name} pilotage.test: told\n"


def test_logs_are_held_back_while_the_terminal_is_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging()
    with logs_held_back():
        log.warning("first")
        log.warning("second")
        assert capsys.readouterr().err == ""
    assert capsys.readouterr().err.splitlines() == ["WARNING pilotage.test: first", "WARNING pilotage.test: second"]
    log.warning("third")
    assert "third" in capsys.readouterr().err
