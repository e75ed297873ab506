"""Every file that the program keeps for itself, damaged: the program goes on, and the damaged file is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dflash_desktop.base.json_file import files_aside
from dflash_desktop.base.paths import AppPaths
from dflash_desktop.base.relocation import WISH_FILE, folder_wish, read_wish, write_wish
from dflash_desktop.hub.library import LIBRARY_FILE, Library
from dflash_desktop.hub.models_folder import ModelsFolder
from dflash_desktop.hub.network import NetworkSettings, read_network_settings, write_network_settings
from dflash_desktop.hub.queue_file import QUEUE_FILE, QueueFile
from dflash_desktop.settings.pair_memory import PairLoad, PairMemory
from dflash_desktop.settings.store import SettingsStore
from dflash_desktop.ui.kit.window_state import WindowStateFile
from dflash_desktop.ui.server.key_file import KeyFile


def use_settings(folder: Path) -> None:
    SettingsStore(folder / "settings.json").change(theme="dark")


def use_pairs(folder: Path) -> None:
    PairMemory(folder / "pairs.json").remember(Path("/m/t.gguf"), PairLoad())


def use_window(folder: Path) -> None:
    file = WindowStateFile(folder / "window.json")
    assert file.write(replace(file.read(), page="engine"))


def use_library(folder: Path) -> None:
    def never(*_: Path) -> None:
        raise AssertionError

    library = Library(folder, ModelsFolder(folder / "models"), built_in=folder, inspect=never, misfit=never)  # type: ignore[arg-type]
    library.add(folder / f"models {len(library.added())}")


def use_queue(folder: Path) -> None:
    queue = QueueFile(folder, ModelsFolder(folder / "models"))
    assert queue.take()
    queue.read()
    queue.write(7, [])
    queue.release()


def use_network(folder: Path) -> None:
    read_network_settings(folder / "network.json", {})
    write_network_settings(folder / "network.json", NetworkSettings(proxy="none"))


def use_key(folder: Path) -> None:
    assert KeyFile(folder / "server-key").key().startswith("sk-dflash-")


def use_wish(folder: Path) -> None:
    paths = AppPaths(folder, folder, folder, folder, folder, is_portable=False)
    read_wish(paths)
    write_wish(paths, folder_wish(folder / "elsewhere"))


FILES: dict[str, Callable[[Path], None]] = {
    "settings.json": use_settings,
    "pairs.json": use_pairs,
    "window.json": use_window,
    LIBRARY_FILE: use_library,
    QUEUE_FILE: use_queue,
    "network.json": use_network,
    "server-key": use_key,
    WISH_FILE: use_wish,
}
FOREIGN = {
    "pairs.json": b'{"version": 1, "pairs": 5}',
    LIBRARY_FILE: b'{"version": 1, "added": 5}',
    QUEUE_FILE: b'{"version": 1, "rows": [{"download_id": "seven"}]}',
    "network.json": b'{"version": 1, "proxy": "sometimes"}',
}
CASES = [(name, b'{"version": 1, "half\xff') for name in FILES] + list(FOREIGN.items())


@pytest.mark.parametrize(("name", "content"), CASES)
def test_a_damaged_file_is_kept_and_told_at_every_start(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    for _ in range(3):
        FILES[name](tmp_path)
        (aside,) = files_aside(tmp_path)
        assert aside.read_bytes() == content
        assert (tmp_path / name).is_file()


@pytest.mark.parametrize("name", [name for name in FILES if name != WISH_FILE])
def test_a_file_that_the_system_does_not_let_us_read_is_not_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()  # a folder: nobody can read it as a file, not even root
    (tmp_path / name / "inside").write_bytes(b"kept")
    FILES[name](tmp_path)
    (aside,) = files_aside(tmp_path)
    assert (aside / "inside").read_bytes() == b"kept"
    assert (tmp_path / name).is_file()
