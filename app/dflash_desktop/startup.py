"""Builds every long-lived object once and closes them in reverse order: for the window or a command."""

from __future__ import annotations

import json
import logging
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from dflash_desktop import __version__
from dflash_desktop.base.errors import AppError
from dflash_desktop.base.instance import InstanceLock
from dflash_desktop.base.log import log_bugs, log_details, start_logging
from dflash_desktop.base.paths import AppPaths, app_paths, resource_path
from dflash_desktop.base.presence import has_file, why_no_file
from dflash_desktop.base.run_marker import RunMarker
from dflash_desktop.binding.failures import NativeError
from dflash_desktop.binding.native import Library
from dflash_desktop.engine.device_users import with_users
from dflash_desktop.engine.devices import Device, choose_device, list_devices
from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.inspect import ModelFile, inspect_file, misfit
from dflash_desktop.engine.loaded import PairLoader
from dflash_desktop.engine.pairs import built_in_pairs, fitting_drafts
from dflash_desktop.engine.planning import plan_load
from dflash_desktop.engine.tuning_memory import TUNING_FOLDER, TuningMemory
from dflash_desktop.settings.pair_memory import PAIRS_FILE, PairMemory
from dflash_desktop.settings.store import SETTINGS_FILE, SettingsStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dflash_desktop.hub.catalogue import Catalogue, DeviceSpeeds
    from dflash_desktop.hub.library import HeaderFacts
    from dflash_desktop.server.events import ServerSubscriber
    from dflash_desktop.server.loading import SubmitLoad
    from dflash_desktop.server.ports import EngineLane
    from dflash_desktop.server.server import ApiServer
    from dflash_desktop.ui.engine.pair_state import PairFiles, StarterPair
    from dflash_desktop.ui.hub.desk import HubParts
    from dflash_desktop.ui.parts import EngineTools, Home
    from dflash_desktop.ui.server.bridge import ServerParts

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Workbench:
    """What a terminal command works with. Each method raises AppError."""

    paths: AppPaths
    library: Library

    def devices(self) -> list[Device]:
        """What can be computed on, as it is now, and who uses it."""
        return with_users(list_devices(self.library))

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
        engine = Engine(PairLoader(self.library, TuningMemory(self.paths.cache / TUNING_FOLDER)))
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
    return _workbench(start_base())


def _workbench(paths: AppPaths) -> Workbench:
    try:
        return Workbench(paths, Library())
    except NativeError as error:
        raise AppError(str(error)) from error


def open_window(files: Sequence[Path] = ()) -> int:
    """Show the window, with `files` loaded, until it is closed, and return its exit code.

    A window that wants to be built again (moved data) is: with everything below it made anew.
    """
    from dflash_desktop.ui.app import RESTART
    from dflash_desktop.ui.settings.before_start import settle_data_folder

    while settle_data_folder(resource_path()):
        code = _open_window_once(files)
        if code != RESTART:
            return code
        files = ()
    return 0


def _open_window_once(files: Sequence[Path]) -> int:
    """Show one window until it is closed.

    Where this person's window is open already, that one comes up with the files, and this start is over.

    The engine's library is loaded by the lane and not here: the window comes up without waiting for drivers, and tells
    in words when the library is broken.
    """
    from dflash_desktop.chats.store import ChatStore
    from dflash_desktop.ui.app import run_window
    from dflash_desktop.ui.instance_channel import call_first
    from dflash_desktop.ui.launch import Launch
    from dflash_desktop.ui.parts import Parts

    paths = start_base()
    lock = InstanceLock(paths.config)
    if not lock.acquire():
        if call_first(lock.channel_name, files):
            return 0
        raise AppError("DFlash Desktop is running already, but its window does not answer. End it, then start again.")
    home = open_home(paths)
    parts = Parts(
        launch=Launch(lambda given: find_pair(given, paths), tuple(files), lock.channel_name),
        settings=open_settings(paths),
        pair_memory=PairMemory(paths.config / PAIRS_FILE),
        engine_tools=engine_tools(paths),
        home=home,
        server=serving_parts(paths),
        hub=hub_parts(paths),
        chats=ChatStore(paths.data / "chats"),
    )
    abort_file = home.marker.trace_path if home.marker is not None else None
    engine = Engine(PairLoader(memory=TuningMemory(paths.cache / TUNING_FOLDER), abort_file=abort_file))
    engine.start()
    try:
        return run_window(
            engine,
            list_devices=lambda: with_users(list_devices()),
            starter=starter_pair(),
            state_folder=paths.config,
            resources=resource_path(),
            parts=parts,
        )
    finally:
        engine.close()
        if home.marker is not None:
            home.marker.end()
        lock.release()


def serving_parts(paths: AppPaths) -> ServerParts:
    """What the window serves other programs with; the web server itself is imported when it is first started."""
    from dflash_desktop.clients.endpoint import Machine
    from dflash_desktop.ui.server.bridge import ServerParts

    def make_server(lane: EngineLane, subscriber: ServerSubscriber, submit_load: SubmitLoad) -> ApiServer:
        from dflash_desktop.server.server import ApiServer
        from dflash_desktop.server.shelf import Shelf

        workbench = _workbench(paths)
        shelf = Shelf([paths.models], workbench.inspect, workbench.drafts_for, built_in_pairs())
        return ApiServer(lane, subscriber, submit_load=submit_load, shelf=shelf)

    return ServerParts(
        make_server=make_server,
        machine=Machine.this(),
        backups=paths.data / "backups",
        key_file=paths.config / "server-key",
        largest_context=lambda target, draft, options: plan_load(target, draft, options, Library()).max_context_tokens,
    )


