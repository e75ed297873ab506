"""The cards of other programs and what is done with them; files are touched in a thread, never in the GUI's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from dflash_desktop.base.errors import AppError
from dflash_desktop.clients.card import Card
from dflash_desktop.clients.catalogue import all_cards
from dflash_desktop.clients.endpoint import Endpoint, Machine
from dflash_desktop.clients.writer import FileEdit, Preview, SettingsWriter
from dflash_desktop.server.models import served_id
from dflash_desktop.ui.engine.pair_state import PairState
from dflash_desktop.ui.kit.worker import Worker
from dflash_desktop.ui.server.serving import Serving

ANY_MODEL = "local-model"
"""Stands for whatever is loaded: the server takes it, and so do cards that are shown before anything is."""
CLOSE_S = 5.0


@dataclass(frozen=True, slots=True)
class CardState:
    """A card, and whether we have written this client's settings."""

    card: Card
    can_undo: bool


class ClientDesk(QObject):
    """Keeps the cards true to the open port and the loaded model."""

    cards_changed = Signal()
    previewed = Signal(object, object)  # client id, list of Preview
    written = Signal(object, object)  # client id, the backup's folder
    undone = Signal(object)  # client id
    failed = Signal(object, object)  # client id, the sentence

    def __init__(self, serving: Serving, pair_state: PairState, machine: Machine, backups: Path) -> None:
        super().__init__()
        self._serving = serving
        self._pair_state = pair_state
        self._machine = machine
        self._writer = SettingsWriter(backups)
        self._worker = Worker("client-files")
        self._endpoint: Endpoint | None = None
        self._could_write = False
        self._shown: dict[str, tuple[FileEdit, ...]] = {}  # what the last preview showed, by client
        self.states: list[CardState] = []
        serving.changed.connect(self.on_changed)
        pair_state.changed.connect(self.on_changed)

    @property
    def can_write(self) -> bool:
        """Settings name a model and a port: there must be both."""
        return self._serving.is_listening and self._pair_state.pair is not None

    def endpoint(self) -> Endpoint:
        """The server as clients should be told of it."""
        serving, pair = self._serving, self._pair_state.pair
        name = served_id(pair) if pair is not None else ANY_MODEL
        return Endpoint(
            port=serving.port if serving.is_listening else serving.settings.port,
            model=name,
            context_tokens=pair.context_tokens if pair is not None else 0,
            key=serving.access_token,
        )

    def state(self, client_id: str) -> CardState | None:
        return next((each for each in self.states if each.card.client_id == client_id), None)

    @Slot()
    def on_changed(self) -> None:
        if self.states and self.endpoint() != self._endpoint:
            self.refresh()
        if self.can_write != self._could_write:
            self._could_write = self.can_write
            self.cards_changed.emit()

    @Slot()
    def refresh(self) -> None:
        """Look again which clients are here; `cards_changed` follows."""
        self._endpoint = self.endpoint()
        self._worker.do(partial(self._read, self._endpoint), self._on_read)

    def preview(self, client_id: str) -> None:
        """What writing would change; `previewed` or `failed` follows."""
        self._worker.do(
            partial(self._planned, client_id, self.endpoint()),
            partial(self._on_previewed, client_id),
            partial(self._on_failed, client_id),
        )

    def write(self, client_id: str) -> None:
        """Change the client's files to what the last preview showed, after a backup; `written` or `failed` follows."""
        edits = self._shown.get(client_id)
        if edits is not None:
            self._worker.do(
                partial(self._writer.write, client_id, edits),
                partial(self._on_written, client_id),
                partial(self._on_failed, client_id),
            )

    def undo(self, client_id: str) -> None:
        """Take the last write back; `undone` or `failed` follows."""
        state = self.state(client_id)
        if state is not None:
            self._worker.do(
                partial(self._writer.undo, client_id, state.card.edits),
                lambda _nothing: self._on_undone(client_id),
                partial(self._on_failed, client_id),
            )

    def close(self) -> None:
        self._worker.close(CLOSE_S)

    def _read(self, endpoint: Endpoint) -> list[CardState]:
        cards = all_cards(endpoint, self._machine)
        return [CardState(card, self._writer.can_undo(card.client_id)) for card in cards]

    def _on_read(self, states: list[CardState]) -> None:
        self.states = states
        self.cards_changed.emit()

    def _planned(self, client_id: str, endpoint: Endpoint) -> tuple[tuple[FileEdit, ...], list[Preview]]:
        # Made anew: the card that is shown may be of the port and model before.
        card = next(each for each in all_cards(endpoint, self._machine) if each.client_id == client_id)
        return card.edits, self._writer.preview(card.edits)

    def _on_previewed(self, client_id: str, planned: tuple[tuple[FileEdit, ...], list[Preview]]) -> None:
        self._shown[client_id], previews = planned
        self.previewed.emit(client_id, previews)

    def _on_written(self, client_id: str, folder: Path) -> None:
        self.written.emit(client_id, folder)
        self.refresh()

    def _on_undone(self, client_id: str) -> None:
        self.undone.emit(client_id)
        self.refresh()

    def _on_failed(self, client_id: str, error: Exception) -> None:
        if isinstance(error, AppError):
            self.failed.emit(client_id, str(error))
        else:
            words = self.tr("The settings could not be changed ({0}). Details are in the log file.")
            self.failed.emit(client_id, words.format(type(error).__name__))
        self.refresh()
