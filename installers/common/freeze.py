"""Freezes the installed wheel to one folder that needs no Python, with its licences and its bill of materials.

    python freeze.py --out FOLDER [--feed URL] [--vulkan-headers VERSION]

Run it in an environment that holds the wheel of dflash-desktop and requirements.txt, and nothing else: what is
installed decides what is shipped. Makes FOLDER/dflash-desktop and FOLDER/dflash-desktop.cdx.json.

--feed is where releases are announced (app/dflash_desktop/hub/releases.py says in which form); without it the program
says that it cannot look. --vulkan-headers is what a Vulkan backend inside was compiled with, for the bill of materials.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import icons
import licences
import sbom
from parts import shipped_parts, unshipped_modules

HERE = Path(__file__).parent
NAME = "dflash-desktop"
_EPOCH = "1764547200"  # 2025-12-01: same inputs, same bytes, unless the caller says otherwise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--feed", default="")
    parser.add_argument("--vulkan-headers", default="")
    arguments = parser.parse_args()
    out: Path = arguments.out.absolute()
    os.environ.setdefault("SOURCE_DATE_EPOCH", _EPOCH)
    work = out / "work"
    shutil.rmtree(out / NAME, ignore_errors=True)
    _run_pyinstaller(out, work)
    folder = out / NAME
    if arguments.feed:
        (resource_folder(folder) / "releases.json").write_text(json.dumps({"feed": arguments.feed}) + "\n", "utf-8")
    parts = licences.with_texts(shipped_parts(folder, arguments.vulkan_headers))
    texts = licences.third_party_text(parts)
    installed = resource_folder(folder) / "licences"
    installed.mkdir(parents=True, exist_ok=True)
    (installed / "third-party.txt").write_text(texts, encoding="utf-8", newline="\n")
    bill = sbom.bill_of_materials(parts, folder)
    (out / f"{NAME}.cdx.json").write_text(bill, encoding="utf-8", newline="\n")
    shutil.copyfile(out / f"{NAME}.cdx.json", installed / f"{NAME}.cdx.json")
    n_bytes = sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{folder}: {n_bytes / 1e6:.0f} MB, {len(parts)} parts, {len(texts) / 1e3:.0f} kB of licence texts")


def resource_folder(folder: Path) -> Path:
    """The program's resources in the frozen folder."""
    return folder / "_internal" / "dflash_desktop" / "resources"


def _run_pyinstaller(out: Path, work: Path) -> None:
    work.mkdir(parents=True, exist_ok=True)
    for name in ("dflash.spec", "start.py", "processor_hook.py"):
        shutil.copyfile(HERE / name, work / name)
    (work / "unshipped.txt").write_text("\n".join(unshipped_modules()), encoding="utf-8")
    source = Path(str(resources.files("dflash_desktop").joinpath("resources", "icons", f"{NAME}.svg")))
    icons.write_ico(source, work / f"{NAME}.ico")
    # A fixed hash seed: PyInstaller's archives follow the order of sets.
    environment = {**os.environ, "PYTHONHASHSEED": "1", "QT_QPA_PLATFORM": "offscreen"}
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"]
    command += ["--distpath", str(out), "--workpath", str(work / "build"), str(work / "dflash.spec")]
    subprocess.run(command, check=True, env=environment)


if __name__ == "__main__":
    main()
