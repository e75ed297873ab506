"""Builds what a person on Windows installs, on Windows: wheel, frozen folder, smoke run, portable zip, installer.

    py -3.12 installers\\windows\\build.py [--out FOLDER] [--wheel FILE] [--gpu vulkan|none] [--backend FILE]...
                                             [--feed URL] [--sign "COMMAND {file}"]

Needed: Visual Studio 2022's C++ tools, a developer prompt (or the workflow file), NSIS 3.08 or newer with makensis on
PATH, and for --gpu vulkan (the default: the backend for graphics cards of every maker lies inside, and is passed over
where there is no driver) the Vulkan SDK 1.4.309 or newer, which sets VULKAN_SDK. A wheel that is given must have been
built with DFLASH_VULKAN=ON then. --sign signs the two programs and the installer between the steps.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMON = ROOT / "installers" / "common"
NAME = "dflash-desktop"
OLDEST_HEADERS = 309  # of Vulkan 1.4: what ggml's backend is written for


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist" / "windows")
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--gpu", choices=("vulkan", "none"), default="vulkan")
    parser.add_argument("--backend", type=Path, action="append", default=[])
    parser.add_argument("--feed", default="", help="where new versions are announced")
    parser.add_argument("--sign", help="a command that signs {file}")
    arguments = parser.parse_args()
    headers = _vulkan_headers() if arguments.gpu == "vulkan" else ""
    out: Path = arguments.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    python = _environment(out / "env")
    wheel = arguments.wheel or _build_wheel(python, out / "wheel", arguments.gpu)
    constraints = str(ROOT / ".ci" / "constraints.txt")
    _pip(python, "install", "-c", constraints, str(wheel), "-r", str(COMMON / "requirements.txt"))
    library_folder = _printed(python, "from dflash_desktop.base.paths import library_folder; print(library_folder())")
    for backend in arguments.backend:
        shutil.copy(backend, library_folder)
    if headers and not any(Path(library_folder).glob("*ggml-vulkan*")):
        sys.exit(f"{wheel} has no Vulkan backend: build it with DFLASH_VULKAN=ON, or say --gpu none")
    freeze = [str(python), str(COMMON / "freeze.py"), "--out", str(out), "--feed", arguments.feed]
    subprocess.run([*freeze, "--vulkan-headers", headers], check=True)
    folder = out / NAME
    for program in (folder / f"{NAME}.exe", folder / "dflash.exe"):
        _sign(arguments.sign, program)
    # The starter for the terminal: that of the window prints nothing.
    subprocess.run([sys.executable, str(COMMON / "smoke.py"), str(folder / "dflash.exe")], check=True)
    version = _printed(python, "from dflash_desktop import __version__; print(__version__)")
    installer = out / f"DFlash-Desktop-{version}-windows-x86_64.exe"
    defines = {
        "PAYLOAD": folder,
        "VERSION": version,
        "OUT": installer,
        "LICENSE": ROOT / "resources" / "licences" / "LICENSE.txt",
        "ICON": out / "work" / f"{NAME}.ico",
    }
    script = ROOT / "installers" / "windows" / "dflash.nsi"
    subprocess.run(
        ["makensis", "-V2", "-WX", *(f"-D{name}={value}" for name, value in defines.items()), str(script)], check=True
    )
    _sign(arguments.sign, installer)
    archive = _portable_zip(folder, out / f"DFlash-Desktop-{version}-windows-x86_64-portable")
    for artefact in (installer, archive):
        shutil.copyfile(out / f"{NAME}.cdx.json", artefact.with_name(artefact.name + ".cdx.json"))
        print(f"{artefact.name}: {artefact.stat().st_size / 1e6:.0f} MB")
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in (installer, archive)]
    (out / "SHA256SUMS").write_text("\n".join(lines) + "\n", encoding="ascii")


def _environment(folder: Path) -> Path:
    venv.create(folder, clear=True, with_pip=True)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def _vulkan_headers() -> str:
    """The version of the Vulkan SDK's headers, "1.4.309". Ends the program where there are none, or older ones."""
    sdk = os.environ.get("VULKAN_SDK", "")
    found = next(Path(sdk).glob("[Ii]nclude/vulkan/vulkan_core.h"), None) if sdk else None
    text = found.read_text("utf-8") if found is not None else ""
    release = re.search(r"define VK_HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION\(0, (\d+), (\d+), ", text)
    patch = re.search(r"define VK_HEADER_VERSION (\d+)", text)
    if release is None or patch is None or int(patch[1]) < OLDEST_HEADERS:
        sys.exit(f"The Vulkan SDK 1.4.{OLDEST_HEADERS} or newer is needed (it sets VULKAN_SDK), or --gpu none.")
    return f"{release[1]}.{release[2]}.{patch[1]}"


def _build_wheel(python: Path, folder: Path, gpu: str) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    os.environ["DFLASH_CPU"] = "all"
    os.environ["DFLASH_VULKAN"] = "ON" if gpu == "vulkan" else "OFF"
    options = ["--no-deps", "-C", "build-dir=.build/{wheel_tag}-all", "-w", str(folder)]
    _pip(python, "wheel", *options, str(ROOT))
    return next(folder.glob("*.whl"))


def _pip(python: Path, *arguments: str) -> None:
    subprocess.run([str(python), "-m", "pip", *arguments], check=True)


def _printed(python: Path, program: str) -> str:
    return subprocess.run([str(python), "-c", program], check=True, capture_output=True, text=True).stdout.strip()


def _sign(command: str | None, file: Path) -> None:
    if command:
        subprocess.run(command.format(file=f'"{file}"'), check=True, shell=True)


def _portable_zip(folder: Path, name: Path) -> Path:
    """The folder with the marker that keeps all data beside the program."""
    marker = folder / "portable.txt"
    marker.write_text("DFlash Desktop keeps its data in the folder `data` beside this file.\n", encoding="ascii")
    try:
        return Path(shutil.make_archive(str(name), "zip", folder.parent, folder.name))
    finally:
        marker.unlink()


if __name__ == "__main__":
    main()
