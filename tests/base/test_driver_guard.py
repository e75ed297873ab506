"""A driver that ends the process does so once: the next start leaves drivers out, the one after tries them again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dflash_desktop.base.driver_guard import are_drivers_left_out, starting_drivers

ENDS = """
import os, sys
from pathlib import Path
from dflash_desktop.base.driver_guard import starting_drivers
with starting_drivers(Path(sys.argv[1])):
    print(os.environ.get("VK_ICD_FILENAMES"), os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
    if "VK_ICD_FILENAMES" not in os.environ or sys.argv[2] == "always":
        os._exit(9)  # as a crash does: nothing is tidied up
"""


def start(folder: Path, how: str = "drivers") -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", ENDS, str(folder), how], capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout.strip()


def test_every_second_start_is_spared_while_the_driver_is_broken(tmp_path: Path) -> None:
    assert [start(tmp_path) for _ in range(4)] == [(9, "None None"), (0, "none.json -1")] * 2


def test_a_start_that_ends_for_another_reason_does_not_keep_the_drivers_out(tmp_path: Path) -> None:
    assert start(tmp_path)[0] == 9
    assert start(tmp_path, "always") == (9, "none.json -1")
    assert start(tmp_path)[1] == "None None"


def test_what_was_set_before_is_set_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.delenv("VK_ICD_FILENAMES", raising=False)
    start(tmp_path)
    with starting_drivers(tmp_path):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "-1"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"
    assert "VK_ICD_FILENAMES" not in os.environ
    assert are_drivers_left_out(tmp_path)


def test_a_start_without_trouble_leaves_nothing_behind(tmp_path: Path) -> None:
    with starting_drivers(tmp_path), starting_drivers(tmp_path):  # another program of ours at the same time
        assert "VK_ICD_FILENAMES" not in os.environ
    assert list(tmp_path.iterdir()) == []
    assert not are_drivers_left_out(tmp_path)


def test_an_error_is_no_end_of_the_process(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no"), starting_drivers(tmp_path):
        raise OSError("no")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": "x"}', b'{"pid": 1e400, "leaves_out": 1}'])
def test_a_note_that_is_none_is_forgotten(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "drivers-1.json").write_bytes(content)
    with starting_drivers(tmp_path):
        assert "VK_ICD_FILENAMES" not in os.environ
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_keeps_nobody_from_starting(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with starting_drivers(tmp_path / "file" / "below"):
        pass
