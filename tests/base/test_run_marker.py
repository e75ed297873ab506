"""A run that dies leaves its marker; the next start reads it, and only that."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from dflash_desktop.base.run_marker import RunMarker

DIE = """
import ctypes, os, sys
from pathlib import Path
from dflash_desktop.base.run_marker import RunMarker
marker = RunMarker(Path(sys.argv[1]), "1.2.3")
marker.begin()
marker.note("load", target="模型 t.gguf", device="CUDA0")
how = sys.argv[2]
if how == "abort":
    os.abort()
if how == "segv":
    ctypes.string_at(0)
if how == "wait":
    print("ready", flush=True)
    sys.stdin.read()
if how == "clean":
    marker.end()
"""


def run(folder: Path, how: str) -> int:
    done = subprocess.run([sys.executable, "-c", DIE, str(folder), how], check=False, capture_output=True)
    return done.returncode


@pytest.mark.parametrize("how", ["abort", "segv"])
def test_a_native_crash_is_found_with_what_it_was_doing(tmp_path: Path, how: str) -> None:
    assert run(tmp_path, how) < 0
    marker = RunMarker(tmp_path, "2.0")
    (lost,) = marker.begin()
    assert lost.activity == "load"
    assert lost.details == {"target": "模型 t.gguf", "device": "CUDA0"}
    assert lost.version == "1.2.3"
    assert lost.has_crashed
    assert "Fatal Python error" in lost.trace
    marker.end()
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_was_killed_is_found_without_a_trace(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", DIE, str(tmp_path), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline().strip() == b"ready"
    marker = RunMarker(tmp_path, "2.0")
    assert marker.begin() == []  # it lives
    assert marker.others_running() == 1
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdin.close()
    process.stdout.close()
    assert marker.others_running() == 0
    marker.end()
    marker = RunMarker(tmp_path, "2.0")
    (lost,) = marker.begin()
    assert not lost.has_crashed
    marker.end()


def test_a_run_that_ended_well_leaves_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, "clean") == 0
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_another_process_has_by_now_is_no_living_run(tmp_path: Path) -> None:
    stored = {"pid": os.getppid(), "process_started_at": 5.0, "activity": "reply", "started_at": 7.0}
    (tmp_path / "run-1.json").write_text(json.dumps(stored), "utf-8")
    assert psutil.pid_exists(os.getppid())
    marker = RunMarker(tmp_path, "2.0")
    assert [lost.activity for lost in marker.begin()] == ["reply"]
    marker.end()


@pytest.mark.parametrize("content", [b"", b"[]", b"[" * 100_000, b'{"pid": "x", "details": 5}', b"\xff"])
def test_an_unreadable_marker_is_a_lost_run_of_which_nothing_is_known(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run-77.json").write_bytes(content)
    marker = RunMarker(tmp_path, "2.0")
    (lost,) = marker.begin()
    assert (lost.activity, lost.details) == ("idle", {})
    marker.end()


def test_a_folder_that_cannot_be_written_keeps_nobody_from_starting(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    marker = RunMarker(tmp_path / "file" / "logs", "2.0")
    assert marker.begin() == []
    marker.note("reply")
    marker.end()
