"""Checks a frozen folder before it is packed: every library is found, and nothing needs a newer system than we promise.

python check_folder.py FOLDER
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

NEWEST = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)}
"""What Ubuntu 22.04 has, the older of the two systems that are promised."""

FROM_THE_SYSTEM = re.compile(
    r"^(ld-linux-x86-64|lib(c|m|dl|rt|pthread|resolv|util|stdc\+\+|gcc_s|z|expat|GL|EGL|GLX|GLdispatch|OpenGL|X11|X11-xcb|xcb"
    r"|fontconfig|freetype|dbus-1|wayland-client|wayland-cursor|wayland-egl|vulkan|cuda))\.so\.\d+$"
)
"""The only libraries that may lie outside: the package names what brings them (deb/control)."""

_NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")
_VERSION = re.compile(r"\b(GLIBC|GLIBCXX|CXXABI)_([0-9.]+)\b")


def problems(folder: Path) -> list[str]:
    """Sentences on what is wrong, none when the folder is fit to ship."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink() and _is_elf(path)]
    inside = {path.name for path in folder.rglob("*") if path.is_file()}
    found = []
    for file in files:
        dynamic = _output("readelf", "-dW", str(file))
        found += [
            f"{file.relative_to(folder)} needs {needed}, which is neither inside nor promised"
            for needed in _NEEDED.findall(dynamic)
            if needed not in inside and not FROM_THE_SYSTEM.match(needed)
        ]
        for family, text in set(_VERSION.findall(_output("readelf", "-VW", str(file)))):
            version = tuple(int(part) for part in text.split("."))
            if version > NEWEST[family]:
                found.append(f"{file.relative_to(folder)} needs {family} {text}")
    if not files:
        found.append(f"there is no program in {folder}")
    return sorted(found)


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _output(*command: str) -> str:
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={"LC_ALL": "C", "PATH": "/usr/bin"}
    ).stdout


def main() -> None:
    found = problems(Path(sys.argv[1]))
    for problem in found:
        print(problem, file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
