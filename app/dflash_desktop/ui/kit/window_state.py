"""What the window remembers between starts: its place, its page, unsent text. State, not settings."""

from __future__ import annotations

import base64
import json
import logging
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

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
            stored = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return WindowState()
        except (OSError, ValueError, RecursionError) as error:
            log.warning("window state is unreadable, starting afresh: %s", error)
            return WindowState()
        if not isinstance(stored, dict) or stored.get("version") != VERSION:
            return WindowState()
        return restored(WindowState(), stored)

    def write(self, state: WindowState) -> bool:
        """Store `state` if it changed. False when the disk refuses; that is logged and costs nobody their work."""
        if state == self._written:
            return True
        text = json.dumps({"version": VERSION, **asdict(state)}, indent=1)
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}.part")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("w", encoding="ascii") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
        except OSError as error:
            log.warning("window state could not be written: %s", error)
            with suppress(OSError):
                temporary.unlink()
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
