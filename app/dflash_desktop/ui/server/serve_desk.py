"""Everything about serving that lives as long as the window, whether its page was built or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

from dflash_desktop.engine.events import GenerationDone
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.clients.client_desk import ClientDesk
from dflash_desktop.ui.clients.client_ticks import ClientTicks
from dflash_desktop.ui.engine.pair_state import PairFiles, PairState
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.server import serve_words
from dflash_desktop.ui.server.bridge import ServerBridge, ServerParts
from dflash_desktop.ui.server.key_file import KeyFile
from dflash_desktop.ui.server.request_item_model import RequestItemModel
from dflash_desktop.ui.server.serve_now import ServeNow
from dflash_desktop.ui.server.serving import ServePhase, ServeSettings, Serving


class ServeDesk(QObject):
    """Built by the window from ServerParts; `close` ends the server and every thread of it."""

    badge_changed = Signal(object, object)  # colour of the dot on the page's icon, and what it says
    hint_due = Signal()  # the first answer is there: a good moment to say that other programs can have it too

    def __init__(
        self,
        parts: ServerParts,
        engine_bridge: EngineBridge,
        pair_state: PairState,
        theme: Theme,
        settings: ServeSettings,
        last_pair: Callable[[], PairFiles | None],
    ) -> None:
        super().__init__()
        self._pair_state = pair_state
        self.bridge = ServerBridge(parts.make_server, engine_bridge)
        self.serving = Serving(self.bridge, engine_bridge, pair_state, KeyFile(parts.key_file), settings)
        self.requests = RequestItemModel(theme, self)
        self.ticks = ClientTicks()
        self.clients = ClientDesk(self.serving, pair_state, parts.machine, parts.backups)
        self.serve_now = ServeNow(self.serving, pair_state, parts.largest_context, last_pair)
        self.bridge.server_event.connect(self.requests.on_server_event)
        self.bridge.server_event.connect(self.ticks.on_server_event)
        self.serving.changed.connect(self.on_serving_changed)
        engine_bridge.engine_event.connect(self.on_engine_event)

    def start_if_it_ran(self) -> None:
        """The window was closed with the server on: on it is again."""
        settings = self.serving.settings
        if settings.is_on:
            self.serving.choose(replace(settings, is_on=False))  # once: a window may be shown more than once
            self.serving.start()

    @Slot()
    def on_serving_changed(self) -> None:
        phase = self.serving.phase
        if phase is ServePhase.OFF:
            self.badge_changed.emit("", "")
        else:
            words = serve_words.state_words(self.serving, self._pair_state)
            self.badge_changed.emit(serve_words.tone(phase), words)

    @Slot(object)
    def on_engine_event(self, event: object) -> None:
        is_answer = isinstance(event, GenerationDone) and event.finish_reason in ("stop", "length")
        if is_answer and not self.serving.settings.has_seen_hint and not self.serving.is_listening:
            self.hint_due.emit()

    def take_hint_as_shown(self) -> None:
        """Once and for all."""
        self.serving.choose(replace(self.serving.settings, has_seen_hint=True))

    def remembered(self) -> dict[str, Any]:
        """For the next start: the settings, and whether the server is on."""
        return asdict(self.serving.remembered())

    def close(self) -> None:
        """Cancel what clients wait for, close the port, end the threads. Under a second unless something hangs."""
        self.serve_now.close()
        self.bridge.close()
        self.clients.close()
