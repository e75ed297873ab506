"""The installers' sources agree with the project: version, file types, what is collected, what the desktop is told."""

from __future__ import annotations

import ast
import configparser
import re
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NAME = "dflash-desktop"


def desktop_entry(root: Path) -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(root / "resources" / "desktop" / f"{NAME}.desktop", encoding="utf-8")
    return parser["Desktop Entry"]


def project(root: Path) -> dict[str, list[str]]:
    return dict(tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"])


def test_entry_window_icon_and_file_type_have_one_name(root: Path) -> None:
    entry = desktop_entry(root)
    app = (root / "app/dflash_desktop/ui/app.py").read_text("utf-8")
    assert entry["Icon"] == entry["StartupWMClass"] == NAME
    assert f'setDesktopFileName("{NAME}")' in app
    assert (root / "resources" / "icons" / f"{NAME}.svg").is_file()
    assert entry["Exec"] == f"{NAME} %F"
    mime = ET.parse(root / "resources" / "desktop" / f"{NAME}.mime.xml").getroot()
    (kind,) = mime
    assert entry["MimeType"] == f"{kind.attrib['type']};"
    assert [node.attrib["pattern"] for node in kind if node.tag.endswith("glob")] == ["*.gguf"]


def test_the_metainfo_names_this_version_and_entry(root: Path, version: str) -> None:
    info = ET.parse(root / "resources/desktop/org.dflash.desktop.metainfo.xml").getroot()
    assert info.findtext("launchable") == f"{NAME}.desktop"
    assert info.findtext("project_license") == "Apache-2.0"
    releases = info.find("releases")
    assert releases is not None
    assert releases[0].attrib["version"] == version


@pytest.mark.parametrize(
    ("tool", "arguments", "file"),
    [
        ("desktop-file-validate", [], "resources/desktop/dflash-desktop.desktop"),
        ("appstreamcli", ["validate", "--no-net"], "resources/desktop/org.dflash.desktop.metainfo.xml"),
    ],
)
def test_the_desktops_own_checkers_agree(root: Path, tool: str, arguments: list[str], file: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    done = subprocess.run([tool, *arguments, str(root / file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def shell_scripts(root: Path) -> list[Path]:
    return [
        path
        for path in (root / "installers").rglob("*")
        if path.is_file() and path.read_bytes()[:60].startswith((b"#!/usr/bin/env bash", b"#!/bin/sh"))
    ]


def test_shell_scripts_are_clean(root: Path) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    scripts = shell_scripts(root)
    assert len(scripts) >= 5
    done = subprocess.run(["shellcheck", *map(str, scripts)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def imported_packages(folder: Path) -> set[str]:
    """Top-level modules that our package imports, its own and Python's left out."""
    found: set[str] = set()
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names) - {"dflash_desktop"}


def test_everything_imported_is_required_and_so_is_shipped(root: Path) -> None:
    """A package that only happens to be installed here would be missing from a frozen program."""
    required = {canonicalize_name(Requirement(text).name) for text in project(root)["dependencies"]}
    waiting = list(required)
    while waiting:
        try:
            needs = metadata.requires(waiting.pop()) or []
        except metadata.PackageNotFoundError:
            continue
        for need in map(Requirement, needs):
            name = canonicalize_name(need.name)
            if name not in required and (need.marker is None or need.marker.evaluate({"extra": ""})):
                required.add(name)
                waiting.append(name)
    owners = metadata.packages_distributions()
    unshipped = {
        module
        for module in imported_packages(root / "app" / "dflash_desktop")
        if module in owners and not required & {canonicalize_name(owner) for owner in owners[module]}
    }
    assert unshipped == set()


def test_what_is_left_out_of_the_frozen_program_is_never_imported(root: Path) -> None:
    spec = (root / "installers/common/dflash.spec").read_text("utf-8")
    tree = ast.parse(spec)
    (unused,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "UNUSED"
    )
    imported: set[str] = set()
    for file in (root / "app" / "dflash_desktop").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                imported.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module)
                imported.update(f"{node.module}.{alias.name}" for alias in node.names)
    # readline is used where there is one; GNU's may not be shipped in a program under another licence than its own.
    assert {name for name in imported for out in unused if name == out or name.startswith(f"{out}.")} <= {"readline"}


def test_the_package_names_what_the_folder_takes_from_the_system(root: Path) -> None:
    """Each library that check_folder.py lets through is brought by a package in the control file."""
    control = (root / "installers/linux/deb/control").read_text("utf-8")
    check = (root / "installers/linux/check_folder.py").read_text("utf-8")
    packages = {
        "stdc\\+\\+": "libstdc++6", "gcc_s": "libgcc-s1", "z": "zlib1g", "expat": "libexpat1", "GL": "libgl1",
        "EGL": "libegl1", "X11": "libx11-6", "X11-xcb": "libx11-xcb1", "xcb": "libxcb1", "fontconfig": "libfontconfig1",
        "freetype": "libfreetype6", "dbus-1": "libdbus-1-3", "wayland-client": "libwayland-client0",
        "wayland-cursor": "libwayland-cursor0", "wayland-egl": "libwayland-egl1", "vulkan": "libvulkan1",
    }  # fmt: skip
    written = re.findall(r'r"(.*?)"', check[check.index("FROM_THE_SYSTEM") : check.index("\n)\n")])
    names = set(re.split(r"[|()]", "".join(written)))
    for library, package in packages.items():
        assert library in names
        assert re.search(rf"\b{re.escape(package)}(?=[ ,\n])", control), package


def test_the_uninstaller_says_where_the_data_is(root: Path) -> None:
    script = root / "installers/linux/deb/postrm"
    said = subprocess.run(["sh", str(script), "remove"], capture_output=True, text=True, check=True).stdout
    for folder in ("share", "config", "state", "cache"):
        assert re.search(rf"~/\.(local/)?{folder}/{NAME}", said)
    assert subprocess.run(["sh", str(script), "upgrade"], capture_output=True, text=True, check=True).stdout == ""


def test_the_constraints_pin_what_freezes_too(root: Path) -> None:
    for line in (root / "installers/common/requirements.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            assert re.match(r"^[\w.\-\[\]]+==[\d.]+", line), line
