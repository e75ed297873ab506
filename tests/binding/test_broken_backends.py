"""A GPU backend that cannot be loaded costs that backend and nothing else: the program starts, on the processor."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dflash_desktop.base.paths import library_folder

COMPILER = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or COMPILER is None, reason="builds shared libraries for Linux"
)

# As the window and the terminal do it, in a process of its own: what goes wrong may end it.
PROGRAM = """
import ctypes, os, sys
library = ctypes.CDLL(os.path.join(sys.argv[1], "libdflash.so"))
library.dflash_last_error.restype = ctypes.c_char_p
status = library.dflash_start(sys.argv[1].encode())
told = library.dflash_last_error().decode() if status else ""
n_devices = ctypes.c_int32()
library.dflash_device_count(ctypes.byref(n_devices))
print("start", status, "devices", n_devices.value, told)
"""

# What a driver package half removed, one of another version, or a download cut short looks like.
BROKEN = {
    "no library at all": None,
    "an empty library": "int nothing;",
    "a driver library that is missing": "extern int driver(void); int ggml_backend_init(void) { return driver(); }",
    "no device": "void * ggml_backend_init(void) { return 0; }",
    "it says that it does not fit": (
        "int ggml_backend_score(void) { return 0; } void * ggml_backend_init(void) { return 0; }"
    ),
    "another version of the interface": (
        "static struct { int version; void * rest[16]; } backend = { 9999 };"
        "void * ggml_backend_init(void) { return &backend; }"
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "lib ü"
    shutil.copytree(library_folder(), folder)
    return folder


def add(folder: Path, name: str, source: str | None, tmp_path: Path) -> None:
    library = folder / f"libggml-{name}.so"
    if source is None:
        library.write_text("<html>404 Not Found</html>")
        return
    code = tmp_path / "broken.c"
    code.write_text(source)
    more = []
    if "driver(" in source:
        (tmp_path / "driver.c").write_text("int driver(void) { return 0; }")
        driver = tmp_path / "libdriver-none.so.1"
        build = [str(COMPILER), "-shared", "-fPIC", f"-Wl,-soname,{driver.name}", str(tmp_path / "driver.c")]
        subprocess.run([*build, "-o", str(driver)], check=True)
        more = [str(driver)]
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-o", str(library), str(code), *more], check=True)
    for driver in tmp_path.glob("libdriver-none*"):
        driver.unlink()


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_gpu_backend_is_passed_over(folder: Path, tmp_path: Path, kind: str) -> None:
    for name in ("cuda", "vulkan"):
        add(folder, name, BROKEN[kind], tmp_path)
    done = subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM, str(folder)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("start 0 devices 1"), done.stdout


def test_a_driver_that_ends_the_process_does_so_once(folder: Path, tmp_path: Path) -> None:
    """A backend that aborts in its driver, as long as the driver is there; the program as it opens the library."""
    add(
        folder,
        "vulkan",
        '#include <stdlib.h>\nvoid * ggml_backend_init(void) { if (!getenv("VK_DRIVER_FILES")) abort(); return 0; }',
        tmp_path,
    )
    program = (
        "import sys; from pathlib import Path; from dflash_desktop.binding.native import Library\n"
        "from dflash_desktop.engine.device_users import driver_problems\n"
        "devices = Library(Path(sys.argv[1], 'libdflash.so')).devices()\n"
        "print(len(devices), *(found.kind for found in driver_problems([])))"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    ends = [
        subprocess.run(
            [sys.executable, "-c", program, str(folder)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        for _ in range(3)
    ]
    assert [done.returncode for done in ends] == [-signal.SIGABRT, 0, -signal.SIGABRT], ends[1].stderr
    assert ends[1].stdout.split() == ["1", "left_out"]


def test_without_any_backend_the_start_says_so(folder: Path) -> None:
    for library in folder.glob("libggml-cpu*"):
        library.unlink()
    done = subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM, str(folder)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "start 0" not in done.stdout and "CPU" in done.stdout
