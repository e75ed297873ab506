"""Builds every long-lived object once and closes them in reverse order: for the window or a command."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.log import log_bugs, start_logging
from dflash_desktop.base.paths import AppPaths, app_paths, resource_path
from dflash_desktop.binding.failures import NativeError
from dflash_desktop.binding.native import Library
from dflash_desktop.engine.devices import Device, list_devices
from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.inspect import ModelFile, inspect_file
from dflash_desktop.engine.loaded import PairLoader
from dflash_desktop.engine.pairs import built_in_pairs, fitting_drafts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dflash_desktop.ui.engine.pair_state import StarterPair


@dataclass(frozen=True, slots=True)
class Workbench:
    """What a terminal command works with. Each method raises AppError."""

    paths: AppPaths
    library: Library

    def devices(self) -> list[Device]:
        """What can be computed on, as it is now."""
        return list_devices(self.library)

    def inspect(self, file: Path) -> ModelFile:
        """What a model file is, from its header."""
        return inspect_file(file, self.library)

    def drafts_for(self, target: Path) -> list[ModelFile]:
        """Drafts made for `target`: beside it, among the person's models, among the built-in ones."""
        folders = [target.absolute().parent, self.paths.models, resource_path("models")]
        return fitting_drafts(target, folders, self.library)

    @contextmanager
    def engine(self) -> Iterator[Engine]:
        """The lane, started; closed in the end whatever happens, which cancels what still runs."""
        engine = Engine(PairLoader(self.library))
        engine.start()
        try:
            yield engine
        finally:
            engine.close()


def start_base() -> AppPaths:
    """Folders, log file, and the hooks for failures that nobody expected. First thing in every command."""
    paths = app_paths()
    log_bugs(start_logging(paths.logs))
    return paths


def open_workbench() -> Workbench:
    """Folders, log and the native engine with its backends started. Raises AppError."""
    paths = start_base()
    try:
        return Workbench(paths, Library())
    except NativeError as error:
        raise AppError(str(error)) from error


def open_window() -> int:
    """Show the window until it is closed, and return its exit code.

    The engine's library is loaded by the lane and not here: the window comes up without waiting for drivers, and tells
    in words when the library is broken.
    """
    from dflash_desktop.ui.app import run_window

    paths = start_base()
    engine = Engine(PairLoader())
    engine.start()
    try:
        return run_window(
            engine,
            list_devices=list_devices,
            starter=starter_pair(),
            state_folder=paths.config,
            resources=resource_path(),
        )
    finally:
        engine.close()


def starter_pair() -> StarterPair | None:
    """The built-in pair as the window offers it; None in a build without one."""
    from dflash_desktop.ui.engine.pair_state import StarterPair

    pairs = built_in_pairs()
    if not pairs:
        return None
    pair = pairs[0]
    written = json.loads(resource_path("models", "pairs.json").read_text("utf-8"))["pairs"]
    licences = {entry["id"]: entry["target"]["license"] for entry in written}
    n_bytes = pair.target.stat().st_size + (pair.draft.stat().st_size if pair.draft is not None else 0)
    return StarterPair(pair.name, pair.target, pair.draft, n_bytes, licences[pair.id])
