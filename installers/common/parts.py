"""What a frozen folder is made of: our own parts, the Python packages, Python itself, and libraries of the system."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import metadata, resources
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = "dflash-desktop"
_LICENCE_FILE = re.compile(r"(licen[cs]e|copying|notice|authors|copyright)", re.IGNORECASE)
_TEXT_SUFFIXES = {"", ".txt", ".md", ".rst", ".apache", ".mit", ".bsd"}


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that is shipped."""

    name: str
    version: str
    kind: str  # application, python, library, model, system
    licence: str  # an SPDX expression where the part says one, else its own words
    purl: str
    home: str = ""
    texts: tuple[tuple[str, str], ...] = ()  # file name, content
    needs: tuple[str, ...] = ()  # names of Python packages
    sha256: str = ""
    files: tuple[str, ...] = field(default=())


def shipped_parts(folder: Path, vulkan_headers: str = "") -> list[Part]:
    """Every part of the frozen `folder`, the application first. `vulkan_headers`: the version in a Vulkan backend."""
    packages = [_package_part(dist) for dist in _shipped_dists()]
    system = list(_system_parts(folder)) if sys.platform.startswith("linux") else []
    application = next(part for part in packages if part.name == ROOT)
    others = [part for part in packages if part.name != ROOT and _is_frozen(part, folder)]
    own = [*_own_parts(folder), *_vulkan_parts(folder, vulkan_headers)]
    return [application, *own, _python_part(), _bootloader_part(), *others, *system]


def _shipped_dists() -> list[metadata.Distribution]:
    """The application and all that it requires here, each once. Build tools of the environment are not among them."""
    found: dict[str, metadata.Distribution] = {}
    waiting = [ROOT]
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in found:
            continue
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # required elsewhere only, or by an extra that is not installed
        waiting += _needs(found[name])
    return [found[name] for name in sorted(found)]


def unshipped_modules() -> list[str]:
    """Top-level modules of this environment that no shipped package brings: build tools, and what they need.

    A library that uses one of them where it happens to be installed would carry it along.
    """
    shipped = {canonicalize_name(str(dist.metadata["Name"])) for dist in _shipped_dists()}
    return sorted(
        module
        for module, owners in metadata.packages_distributions().items()
        if module.isidentifier() and not shipped & {canonicalize_name(owner) for owner in owners}
    )


def _needs(dist: metadata.Distribution) -> list[str]:
    wanted: list[str] = []
    for text in dist.requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            wanted.append(canonicalize_name(requirement.name))
    return wanted


def _package_part(dist: metadata.Distribution) -> Part:
    # A field with non-ASCII text or several values comes as an object: str() is what both have.
    about = dist.metadata
    name = canonicalize_name(str(about["Name"]))
    texts = []
    files = []
    for file in dist.files or ():
        in_info = ".dist-info" in file.parts[0]
        if in_info and _LICENCE_FILE.search("/".join(file.parts[1:])) and file.suffix.lower() in _TEXT_SUFFIXES:
            place = Path(str(file.locate()))
            texts.append(("/".join(file.parts[1:]), place.read_text(encoding="utf-8", errors="replace")))
        elif not in_info:
            files.append(str(file))
    urls = [value.split(",", 1)[1].strip() for value in about.get_all("Project-URL") or () if "," in value]
    home = str(about.get("Home-page") or "") or (urls[0] if urls else "")
    return Part(
        name=name,
        version=dist.version,
        kind="application" if name == ROOT else "python",
        licence=_licence_of(about),
        purl=f"pkg:pypi/{name}@{dist.version}",
        home=home,
        texts=tuple(texts),
        needs=tuple(sorted(set(_needs(dist)))),
        files=tuple(files),
    )


def _licence_of(about: metadata.PackageMetadata) -> str:
    expression = about.get_all("License-Expression")
    if expression:
        return str(expression[0])
    kinds = [
        value.split("::")[-1].strip() for value in about.get_all("Classifier") or () if value.startswith("License ::")
    ]
    kinds = [kind for kind in kinds if kind != "OSI Approved"]
    if kinds:
        return ", ".join(kinds)
    words = str(about.get("License") or "").strip()
    return words.splitlines()[0] if words else "see the text below"


def _is_frozen(part: Part, folder: Path) -> bool:
    """Whether anything of the package went into the folder: pure Python lies in the archive, so that is asked too."""
    names = {Path(file).parts[0].removesuffix(".py") for file in part.files if not file.startswith("..")}
    names = {name for name in names if "." not in name and name not in ("bin", "share", "include")}
    return any((folder / "_internal" / name).exists() for name in names) or bool(names & _archived_modules(folder))


def _archived_modules(folder: Path) -> set[str]:
    from PyInstaller.archive.readers import CArchiveReader

    program = next(path for path in (folder / ROOT, folder / f"{ROOT}.exe") if path.is_file())
    key = str(program)
    if key not in _ARCHIVED:
        archive = CArchiveReader(key)
        inner = next(name for name in archive.toc if name.endswith(".pyz"))
        _ARCHIVED[key] = {name.split(".")[0] for name in archive.open_embedded_archive(inner).toc}
    return _ARCHIVED[key]


