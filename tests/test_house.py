"""What holds for the whole tree: names at the top, Qt in one room, one version, a complete package."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import dflash_desktop

ROOT = Path(__file__).parents[1]
TOP_LEVEL = {"app", "native", "resources", "installers", "tests", "pyproject.toml", "README.md"}
PACKAGE = ROOT / "app" / "dflash_desktop"


def tracked_files() -> list[str]:
    """Paths of the checkout, committed or about to be; a tree without git has none to judge."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    return [name for name in listing.stdout.decode().split("\0") if name and (ROOT / name).exists()]


def imported_modules(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def test_the_top_level_holds_only_the_agreed_names() -> None:
    tops = {name.split("/")[0] for name in tracked_files()}
    assert {top for top in tops if not top.startswith(".")} <= TOP_LEVEL


def test_qt_is_imported_in_ui_only() -> None:
    guilty = [
        str(file.relative_to(ROOT))
        for file in PACKAGE.rglob("*.py")
        if file.relative_to(PACKAGE).parts[0] != "ui"
        and any(name.split(".")[0] in ("PySide6", "shiboken6", "pyqtgraph") for name in imported_modules(file))
    ]
    assert guilty == []


def test_no_text_names_a_path_of_the_machine_it_was_written_on() -> None:
    pattern = re.compile(r"(?<![\w.])/(?:work|farm|root|tmp)/\w")
    guilty = []
    for name in tracked_files():
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # models and pictures
        guilty += [f"{name}: {match.group()}" for match in pattern.finditer(text) if Path(name).suffix != ".npz"]
    assert guilty == []


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changes = (ROOT / "resources" / "docs" / "CHANGELOG.md").read_text(encoding="utf-8")
    assert project["version"] == dflash_desktop.__version__
    assert f"\n## {dflash_desktop.__version__}" in changes


def test_ci_runs_the_test_command_of_the_readme() -> None:
    command = "python3 -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/python -m pytest"
    assert command in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"\n{command}\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_every_native_source_is_listed_in_cmake() -> None:
    native = ROOT / "native"
    listed = set(re.findall(r"src/[\w/]+\.cpp", (native / "CMakeLists.txt").read_text(encoding="utf-8")))
    assert listed == {file.relative_to(native).as_posix() for file in (native / "src").rglob("*.cpp")}


def test_the_map_of_the_engine_names_every_source_and_none_that_is_gone() -> None:
    native = ROOT / "native"
    text = (native / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:targets/)?(\w+)(?:\.cpp)?`", text))
    assert {file.stem for file in (native / "src").rglob("*.cpp")} <= named
    assert [
        name for name in re.findall(r"`([\w/]+\.(?:cpp|h))`", text) if not list(native.rglob(Path(name).name))
    ] == []


@pytest.mark.slow
def test_the_wheel_holds_library_models_and_licences(tmp_path: Path, real_environment: dict[str, str]) -> None:
    # Isolation is off so that the compiled objects of the development build, and its cache, are used again.
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", tmp_path, ROOT],
        env={**real_environment, "PATH": os.pathsep.join([str(Path(sys.executable).parent), real_environment["PATH"]])},
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith("dflash_desktop-") and "-py3-none-" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    held = {
        r"dflash_desktop/binding/lib/(lib)?dflash\.(so|dll|dylib)",
        r"dflash_desktop/binding/lib/(lib)?ggml\.(so|dll|dylib)",
        r"dflash_desktop/binding/lib/(lib)?ggml-base\.(so|dll|dylib)",
        r"dflash_desktop/binding/lib/(lib)?ggml-cpu[\w.-]*",
        r"dflash_desktop/resources/models/SmolLM2-135M-Instruct\.Q4_1\.gguf",
        r"dflash_desktop/resources/models/smollm2-135m-dflash-q8_0\.gguf",
        r"dflash_desktop/resources/models/pairs\.json",
        r"dflash_desktop/resources/licences/LICENSE\.txt",
        r"dflash_desktop/resources/licences/ggml\.txt",
        r"dflash_desktop-[\d.]+\.dist-info/licenses/.*LICENSE\.txt",
    }
    missing = {pattern for pattern in held if not any(re.fullmatch(pattern, name) for name in names)}
    assert missing == set()
    assert not [name for name in names if re.search(r"\.h$|\.a$|\.so\.\d|/screens/|^(native|tests|include)/", name)]


def test_every_picture_of_the_readme_is_there_and_small() -> None:
    named = re.findall(r"resources/docs/screens/[\w-]+\.png", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert named
    assert {file.relative_to(ROOT).as_posix() for file in (ROOT / "resources/docs/screens").iterdir()} == set(named)
    assert [name for name in named if (ROOT / name).stat().st_size > 200_000] == []
