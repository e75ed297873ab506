"""The log file, and failures that nobody caught."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dflash_desktop.base import log as log_module
from dflash_desktop.base.log import LOG_FILES, log_bugs, start_logging, stop_logging


@pytest.fixture(autouse=True)
def hooks_are_put_back(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    yield
    stop_logging()


def test_lines_of_any_script_land_in_the_file(tmp_path: Path) -> None:
    path = start_logging(tmp_path / "Protokoll 日本")
    assert path is not None
    logging.getLogger("dflash_desktop.engine").info("über %s \ud800", "家庭 😀")
    stop_logging()
    assert "über 家庭 😀 \\ud800" in path.read_text(encoding="utf-8")


def test_old_files_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "LOG_BYTES", 2_000)
    start_logging(tmp_path)
    for number in range(500):
        logging.getLogger("dflash_desktop").info("line %d", number)
    stop_logging()
    assert len(list(tmp_path.iterdir())) == LOG_FILES
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= LOG_FILES * 2_000


def test_a_folder_that_cannot_be_written_does_not_stop_the_program(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert start_logging(tmp_path / "file" / "logs") is None
    logging.getLogger("dflash_desktop").info("goes nowhere")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a disk that is always full")
def test_a_disk_that_fills_up_costs_the_lines_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / log_module.LOG_NAME).symlink_to("/dev/full")
    assert start_logging(tmp_path) is not None
    logging.getLogger("dflash_desktop").warning("there is no room for this")
    stop_logging()
    assert capsys.readouterr() == ("", "")


def test_starting_twice_writes_each_line_once(tmp_path: Path) -> None:
    start_logging(tmp_path)
    path = start_logging(tmp_path)
    assert path is not None
    logging.getLogger("dflash_desktop").info("once")
    stop_logging()
    assert path.read_text(encoding="utf-8").count("once") == 1


def test_a_bug_is_one_sentence_for_the_person_and_a_traceback_in_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = start_logging(tmp_path)
    assert path is not None
    log_bugs(path)
    try:
        raise ZeroDivisionError("what now")
    except ZeroDivisionError:
        sys.excepthook(*sys.exc_info())
    stop_logging()
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "what now" in said
    assert str(path) in said
    assert "Traceback" in path.read_text(encoding="utf-8")


def test_a_bug_in_a_thread_is_logged_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = start_logging(tmp_path)
    assert path is not None
    log_bugs(path)
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    stop_logging()
    assert "division by zero" in capsys.readouterr().err
    assert "Traceback" in path.read_text(encoding="utf-8")
