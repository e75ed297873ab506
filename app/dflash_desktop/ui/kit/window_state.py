"""What the window remembers between starts: its place, its page, unsent text. State, not settings."""

from __future__ import annotations

import base64
import logging
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.json_file import read_json, write_json

VERSION = 1
Record = TypeVar("Record")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WindowState:
    geometry: str = ""  # QWidget.saveGeometry, base64
    page: str = "chat"
    composer_text: str = ""
    reply_settings: dict[str, Any] = field(default_factory=dict)
    has_side_panel: bool = False
    has_chat_list: bool = True
    zoom_percent: int = 100  # of the text of conversations
    last_folder: str = ""
    reloads_pair: bool = False  # the window is being built again, and a pair was loaded
    server: dict[str, Any] = field(default_factory=dict)  # ServeSettings

    def geometry_bytes(self) -> bytes:
        try:
            return base64.b64decode(self.geometry, validate=True)
        except ValueError:
            return b""


class WindowStateFile:
    """One JSON file, replaced as a whole: a crash leaves the old or the new one, never half of one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written: WindowState | None = None

    def read(self) -> WindowState:
        """The stored state; defaults where the file is missing, foreign or has other types."""
        try:
            stored = read_json(self._path)
        except AppError as error:
            log.warning("window state is unreadable, starting afresh: %s", error)
            return WindowState()
        if stored is None or stored.get("version") != VERSION:
            return WindowState()
        return restored(WindowState(), stored)

    def write(self, state: WindowState) -> bool:
        """Store `state` if it changed. False when the disk refuses; that is logged and costs nobody their work."""
        if state == self._written:
            return True
        try:
            write_json(self._path, {"version": VERSION, **asdict(state)})
        except OSError as error:
            log.warning("window state could not be written: %s", error)
            return False
        self._written = state
        return True


def restored(defaults: Record, stored: dict[str, Any]) -> Record:
    """The record with what is stored of it, where the stored value has the right type."""
    known = {
        name: stored[name]
        for name, default in asdict(defaults).items()  # type: ignore[call-overload]
        if _fits(stored.get(name), default)
    }
    return replace(defaults, **known)  # type: ignore[type-var]


def _fits(value: Any, default: Any) -> bool:
    if isinstance(default, float):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return type(value) is type(default)
