"""B150: the real thing. build.sh here, its smoke run, and Debian's own checker. A quarter of an hour of CPU time."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.tree import copy_of_the_tree

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/usr/bin/dpkg-deb").exists(), reason="builds a Debian package"),
]
LIMIT_S = 3600
QEMU = shutil.which("qemu-x86_64-static")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, real_environment: dict[str, str], root: Path) -> Path:
    """dist/linux of a copy of the tree: our own build folder stays as it is."""
    tree = copy_of_the_tree(root, tmp_path_factory.mktemp("a b") / "ü")
    command = ["bash", str(tree / "installers/linux/build.sh"), "--formats", "folder deb tar"]
    done = subprocess.run(command, env=real_environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "smoke: all of it works" in done.stdout
    return tree / "dist" / "linux"


def test_the_bill_of_materials_lists_the_parts(built: Path) -> None:
    (artefact,) = built.glob("*.deb")
    bill = json.loads(artefact.with_name(f"{artefact.name}.cdx.json").read_text("utf-8"))
    names = {component["name"] for component in bill["components"]}
    assert bill["specVersion"] == "1.6"
    assert {"ggml", "Python", "numpy", "pyside6-essentials", "PyInstaller bootloader"} <= names
    assert {"Vulkan-Headers", "SPIRV-Headers"} <= names  # compiled into the backend for graphics cards
    assert "libvulkan1" not in names  # the system's
    assert not {"pip", "setuptools", "cyclonedx-python-lib"} & names


def test_debian_finds_no_error(built: Path) -> None:
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    (package,) = built.glob("*.deb")
    done = subprocess.run(
        ["lintian", "--fail-on", "error,warning", str(package)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_b152_only_the_backends_of_newer_processors_hold_code_for_them(built: Path) -> None:
    folder = built / "dflash-desktop" / "_internal" / "dflash_desktop" / "binding" / "lib"
    wide = {}
    for library in folder.glob("*.so"):
        code = subprocess.run(["objdump", "-d", str(library)], capture_output=True, text=True, check=True).stdout
        wide[library.name] = ("%ymm" in code, "%zmm" in code)
    for name in ("libdflash.so", "libggml.so", "libggml-base.so", "libggml-cpu-x64.so", "libggml-cpu-sse42.so"):
        assert wide[name] == (False, False), name
    assert wide["libggml-cpu-haswell.so"] == (True, False)
    assert wide["libggml-cpu-zen4.so"] == (True, True)


def test_graphics_cards_are_driven_with_all_that_their_shader_compiler_knows(built: Path) -> None:
    """The backend lies inside, without its loader, and has code for tensor cores and integer products."""
    inside = built / "dflash-desktop" / "_internal"
    module = inside / "dflash_desktop" / "binding" / "lib" / "libggml-vulkan.so"
    content = module.read_bytes()
    for extension in (b"SPV_KHR_cooperative_matrix", b"SPV_NV_cooperative_matrix2", b"SPV_KHR_integer_dot_product"):
        assert extension in content, extension
    assert list(inside.rglob("libvulkan.so*")) == []


@pytest.mark.skipif(QEMU is None, reason="qemu-user-static is not installed")
@pytest.mark.parametrize(("cpu", "code"), [("Conroe", 1), ("Nehalem", 0)])
def test_b152_the_program_starts_on_the_declared_minimum_and_says_what_is_below_it(
    built: Path, cpu: str, code: int
) -> None:
    program = built / "dflash-desktop" / "dflash-desktop"
    # Its starter would start itself once more, outside of the emulation; these say that it has done so already.
    environment = {
        "HOME": str(built),
        "LD_LIBRARY_PATH": str(program.parent / "_internal"),
        "_PYI_ARCHIVE_FILE": str(program),
        "_PYI_PARENT_PROCESS_LEVEL": "-1",
        "_PYI_LINUX_PROCESS_NAME": program.name,
    }
    command = [str(QEMU), "-cpu", cpu, str(program), "--list-devices"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == code, done.stderr
    assert ("This processor lacks SSE4.1, SSE4.2, POPCNT" in done.stderr) == (code == 1)


def test_b150_the_folder_runs_from_elsewhere_and_read_only(built: Path, tmp_path: Path, root: Path) -> None:
    elsewhere = tmp_path / "another place" / "dflash-desktop"
    shutil.copytree(built / "dflash-desktop", elsewhere, symlinks=True)
    subprocess.run(["chmod", "-R", "a-w", str(elsewhere)], check=True)
    try:
        smoke = [sys.executable, str(root / "installers/common/smoke.py"), str(elsewhere / "dflash-desktop")]
        done = subprocess.run(smoke, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(elsewhere)], check=True)
