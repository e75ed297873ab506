"""B154: a checkout in a folder of any name, installed editable and as it is, used from elsewhere, and moved."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from support.tree import copy_of_the_tree

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the folders of an environment are named otherwise"),
]
LIMIT_S = 1800


class Checkout:
    """A copy of the tree and an environment that has all we need but ourselves."""

    def __init__(self, root: Path, folder: Path, environment: dict[str, str]) -> None:
        self.tree = copy_of_the_tree(root, folder / "a b" / "ü")
        self.environment_folder = folder / "environment"
        self._environment = {**environment, "PATH": f"{Path(sys.executable).parent}:{environment['PATH']}"}
        venv.create(self.environment_folder, with_pip=True)
        (site,) = self.environment_folder.glob("lib/python*/site-packages")
        # Packages only: files that end in .pth are not read there, so that no other installation of ours is found.
        (site / "packages.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", "utf-8")

    def install(self, *options: str) -> None:
        pip = [str(self.environment_folder / "bin" / "python"), "-m", "pip", "install", "-q", "--no-deps"]
        done = subprocess.run(
            [*pip, "--no-build-isolation", *options, str(self.tree)],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

    def run(self, *arguments: str, cwd: Path) -> str:
        program = self.environment_folder / "bin" / "dflash-desktop"
        done = subprocess.run(
            [str(program), *arguments],
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def works_from(self, cwd: Path) -> None:
        devices = json.loads(self.run("--list-devices", "--json", cwd=cwd))
        assert any(device["backend"] == "CPU" for device in devices)
        reply = json.loads(self.run("chat", "--prompt", "Say hello.", "--max-tokens", "4", "--json", cwd=cwd))
        assert reply["text"].strip()
        python = self.environment_folder / "bin" / "python"
        where = "from dflash_desktop.base.paths import library_folder; print(library_folder())"
        found = subprocess.run([str(python), "-c", where], cwd=cwd, capture_output=True, text=True, check=True).stdout
        assert str(self.environment_folder) in found or str(self.tree) in found


@pytest.fixture
def checkout(root: Path, tmp_path: Path, real_environment: dict[str, str]) -> Checkout:
    return Checkout(root, tmp_path, real_environment)


def test_b154_an_editable_install_works_from_elsewhere_and_again_after_a_move(
    checkout: Checkout, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    checkout.install("-e")
    checkout.works_from(elsewhere)
    moved = tmp_path / "moved ü"
    checkout.tree.rename(moved)
    checkout.tree = moved
    checkout.install("-e")  # CMake's cache names the old place: what is stale there is made anew
    checkout.works_from(elsewhere)


def test_b154_a_normal_install_needs_the_checkout_no_more(checkout: Checkout, tmp_path: Path) -> None:
    checkout.install()
    checkout.tree.rename(tmp_path / "gone")
    checkout.works_from(tmp_path)
