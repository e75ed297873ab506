"""What a window shows: everything between the engine and the widgets. It outlives the widgets, which are built again
when the language changes: the loaded pair, running replies, the server and downloads stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QObject, Slot

from dflash_desktop.engine.devices import Device
from dflash_desktop.settings.store import SettingsStore
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.chats.chat import Chat
from dflash_desktop.ui.chats.keeper import ChatKeeper
from dflash_desktop.ui.engine.live_figures import LiveFigures
from dflash_desktop.ui.engine.load_desk import LoadDesk
from dflash_desktop.ui.engine.pair_state import PairState, Phase, StarterPair
from dflash_desktop.ui.hub.desk import ModelsDesk
from dflash_desktop.ui.hub.scorers import scorer_files
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.window_state import WindowStateFile, restored
from dflash_desktop.ui.parts import Parts
from dflash_desktop.ui.server.serve_desk import ServeDesk
from dflash_desktop.ui.server.serving import ServeSettings
from dflash_desktop.ui.settings.desk import SettingsDesk


class Desks(QObject):
    """One of each; built once, closed once. Knows no widget."""

    def __init__(
        self,
        bridge: EngineBridge,
        theme: Theme,
        starter: StarterPair | None,
        state_file: WindowStateFile,
        parts: Parts | None = None,
    ) -> None:
        super().__init__()
        self.parts = parts or Parts()
        self.settings = self.parts.settings or SettingsStore(None)
        self.bridge = bridge
        self.starter = starter
        self.state_file = state_file
        self.state = state_file.read()
        self.devices: tuple[Sequence[Device], str] | None = None  # and why there is none; None: not listed yet
        self.has_begun = False  # what is done once, after the first window was painted
        self.pair_state = PairState(bridge, starter, self.settings.values.draft_mode, self.parts.pair_memory)
        self.load = LoadDesk(bridge, theme, self.pair_state, self.settings, self.parts)
        self.settings_desk = SettingsDesk(self.settings, theme, self.pair_state, self.parts.home)
        self.figures = LiveFigures(bridge)
        self.chat = Chat(bridge, self.pair_state, ChatKeeper(self.parts.chats))
        self.serve = self._make_serve_desk(theme)
        self.models = ModelsDesk(self.parts.hub) if self.parts.hub is not None else None
        if self.models is not None:
            self.models.shelf_changed.connect(self.offer_scorers)
            self.pair_state.load_began.connect(self.offer_scorers)

    def _make_serve_desk(self, theme: Theme) -> ServeDesk | None:
        if self.parts.server is None:
            return None
        settings = restored(ServeSettings(), self.state.server)
        last_pair = partial(self.load.pair_to_serve, self.starter)
        return ServeDesk(self.parts.server, self.bridge, self.pair_state, theme, settings, last_pair=last_pair)

    def take_devices(self, devices: Sequence[Device], problem: str) -> None:
        """What the engine has listed, or why it could not."""
        self.devices = (devices, problem)
        if self.models is not None:
            self.models.show_devices(devices, problem)

    @Slot()
    def offer_scorers(self) -> None:
        """The models of this machine that can rate prompts for what is loaded."""
        if self.models is not None and self.models.shelf is not None:
            asked = self.pair_state.asked
            target_name = asked.target.name if asked is not None else ""
            self.load.show_scorers(scorer_files(self.models.shelf, self.models.catalogue, target_name))

    def start_work(self) -> None:
        """After the first window is shown: what ran when the last one was closed goes on. Once."""
        if self.has_begun:
            return
        self.has_begun = True
        if self.serve is not None:
            self.serve.start_if_it_ran()
        if self.models is not None:
            self.models.start()

    def close(self) -> None:
        """End what runs, keep what was written, end every thread."""
        self.chat.replies.stop_all()
        self.chat.keeper.close()
        if self.pair_state.phase is Phase.LOADING:
            self.pair_state.cancel_load()
        self.settings_desk.close()
        self.load.close()
        if self.models is not None:
            self.models.close()
        if self.serve is not None:
            self.serve.close()
