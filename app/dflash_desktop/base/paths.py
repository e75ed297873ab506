"""Where the program keeps its files, and where it finds what was installed with it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import platformdirs

from dflash_desktop.base.errors import AppError

PORTABLE_MARKER = "portable.txt"
"""A file of this name beside the program keeps everything in the folder `data` beside it (a memory stick, a test)."""

_APP_FOLDER = "dflash-desktop"


@dataclass(frozen=True, slots=True)
class AppPaths:
    """Folders of this person on this machine. They may not exist yet: whoever writes first makes them."""

    data: Path  # chats, downloads in progress
    config: Path  # settings
    cache: Path  # may be deleted at any time
    logs: Path
    models: Path  # one folder per maker and model below it
    is_portable: bool


def program_folder() -> Path:
    """Where the program itself lies: the frozen app's folder, or that of the Python that runs it."""
    return Path(sys.executable).absolute().parent


def app_paths(beside: Path | None = None) -> AppPaths:
    """The folders in force. `beside` is where the portable marker is looked for; default: program_folder()."""
    beside = program_folder() if beside is None else beside
    if (beside / PORTABLE_MARKER).is_file():
        home = beside / "data"
        return AppPaths(home, home / "config", home / "cache", home / "logs", home / "models", is_portable=True)
    # appauthor=False: on Windows one folder, not maker\program. Not roaming: models and chats are large.
    dirs = platformdirs.PlatformDirs(_APP_FOLDER, appauthor=False, roaming=False)
    data = dirs.user_data_path
    return AppPaths(
        data=data,
        config=dirs.user_config_path,
        cache=dirs.user_cache_path,
        logs=dirs.user_log_path,
        models=data / "models",
        is_portable=False,
    )


def make_folder(folder: Path) -> Path:
    """Create `folder` and its parents where missing, and return it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AppError(f"The folder {folder} cannot be created: {error.strerror or error}.") from error
    return folder


def resource_path(*parts: str) -> Path:
    """An installed resource, such as resource_path("models", "pairs.json"). Small builds leave some out."""
    return _installed("resources", *parts)


def library_folder() -> Path:
    """The folder of the native library and of the backends beside it."""
    return _installed("binding", "lib")


def _installed(*parts: str) -> Path:
    # Works alike for a wheel, the editable install and the frozen app; `__file__` would miss what CMake installed.
    place = resources.files("dflash_desktop").joinpath(*parts)
    # Model files are memory-mapped, so a package inside a zip archive is of no use.
    if not isinstance(place, Path):
        raise AppError("DFlash Desktop cannot run from inside an archive. Install it with pip, or unpack it.")
    return place