_ARCHIVED: dict[str, set[str]] = {}  # reading the table of the archive takes a second


def _own_parts(folder: Path) -> Iterator[Part]:
    """What the wheel itself carries that others made: ggml and the models."""
    installed = Path(str(resources.files("dflash_desktop").joinpath("resources")))
    ggml = installed / "licences" / "ggml.txt"
    if ggml.is_file():
        yield Part(
            name="ggml",
            version=_ggml_version(folder),
            kind="library",
            licence="MIT",
            purl=f"pkg:generic/ggml@{_ggml_version(folder)}",
            home="https://github.com/ggml-org/ggml",
            texts=(("ggml.txt", ggml.read_text(encoding="utf-8")),),
        )
    apache = (installed / "licences" / "LICENSE.txt").read_text(encoding="utf-8")
    for pair in json.loads((installed / "models" / "pairs.json").read_text(encoding="utf-8"))["pairs"]:
        for role in ("target", "draft"):
            model = pair.get(role)
            if model and (installed / "models" / model["file"]).is_file():
                content = (installed / "models" / model["file"]).read_bytes()
                yield Part(
                    name=model["name"],
                    version=model["sha256"][:12],
                    kind="model",
                    licence=model["license"],
                    purl=f"pkg:generic/{model['file']}",
                    texts=(("LICENSE.txt", apache),),
                    sha256=hashlib.sha256(content).hexdigest(),
                )


def _vulkan_parts(folder: Path, headers: str) -> Iterator[Part]:
    """Headers whose code is compiled into the Vulkan backend. The loader is the system's."""
    if any(_library_folder(folder).glob("*ggml-vulkan*")):
        for name, licence in (("Vulkan-Headers", "Apache-2.0 OR MIT"), ("SPIRV-Headers", "MIT")):
            version = headers or "unknown"
            home = f"https://github.com/KhronosGroup/{name}"
            yield Part(name, version, "library", licence, f"pkg:github/khronosgroup/{name.lower()}@{version}", home)


def _library_folder(folder: Path) -> Path:
    return folder / "_internal" / "dflash_desktop" / "binding" / "lib"


def _ggml_version(folder: Path) -> str:
    """As the library itself says it."""
    libraries = _library_folder(folder)
    for name in ("libggml-base.so", "ggml-base.dll", "libggml-base.dll"):
        path = libraries / name
        if path.is_file():
            import ctypes

            version = ctypes.CDLL(str(path)).ggml_version
            version.restype = ctypes.c_char_p
            return str(version().decode("ascii"))
    return "unknown"


def _python_part() -> Part:
    version = platform.python_version()
    texts = []
    for place in (
        Path(sysconfig.get_paths()["stdlib"]) / "LICENSE.txt",
        Path(sys.base_prefix) / "LICENSE.txt",
        Path(f"/usr/share/doc/libpython{sys.version_info.major}.{sys.version_info.minor}-minimal/copyright"),
    ):
        if place.is_file():
            texts.append((place.name, place.read_text(encoding="utf-8", errors="replace")))
            break
    return Part(
        "Python", version, "library", "PSF-2.0", f"pkg:generic/python@{version}", "https://www.python.org", tuple(texts)
    )


def _bootloader_part() -> Part:
    dist = metadata.distribution("pyinstaller")
    part = _package_part(dist)
    return Part(
        "PyInstaller bootloader",
        dist.version,
        "library",
        "GPL-2.0-or-later WITH Bootloader-exception",
        part.purl,
        part.home,
        part.texts,
    )


def _system_parts(folder: Path) -> Iterator[Part]:
    """Libraries that were taken from the Debian packages of the machine that built this."""
    inner = folder / "_internal"  # links there lead to libraries of Python packages
    names = {path.name for path in inner.iterdir() if ".so" in path.name and path.is_file() and not path.is_symlink()}
    owners: dict[str, list[str]] = {}
    for name in sorted(names):
        found = subprocess.run(["dpkg-query", "-S", f"*/{name}"], capture_output=True, text=True, check=False)
        if found.returncode == 0:
            owners.setdefault(found.stdout.splitlines()[0].split(":")[0], []).append(name)
        elif not name.startswith("libpython"):
            owners.setdefault("", []).append(name)
    if unknown := owners.pop("", None):
        print(f"no package of the system owns {', '.join(unknown)}", file=sys.stderr)
    for package, files in owners.items():
        if package.startswith(("libpython", "python3")):
            continue  # Python is a part of its own
        shown = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Version}\\n${Homepage}", package], capture_output=True, text=True, check=True
        )
        version, _, home = shown.stdout.partition("\n")
        copyright_file = Path("/usr/share/doc", package, "copyright")
        text = copyright_file.read_text(encoding="utf-8", errors="replace") if copyright_file.is_file() else ""
        yield Part(
            name=package,
            version=version,
            kind="system",
            licence="see the text below",
            purl=f"pkg:deb/debian/{package}@{version}",
            home=home.strip(),
            texts=(("copyright", text),) if text else (),
            files=tuple(files),
        )
