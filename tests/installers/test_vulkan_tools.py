"""Where the packages that the Vulkan backend is compiled with come from, and how the scripts are asked for it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="shell scripts for Linux")

DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_CODENAME=bookworm\nID=debian\n'
SECURITY = "deb http://security.example bookworm-security main\n"
DEB822 = """# as an image brings it
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/some.gpg

Types: deb
URIs: http://mirror.example/security
Suites: bookworm-security
Components: main
"""


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    """An /etc of a Debian 12 without any source, and an apt that only says what it was told."""
    folder = tmp_path / "etc"
    (folder / "apt" / "sources.list.d").mkdir(parents=True)
    (folder / "os-release").write_text(DEBIAN)
    fake = tmp_path / "bin" / "apt-get"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\nfor word; do echo "$word"; done >"${0%/*}/said"; exit 5\n')
    fake.chmod(0o755)
    return folder


def fetch(root: Path, etc: Path, out: Path) -> subprocess.CompletedProcess[str]:
    path = f"{etc.parent / 'bin'}:{os.environ['PATH']}"
    script = root / "installers/common/vulkan_tools.sh"
    return subprocess.run(
        ["bash", str(script), str(out)],
        env={**os.environ, "PATH": path, "DFLASH_ETC": str(etc)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("file", "content", "source"),
    [
        ("sources.list.d/debian.sources", DEB822, "[signed-by=/usr/share/keyrings/some.gpg] http://mirror.example/debian"),
        ("sources.list.d/debian.sources", DEB822.replace("Suites: bookworm ", "Suites: "), ""),
        ("sources.list", f"{SECURITY}deb https://a.example/debian bookworm main\n", "https://a.example/debian"),
        (
            "sources.list.d/a.list",
            (
                "#deb http://old.example bookworm main\n"
                "deb [arch=amd64 signed-by=/k.gpg] http://b.example/debian bookworm main\n"
            ),
            "[signed-by=/k.gpg] http://b.example/debian",
        ),
        ("sources.list.d/other.list", "deb http://other.example/apt stable main\n", ""),
    ],
)  # fmt: skip
def test_packages_come_from_the_machine_s_own_mirror_and_keyring(
    root: Path, etc: Path, tmp_path: Path, file: str, content: str, source: str
) -> None:
    (etc / "apt" / file).write_text(content)
    out = tmp_path / "a b"
    done = fetch(root, etc, out)
    if not source:
        assert (done.returncode, "no bookworm" in done.stderr) == (1, True)
        assert not (tmp_path / "bin" / "said").exists()
        return
    assert done.returncode == 5  # of the apt above: an error is not passed over
    key = "" if source.startswith("[") else "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
    assert (out / "apt" / "sources.list").read_text() == f"deb {key}{source} trixie main\n"
    said = (tmp_path / "bin" / "said").read_text().splitlines()
    assert f"Dir::Etc::sourcelist={out / 'apt' / 'sources.list'}" in said
    assert not any("llow" in word or "nsecure" in word or "unauthenticated" in word for word in said)
    assert not (out / "complete").exists()


def test_another_system_is_told_what_to_install(root: Path, etc: Path, tmp_path: Path) -> None:
    (etc / "os-release").write_text("ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=jammy\n")
    done = fetch(root, etc, tmp_path / "out")
    assert done.returncode == 1
    assert "1.4.309" in done.stderr and "glslc" in done.stderr


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("linux/build.sh", ["--gpu", "cuda"]),
        ("linux/build.sh", ["--gpus", "none"]),
        ("common/backend.sh", ["metal", "out"]),
        ("common/backend.sh", ["cuda", "out", "--windows"]),
    ],
)
def test_what_cannot_be_made_is_refused_at_once(root: Path, tmp_path: Path, script: str, arguments: list[str]) -> None:
    command = ["bash", str(root / "installers" / script), *arguments]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_the_package_recommends_the_loader_and_a_driver(root: Path) -> None:
    """A card works after `apt install ./FILE`; where recommendations are left out the program starts all the same."""
    fields = dict(
        line.split(": ", 1) for line in (root / "installers/linux/deb/control").read_text().splitlines() if ": " in line
    )
    recommended = [part.strip() for part in fields["Recommends"].split(",")]
    assert "libvulkan1" in recommended
    assert "mesa-vulkan-drivers | vulkan-icd" in recommended  # NVIDIA's own driver is one, too
    assert "vulkan" not in fields["Depends"]


@pytest.mark.parametrize(
    ("release", "patch", "version"),
    [("0, 1, 4", "309", "1.4.309"), ("0, 1, 4", "341", "1.4.341"), ("0, 1, 3", "239", ""), ("", "", "")],
)
def test_the_windows_build_wants_an_sdk_that_is_new_enough(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str, patch: str, version: str
) -> None:
    spec = importlib.util.spec_from_file_location("windows_build", root / "installers/windows/build.py")
    assert spec is not None and spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    monkeypatch.setenv("VULKAN_SDK", str(tmp_path))
    if release:
        header = tmp_path / "Include" / "vulkan" / "vulkan_core.h"
        header.parent.mkdir(parents=True)
        header.write_text(
            f"// Version of this file\n#define VK_HEADER_VERSION {patch}\n\n"
            f"#define VK_HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION({release}, VK_HEADER_VERSION)\n"
        )
    if version:
        assert build._vulkan_headers() == version
    else:
        with pytest.raises(SystemExit, match=r"1\.4\.309 or newer"):
            build._vulkan_headers()
