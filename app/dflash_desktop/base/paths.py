"""Where the program keeps its files, and where it finds what was installed with it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import platformdirs

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.json_file import NotAsWritten, parsed, put_aside, take_as_known, write_json
from dflash_desktop.base.presence import has_folder

PORTABLE_MARKER = "portable.txt"
"""A file of this name beside the program keeps everything in the folder `data` beside it (a memory stick, a test)."""

LOCATION_FILE = "location.json"
"""In the settings folder: where the data folder was moved to."""

_APP_FOLDER = "dflash-desktop"


class DataFolderMissing(AppError):
    """The person moved the data to a folder that is not there now: a drive that is not connected, most of the time."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"The data folder {folder} is not there. Connect the drive it lies on and start again. Nothing was deleted."
        )
        self.folder = folder


class DataFolderUnknown(AppError):
    """The file that says where the data is cannot be read, so nobody knows: the usual folder would look empty."""

    def __init__(self, file: Path, why: str) -> None:
        super().__init__(
            f"Where your data lies is not known: {file} {why}. Mend that file, or open the window and choose the "
            "folder. Nothing was deleted."
        )
        self.file = file


@dataclass(frozen=True, slots=True)
class AppPaths:
    """Folders of this person on this machine. They may not exist yet: whoever writes first makes them."""

    data: Path  # chats, downloads in progress
    config: Path  # settings
    cache: Path  # may be deleted at any time
    logs: Path
    models: Path  # one folder per maker and model below it
    is_portable: bool

    def with_data(self, folder: Path) -> AppPaths:
        """The same, with chats and models in `folder`."""
        return replace(self, data=folder, models=folder / "models")


def program_folder() -> Path:
    """Where the program itself lies: the frozen app's folder, the AppImage's, or that of the Python that runs it."""
    return (appimage_file() or Path(sys.executable).absolute()).parent


def appimage_file() -> Path | None:
    """The AppImage that runs us, None where none does. A program started by another AppImage inherits its variables."""
    image, mounted = os.environ.get("APPIMAGE"), os.environ.get("APPDIR")
    if not image or not mounted or not getattr(sys, "frozen", False):
        return None
    is_inside = Path(os.path.realpath(sys.executable)).is_relative_to(os.path.realpath(mounted))
    return Path(image).absolute() if is_inside else None


def app_paths(beside: Path | None = None, *, ignores_moves: bool = False) -> AppPaths:
    """The folders in force. `beside` is where the portable marker is looked for; default: program_folder().

    Raises DataFolderMissing when the data was moved to a folder that is not there, and DataFolderUnknown when nobody
    can tell whether it was; neither with `ignores_moves`.
    """
    paths = standard_paths(beside)
    moved = None if ignores_moves else data_location(paths)
    if moved is None:
        return paths
    if not has_folder(moved):
        raise DataFolderMissing(moved)
    return paths.with_data(moved)


def data_location(paths: AppPaths) -> Path | None:
    """Where the data was moved to; None when it never was. Raises DataFolderUnknown."""
    return _location(paths, "data")


def left_location(paths: AppPaths) -> Path | None:
    """Where the data lay when the person went on without it, because its drive was not there."""
    try:
        return _location(paths, "left")
    except DataFolderUnknown:  # damaged since the start: the next one asks
        return None


def set_location(paths: AppPaths, *, data: Path | None, left: Path | None = None) -> None:
    """Write down where the data is; None: where the system keeps it. A damaged file is put aside. Raises OSError."""
    try:
        _location(paths, "data")
    except DataFolderUnknown as error:
        aside = put_aside(error.file, str(error)).moved_to
        if aside is not None:
            take_as_known(aside)  # the person has just dealt with it
    written = {"data": data, "left": left}
    write_json(paths.config / LOCATION_FILE, {name: str(path) for name, path in written.items() if path is not None})


def _location(paths: AppPaths, key: str) -> Path | None:
    if paths.is_portable:
        return None
    file = paths.config / LOCATION_FILE
    try:
        stored = (parsed(file, _is_location) or {}).get(key)
    except NotAsWritten as error:
        # It stays where it is, and so every start asks: put aside, the next one would find no file and an empty folder.
        raise DataFolderUnknown(file, f"is damaged ({error})") from error
    except AppError as error:
        raise DataFolderUnknown(file, "cannot be read") from error
    return Path(stored) if stored else None


def _is_location(values: dict[str, Any]) -> bool:
    return all(isinstance(values.get(key, ""), str) for key in ("data", "left"))


def standard_paths(beside: Path | None = None) -> AppPaths:
    """The folders without regard to a data folder that was moved."""
    beside = program_folder() if beside is None else beside
    if not (beside / PORTABLE_MARKER).is_file():
        return home_paths()
    home = portable_home(beside)
    return AppPaths(home, home / "config", home / "cache", home / "logs", home / "models", is_portable=True)


def home_paths() -> AppPaths:
    """Where the system keeps a program's files."""
    # appauthor=False: on Windows one folder, not maker\program. Not roaming: models and chats are large.
    dirs = platformdirs.PlatformDirs(_APP_FOLDER, appauthor=False, roaming=False)
    data = dirs.user_data_path
    if data == dirs.user_config_path:  # Windows, macOS: settings must stay when the data is moved
        data = data / "data"
    return AppPaths(
        data=data,
        config=dirs.user_config_path,
        cache=dirs.user_cache_path,
        logs=dirs.user_log_path,
        models=data / "models",
        is_portable=False,
    )


def portable_home(beside: Path) -> Path:
    """Where everything lies in portable mode."""
    return beside / "data"


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
