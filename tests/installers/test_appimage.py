"""The program at the front of the AppImage: it shows or unpacks what is behind it, and runs that as it was asked to."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SQUASHFUSE = Path("/usr/include/squashfuse/config.h")
pytestmark = [
    pytest.mark.skipif(shutil.which("mksquashfs") is None, reason="squashfs-tools is not installed"),
    pytest.mark.skipif(
        not SQUASHFUSE.is_file() or "FUSE_USE_VERSION 3" not in SQUASHFUSE.read_text(),
        reason="libsquashfuse-dev with libfuse 3 is not installed",
    ),
]

NOISE = random.Random(0).randbytes(3_000_000)
APP_RUN = """#!/bin/sh
echo "APPDIR=$APPDIR"; echo "APPIMAGE=$APPIMAGE"; echo "OWD=$OWD"
for word; do echo "<$word>"; done
cat "$APPDIR/sub/link"
exit 7
"""


@pytest.fixture(scope="module")
def image(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made by the very lines of build.sh."""
    folder = tmp_path_factory.mktemp("a b ü")
    content = folder / "AppDir"
    (content / "sub").mkdir(parents=True)
    (content / "AppRun").write_text(APP_RUN)
    (content / "AppRun").chmod(0o755)
    (content / "sub" / "file").write_bytes(b"inside\n" + NOISE)
    (content / "sub" / "link").symlink_to("file")
    script = (root / "installers/linux/build.sh").read_text("utf-8")
    lines = [
        re.sub(r"\s+\\\n\s+", " ", re.search(pattern, script)[0])  # type: ignore[index]
        for pattern in (r"mksquashfs .*", r"cc -std=c11 (?:.*\\\n)*.*", r"printf 'AI.*", r"cat .*>\"\$image\"")
    ]
    environment = {"tree": content, "out": folder, "runtime": folder / "runtime", "image": folder / "an image.AppImage"}
    environment["here"] = root / "installers/linux"
    made = subprocess.run(
        ["bash", "-euc", "\n".join(lines)],
        env={**os.environ, **{name: str(path) for name, path in environment.items()}},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    assert ": warning: " not in "".join(line for line in made.stderr.splitlines() if "statically linked" not in line)
    environment["image"].chmod(0o755)
    return environment["image"]


def run(image: Path, *arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [str(image), *arguments],
        cwd=cwd,
        env={**os.environ, "TMPDIR": str(cwd), **environment},
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("unpacks", ["0", "1"])
def test_it_runs_what_is_behind_it(image: Path, tmp_path: Path, unpacks: str) -> None:
    """Where nothing can be mounted both are the same."""
    done = run(image, "a b", "", "ü", cwd=tmp_path, APPIMAGE_EXTRACT_AND_RUN=unpacks)
    assert done.returncode == 7
    lines = done.stdout.split(b"\n", 7)
    assert lines[0].startswith(b"APPDIR=" + os.fsencode(tmp_path))
    assert lines[1:7] == [
        b"APPIMAGE=" + os.fsencode(image), b"OWD=" + os.fsencode(tmp_path), b"<a b>", b"<>", "<ü>".encode(), b"inside",
    ]  # fmt: skip
    assert lines[7] == NOISE


def test_unpacked_files_are_gone_after_the_run(image: Path, tmp_path: Path) -> None:
    assert run(image, "--appimage-extract-and-run", "x", cwd=tmp_path).stdout.count(b"<x>") == 1
    assert list(tmp_path.iterdir()) == []


def test_it_can_be_unpacked_and_its_offset_is_told(image: Path, tmp_path: Path) -> None:
    assert run(image, "--appimage-extract", cwd=tmp_path).stdout == b"squashfs-root\n"
    unpacked = tmp_path / "squashfs-root"
    assert (unpacked / "sub" / "link").readlink() == Path("file")
    assert (unpacked / "sub" / "file").read_bytes() == b"inside\n" + NOISE
    assert os.access(unpacked / "AppRun", os.X_OK)
    offset = int(run(image, "--appimage-offset", cwd=tmp_path).stdout)
    content = image.read_bytes()
    assert content[8:11] == b"AI\x02"
    assert content[offset : offset + 4] == b"hsqs"


def test_a_download_cut_short_is_said(image: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.AppImage"
    cut.write_bytes(image.read_bytes()[: int(run(image, "--appimage-offset", cwd=tmp_path).stdout) + 2_000_000])
    cut.chmod(0o755)
    for arguments in (["--appimage-extract", "x"], ["--appimage-extract-and-run"]):
        done = run(cut, *arguments, cwd=tmp_path)
        assert done.returncode == 127
        assert b"damaged. Download it again" in done.stderr
    assert not list(tmp_path.glob("dflash-desktop-*"))
