"""The engine compiles for Windows without a warning of ours, loads there and lists a device (under wine)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from installers.test_windows import COMPILER, WINE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(None in (COMPILER, WINE), reason="needs mingw-w64 and wine64"),
    pytest.mark.skipif(shutil.which("x86_64-w64-mingw32-g++-posix") is None, reason="needs the -posix compilers"),
]


def test_the_engine_runs_on_windows(root: Path, tmp_path: Path, real_environment: dict[str, str]) -> None:
    tools = f"{Path(sys.executable).parent}:{real_environment['PATH']}"  # CMake and Ninja come with the test extra
    environment = {**real_environment, "PATH": tools, "DFLASH_STRICT": "ON", "DFLASH_STARTER": "OFF"}
    script = str(root / "installers/windows/cross.sh")
    done = subprocess.run(
        ["bash", script, str(tmp_path), "base"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    lib = tmp_path / "dflash_desktop" / "binding" / "lib"
    libraries = {"dflash.dll", "ggml.dll", "ggml-base.dll", "ggml-cpu.dll", "ggml-vulkan.dll"}
    assert libraries <= {path.name for path in lib.iterdir()}
    probe = tmp_path / "probe.exe"
    source = Path(__file__).with_name("windows_probe.c")
    subprocess.run(
        [str(COMPILER), "-Wall", "-Wextra", f"-I{root / 'native' / 'include'}", str(source), "-o", str(probe)],
        check=True,
    )
    ran = subprocess.run(
        [str(WINE), str(probe), "Z:" + str(lib).replace("/", "\\")],
        env={**os.environ, "WINEPREFIX": str(tmp_path / "wine"), "WINEDEBUG": "-all", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "devices 1" in ran.stdout  # wine's Vulkan is older than the backend takes: passed over
