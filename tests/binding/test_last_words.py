"""What ggml says before it ends the process is found at the next start, beside where each thread was."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dflash_desktop.base.run_marker import RunMarker
from dflash_desktop.binding.failures import BadArgument
from dflash_desktop.binding.native import Library

DIE = """
import ctypes, sys
from pathlib import Path
from dflash_desktop.base.run_marker import RunMarker
from dflash_desktop.binding.native import Library
marker = RunMarker(Path(sys.argv[1]), "1.2.3")
marker.begin()
library = Library()
library.write_aborts_to(marker.trace_path)
base = next(library.path.parent.glob("*ggml-base*"))
ctypes.CDLL(str(base)).ggml_abort(b"mul_mat.c", 7, b"no kernel for type %d", 42)
"""


def test_the_last_words_of_ggml_are_in_the_trace_of_the_lost_run(tmp_path: Path) -> None:
    folder = tmp_path / "日志 folder"
    done = subprocess.run([sys.executable, "-c", DIE, str(folder)], capture_output=True, check=False)
    assert done.returncode != 0
    assert b"no kernel for type 42" in done.stderr
    marker = RunMarker(folder, "2.0")
    (lost,) = marker.begin()
    marker.end()
    assert "mul_mat.c:7: no kernel for type 42" in lost.trace
    assert "Fatal Python error" in lost.trace


def test_a_path_that_is_too_long_is_refused(library: Library) -> None:
    with pytest.raises(BadArgument, match="too long"):
        library.write_aborts_to(Path("x" * 2000))
