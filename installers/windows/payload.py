"""Lays out on Linux what a Windows machine gets: our package, every wheel that it needs for Windows, two starters.

    python payload.py --native FOLDER --out FOLDER [--python-zip FILE]

--native is the output of cross.sh. --python-zip is the embeddable Python of python.org (python-3.12.*-embed-amd64.zip,
12 MB; not in a package registry): with it the payload is complete, without it everything but Python is there. The
release for Windows is frozen on Windows (build.py); this is how its parts are checked, measured and packed elsewhere.

Needs uv (pip install uv), PySide6 (draws the icon) and Debian's gcc-mingw-w64-x86-64.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PYTHON = "3.12"
UNUSED = (  # as installers/common/dflash.spec leaves them out
    "PySide6/qml", "PySide6/resources", "PySide6/typesystems", "PySide6/include", "PySide6/metatypes",
    "PySide6/translations", "PySide6/Qt6Quick*.dll", "PySide6/Qt6Qml*.dll", "PySide6/Qt6Pdf*.dll",
    "PySide6/Qt6Designer*.dll", "PySide6/Qt6Labs*.dll", "PySide6/Qt6VirtualKeyboard*.dll", "PySide6/opengl32sw.dll",
    "PySide6/*.exe", "PySide6/*.pyi", "PySide6/*.lib", "PySide6/plugins/qmltooling",
    "PySide6/plugins/platforminputcontexts", "PySide6/plugins/designer", "PySide6/plugins/qmllint", "PySide6/QtQml.*",
    "PySide6/QtQuick*", "PySide6/QtDesigner*", "PySide6/QtHelp*", "PySide6/QtSql*", "PySide6/plugins/sqldrivers",
    "PySide6/scripts", "PySide6/doc", "PySide6/glue", "PySide6/support", "numpy/tests", "numpy/*/tests", "numpy/f2py",
    "pyqtgraph/examples",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--native", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--python-zip", type=Path)
    arguments = parser.parse_args()
    out: Path = arguments.out.absolute()
    shutil.rmtree(out, ignore_errors=True)
    site = out / "_internal" / "lib"
    site.mkdir(parents=True)
    _unpack_wheels(site)
    _lay_package(site, arguments.native)
    for pattern in UNUSED:
        for path in site.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    _build_starters(out)
    if arguments.python_zip:
        _lay_python(out / "_internal" / "python", arguments.python_zip)
    n_bytes = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    print(f"{out}: {n_bytes / 1e6:.0f} MB{'' if arguments.python_zip else ', without Python'}")


def _unpack_wheels(site: Path) -> None:
    """Exactly the tested versions, as wheels for Windows: uv reads the requirements as Windows would, pip cannot."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    command = ["uv", "pip", "install", "-q", "--target", str(site), "--only-binary", ":all:", "--no-compile-bytecode"]
    command += ["--python-platform", "x86_64-pc-windows-msvc", "--python-version", PYTHON, "--link-mode", "copy"]
    command += ["-c", str(ROOT / ".ci" / "constraints.txt"), *project["dependencies"]]
    subprocess.run(command, check=True)
    shutil.rmtree(site / "bin", ignore_errors=True)
    print(f"{len(list(site.glob('*.dist-info')))} wheels for Windows")


def _lay_package(site: Path, native: Path) -> None:
    package = site / "dflash_desktop"
    shutil.copytree(ROOT / "app" / "dflash_desktop", package, ignore=shutil.ignore_patterns("__pycache__", "lib"))
    shutil.copytree(native / "dflash_desktop", package, dirs_exist_ok=True)


def _build_starters(out: Path) -> None:
    compiler = "x86_64-w64-mingw32-gcc"
    icon = out.parent / "dflash-desktop.ico"
    resource = out.parent / "starter.o"
    sys.path.insert(0, str(HERE.parent / "common"))
    import icons

    icons.write_ico(icons.SOURCE, icon)
    script = out.parent / "starter.rc"
    script.write_text(f'1 ICON "{icon.as_posix()}"\n', encoding="ascii")
    subprocess.run(["x86_64-w64-mingw32-windres", str(script), str(resource)], check=True)
    common = ["-municode", "-O2", "-s", "-Wall", "-Wextra", str(HERE / "launcher.c"), str(resource), "-o"]
    subprocess.run([compiler, "-DWINDOW", "-mwindows", *common, str(out / "dflash-desktop.exe")], check=True)
    subprocess.run([compiler, *common, str(out / "dflash.exe")], check=True)


def _lay_python(folder: Path, archive: Path) -> None:
    with zipfile.ZipFile(archive) as content:
        content.extractall(folder)
    paths = next(folder.glob("python*._pth"))
    paths.write_text(f"python{PYTHON.replace('.', '')}.zip\n.\n../lib\n", encoding="ascii")


if __name__ == "__main__":
    main()