def hub_parts(paths: AppPaths) -> HubParts:
    """Catalogue, downloads and the models on this machine. Nothing is read or asked before the window says so."""
    from dflash_desktop.hub.access_token import AccessTokenStore
    from dflash_desktop.hub.downloads import Downloads
    from dflash_desktop.hub.library import Library as ModelLibrary
    from dflash_desktop.hub.models_folder import ModelsFolder
    from dflash_desktop.hub.network import Network, read_network_settings
    from dflash_desktop.hub.releases import read_feed
    from dflash_desktop.ui.hub.desk import HubParts

    @cache
    def library() -> Library:
        return _workbench(paths).library

    network_file = paths.config / "network.json"
    token = AccessTokenStore(paths.config / "access-token", use_keyring=not paths.is_portable)
    network = Network(read_network_settings(network_file, os.environ), access_token=token.read)
    folder = ModelsFolder(paths.models)
    catalogue, speeds = _catalogue()
    return HubParts(
        catalogue=catalogue,
        speeds=speeds,
        network=network,
        network_file=network_file,
        access_token=token,
        folder=folder,
        downloads=Downloads(paths.data, network, folder),
        library=ModelLibrary(
            paths.data,
            folder,
            built_in=resource_path("models"),
            inspect=lambda file: header_facts(inspect_file(file, library())),
            misfit=lambda target, draft: misfit(target, draft, library()),
        ),
        plan=lambda target, draft, options: plan_load(target, draft, options, library()),
        release_feed=read_feed(resource_path()),
    )


def header_facts(file: ModelFile) -> HeaderFacts:
    """What the library of models wants to know of a file."""
    from dflash_desktop.hub.library import HeaderFacts

    return HeaderFacts(
        file.role,
        file.can_run,
        file.reason,
        file.architecture,
        file.name,
        file.quantization,
        file.n_parameters,
        file.context_tokens,
        file.cause,
    )


def _catalogue() -> tuple[Catalogue, DeviceSpeeds]:
    """Without a readable catalogue the window still opens: search and own files are not touched by that."""
    from dflash_desktop.hub.catalogue import Catalogue, DeviceSpeeds, read_catalogue, read_device_speeds

    folder = resource_path("catalogue")
    try:
        return read_catalogue(folder), read_device_speeds(folder)
    except AppError as error:
        log.error("%s", error)  # noqa: TRY400  the message says all
        nothing = DeviceSpeeds(version=1, plain_share=1, step_overhead_s=0, draft_speed_up=1, bandwidth_gb_per_s={})
        return Catalogue(version=1, pairs=()), nothing


def open_home(paths: AppPaths) -> Home:
    """Folders, and what became of the last runs. `end` of its marker is the last thing a run does."""
    from dflash_desktop.ui.parts import Home

    marker = RunMarker(paths.logs, __version__)
    return Home(paths, marker, marker.begin())


def open_settings(paths: AppPaths) -> SettingsStore:
    """The settings, with the level of the log that they want."""
    from dflash_desktop.ui.app import STATE_FILE

    older: dict[str, Any] = {}
    with suppress(OSError, ValueError, RecursionError):  # what the window itself remembered before there were settings
        older = json.loads((paths.config / STATE_FILE).read_text("utf-8"))
    store = SettingsStore(paths.config / SETTINGS_FILE, older)
    store.subscribe(lambda values: log_details(wanted=values.detailed_log))
    log_details(wanted=store.values.detailed_log)
    return store


def engine_tools(paths: AppPaths) -> EngineTools:
    """What the window asks beside the lane. The library is opened when the first thread asks."""
    from dflash_desktop.ui.parts import EngineTools

    @cache
    def bench() -> Workbench:
        return _workbench(paths)

    def read_device(name: str) -> Device:
        return choose_device(list_devices(bench().library), name)

    return EngineTools(
        plan=lambda target, draft, options: plan_load(target, draft, options, bench().library),
        inspect=lambda file: bench().inspect(file),
        drafts_for=lambda target: bench().drafts_for(target),
        read_device=read_device,
        plan_scored=lambda target, draft, options, pflash: plan_load(target, draft, options, bench().library, pflash),
    )


def find_pair(files: Sequence[Path], paths: AppPaths) -> PairFiles | None:
    """The target among `files` and its draft: one of them, else one that lies where drafts are looked for.

    None when all are drafts. Raises AppError when there is no such file, or it is no model that can run.
    """
    from dflash_desktop.ui.engine.pair_state import PairFiles

    for file in files:
        if not has_file(file):
            raise AppError(why_no_file(file))
    workbench = _workbench(paths)
    found = [workbench.inspect(file) for file in files]
    target = next((model for model in found if model.role != "draft"), None)
    if target is None:
        return None
    if not target.can_run:
        raise AppError(f"{target.path.name} cannot be run: {target.reason}", cause=target.cause)
    given = next((model.path for model in found if model.role == "draft"), None)
    if given is not None:
        return PairFiles(target.path, given)
    fitting = workbench.drafts_for(target.path)
    return PairFiles(target.path, fitting[0].path if fitting else None)


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
