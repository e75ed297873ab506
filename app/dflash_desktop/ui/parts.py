"""What the window is built from besides the engine: one field per room, None where a test or a build goes without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dflash_desktop.base.paths import AppPaths
from dflash_desktop.base.run_marker import LostRun, RunMarker
from dflash_desktop.chats.store import ChatStore
from dflash_desktop.engine.devices import Device
from dflash_desktop.engine.inspect import ModelFile
from dflash_desktop.engine.pflash.options import PflashOptions
from dflash_desktop.engine.planning import LoadEstimate
from dflash_desktop.engine.requests import LoadOptions
from dflash_desktop.settings.pair_memory import PairMemory
from dflash_desktop.settings.store import SettingsStore
from dflash_desktop.ui.hub.desk import HubParts
from dflash_desktop.ui.launch import Launch
from dflash_desktop.ui.server.bridge import ServerParts


@dataclass(frozen=True, slots=True)
class EngineTools:
    """What the window asks of the engine beside its lane: headers of files and devices, never weights.

    Called in threads of the window's. Each raises AppError.
    """

    plan: Callable[[Path, Path | None, LoadOptions], LoadEstimate]
    inspect: Callable[[Path], ModelFile]
    drafts_for: Callable[[Path], Sequence[ModelFile]]
    read_device: Callable[[str], Device]  # by name, as it is now, without its users; cheap
    plan_scored: Callable[[Path, Path | None, LoadOptions, PflashOptions], LoadEstimate] | None = None  # with a scorer


@dataclass(frozen=True, slots=True)
class Home:
    """Where this program keeps its files, and how its last runs ended."""

    paths: AppPaths
    marker: RunMarker | None = None
    lost_runs: Sequence[LostRun] = ()


@dataclass(frozen=True, slots=True)
class Parts:
    """Built in startup.py, handed to run_window and MainWindow."""

    settings: SettingsStore | None = None
    pair_memory: PairMemory | None = None
    engine_tools: EngineTools | None = None
    home: Home | None = None
    launch: Launch | None = None
    server: ServerParts | None = None
    hub: HubParts | None = None
    chats: ChatStore | None = None
