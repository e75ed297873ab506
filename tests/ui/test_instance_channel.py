"""A second start reaches the first window, and nothing else does (B156)."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from dflash_desktop.ui.instance_channel import InstanceChannel, call_first
from support.patience import LONG_MS, in_time

NAME = "dflash-desktop-test"
CALLER = """
import sys
from pathlib import Path
from dflash_desktop.ui.instance_channel import call_first
sys.exit(0 if call_first(sys.argv[1], [Path(name) for name in sys.argv[2:]], answer_s=60) else 1)
"""
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="sockets with names are files here only")


@pytest.fixture
def runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


@pytest.fixture
def channel(app: QApplication, runtime_folder: Path) -> Iterator[InstanceChannel]:
    made = InstanceChannel(NAME)
    yield made
    made.close()


def call(*files: str, folder: Path, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", CALLER, NAME, *files], cwd=folder, env={**os.environ, **environment})


def test_files_arrive_as_whole_paths(channel: InstanceChannel, qtbot: QtBot, tmp_path: Path) -> None:
    with qtbot.waitSignal(channel.called, timeout=LONG_MS) as called:
        process = call("模型 & 'q' #1 😀.gguf", "/b.gguf", folder=tmp_path)
    assert called.args == [(tmp_path / "模型 & 'q' #1 😀.gguf", Path("/b.gguf"))]
    qtbot.waitUntil(lambda: process.poll() is not None, timeout=LONG_MS)
    assert process.returncode == 0


def test_the_token_of_the_second_start_is_taken_over(
    channel: InstanceChannel, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_ACTIVATION_TOKEN", "old")
    with qtbot.waitSignal(channel.called, timeout=LONG_MS) as called:
        process = call(folder=tmp_path, XDG_ACTIVATION_TOKEN="new")
    assert (called.args, os.environ["XDG_ACTIVATION_TOKEN"]) == ([()], "new")
    qtbot.waitUntil(lambda: process.poll() is not None, timeout=LONG_MS)


@posix_only
def test_only_this_person_can_connect(channel: InstanceChannel, runtime_folder: Path) -> None:
    assert stat.S_IMODE((runtime_folder / NAME).stat().st_mode) & 0o077 == 0


@posix_only
@pytest.mark.parametrize("words", [b"\n", b"{}\n", b'{"files": 3}\n', b"\xff" * 100_000, b"[" * 60_000 + b"\n"])
def test_nonsense_is_hung_up_on_and_the_next_call_is_heard(
    channel: InstanceChannel, qtbot: QtBot, runtime_folder: Path, tmp_path: Path, words: bytes
) -> None:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(runtime_folder / NAME))
        caller.settimeout(0.01)
        # The other side reads in this very thread, below: what does not fit in between may be lost.
        with suppress(BrokenPipeError, TimeoutError, ConnectionResetError):
            caller.sendall(words)

        def is_hung_up() -> bool:
            try:
                return caller.recv(10) == b""
            except TimeoutError:
                return False
            except ConnectionResetError:
                return True

        qtbot.waitUntil(is_hung_up, timeout=LONG_MS)
    with qtbot.waitSignal(channel.called, timeout=LONG_MS):
        process = call(folder=tmp_path)
    qtbot.waitUntil(lambda: process.poll() is not None, timeout=LONG_MS)
    assert process.returncode == 0


@posix_only
def test_a_socket_that_a_killed_program_left_is_no_obstacle(
    app: QApplication, runtime_folder: Path, qtbot: QtBot, tmp_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(runtime_folder / NAME))
    channel = InstanceChannel(NAME)
    with qtbot.waitSignal(channel.called, timeout=LONG_MS):
        process = call(folder=tmp_path)
    qtbot.waitUntil(lambda: process.poll() is not None, timeout=LONG_MS)
    channel.close()


@in_time(10)
def test_where_nobody_answers_the_caller_is_told(app: QApplication, runtime_folder: Path, within_s: float) -> None:
    begin = time.monotonic()
    assert not call_first(NAME, [], answer_s=0.3)
    assert time.monotonic() - begin < within_s


@posix_only
def test_a_folder_that_others_may_write_is_not_trusted(
    app: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shared = tmp_path / f"dflash-desktop-{os.getuid()}"
    shared.mkdir()
    shared.chmod(0o777)
    channel = InstanceChannel(NAME)
    assert list(shared.iterdir()) == []
    assert not call_first(NAME, [], answer_s=0.3)
    channel.close()
