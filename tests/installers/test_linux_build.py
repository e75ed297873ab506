"""The real thing: build.sh here, its smoke run, and Debian's own checker. A quarter of an hour of CPU time."""

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
    assert not {"pip", "setuptools", "cyclonedx-python-lib"} & names


def test_debian_finds_no_error(built: Path) -> None:
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    (package,) = built.glob("*.deb")
    done = subprocess.run(
        ["lintian", "--fail-on", "error,warning", str(package)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_folder_runs_from_elsewhere_and_read_only(built: Path, tmp_path: Path, root: Path) -> None:
    elsewhere = tmp_path / "another place" / "dflash-desktop"
    shutil.copytree(built / "dflash-desktop", elsewhere, symlinks=True)
    subprocess.run(["chmod", "-R", "a-w", str(elsewhere)], check=True)
    try:
        smoke = [sys.executable, str(root / "installers/common/smoke.py"), str(elsewhere / "dflash-desktop")]
        done = subprocess.run(smoke, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(elsewhere)], check=True)
