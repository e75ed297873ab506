"""The lock of a single window: held by one, free again whatever became of its holder (B156)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dflash_desktop.base.instance import InstanceLock

HOLDER = """
import sys
from pathlib import Path
from dflash_desktop.base.instance import InstanceLock
lock = InstanceLock(Path(sys.argv[1]))
print("held" if lock.acquire() else "refused", flush=True)
sys.stdin.read()
"""


def start_holder(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_the_second_one_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    first, second = InstanceLock(tmp_path), InstanceLock(tmp_path)
    assert first.acquire() and first.acquire()
    assert not second.acquire()
    first.release()
    assert second.acquire()
    second.release()


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    process = start_holder(tmp_path)
    lock = InstanceLock(tmp_path)
    assert not lock.acquire()
    end(process)
    assert lock.acquire()
    lock.release()


def test_another_data_folder_is_another_window(tmp_path: Path) -> None:
    process = start_holder(tmp_path / "one")
    try:
        other = InstanceLock(tmp_path / "two")
        assert other.acquire()
        assert other.channel_name != InstanceLock(tmp_path / "one").channel_name
        other.release()
    finally:
        end(process)


def test_the_channel_is_the_same_however_the_folder_is_spelled(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert InstanceLock(tmp_path / "link").channel_name == InstanceLock(tmp_path / "real").channel_name


@pytest.mark.parametrize("name", ["田中　太郎", "x" * 200, "it's 100% #1"])
def test_the_channel_name_is_short_and_plain(tmp_path: Path, name: str) -> None:
    channel = InstanceLock(tmp_path / name).channel_name
    assert channel.isascii() and len(channel) < 40


def test_without_a_place_for_a_lock_the_window_opens_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    lock = InstanceLock(tmp_path / "file")
    assert lock.acquire()
    lock.release()
