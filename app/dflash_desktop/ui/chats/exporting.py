"""Chats out to files and back in: asks where, works in a thread, says what came of it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QCoreApplication, QDateTime, QLocale, QMarginsF, QObject, Signal, Slot
from PySide6.QtGui import QFont, QPageLayout, QPageSize, QPdfWriter, QTextDocument
from PySide6.QtWidgets import QFileDialog, QWidget

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.sizes import disk_text
from dflash_desktop.chats.chat_file import ChatFile
from dflash_desktop.chats.export_text import to_html, to_markdown
from dflash_desktop.chats.json_format import from_json, to_json
from dflash_desktop.chats.records import Conversation
from dflash_desktop.chats.sections import ExportWords
from dflash_desktop.ui.chats.chat import Chat
from dflash_desktop.ui.chats.export_dialog import ExportDialog
from dflash_desktop.ui.chats.facts import facts_from
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.worker import Worker

ExportFormat = Literal["md", "html", "json", "pdf"]
MAX_IMPORT_BYTES = 10**9
_PAGE_MARGIN_MM = 18
_PDF_DPI = 96
_NAME_CHARS = 60
translate = QCoreApplication.translate


@dataclass(frozen=True, slots=True)
class ExportWish:
    """What to write, and where. `chat_id` None: all chats; then `destination` is a folder, unless it is for JSON."""

    chat_id: int | None
    format: ExportFormat
    all_branches: bool
    destination: Path


class Exporting(QObject):
    """Owns the thread in which files are written and read."""

    done = Signal(object)  # a sentence for the person
    failed = Signal(object)  # a sentence

    def __init__(self, theme: Theme, chat: Chat, window: QWidget) -> None:
        super().__init__()
        self._theme = theme
        self._chat = chat
        self._window = window
        self._worker = Worker("export-chats")
        self._dialog: ExportDialog | None = None

    def close(self) -> None:
        self._worker.close()

    # ---- asking

    @Slot(object)
    def ask(self, chat_id: int | None) -> None:
        """Ask what to write and where; None: all chats."""
        record = self._chat.keeper.record(chat_id) if chat_id is not None else None
        title = record.title if record else ""
        self._dialog = dialog = ExportDialog(self._theme, self._window, title, is_all=chat_id is None)
        dialog.accepted.connect(lambda: self._ask_where(dialog, chat_id, title))
        dialog.open()

    def _ask_where(self, dialog: ExportDialog, chat_id: int | None, title: str) -> None:
        format_ = dialog.format()
        if chat_id is None and format_ != "json":
            chosen = QFileDialog.getExistingDirectory(self._window, self.tr("Folder for the chats"))
        else:
            name = f"{file_name_of(title) if chat_id is not None else self.tr('chats')}.{format_}"
            chosen, _ = QFileDialog.getSaveFileName(self._window, self.tr("Export"), name)
        if chosen:
            self.export(ExportWish(chat_id, format_, dialog.all_branches(), Path(chosen)))

    @Slot()
    def ask_import(self) -> None:
        chosen, _ = QFileDialog.getOpenFileName(self._window, self.tr("Import chats"), filter="JSON (*.json)")
        if chosen:
            self.import_file(Path(chosen))

    # ---- doing

    def export(self, wish: ExportWish) -> None:
        """Write what is wished; `done` or `failed` follows."""
        talk = self._chat.talk
        if wish.chat_id == talk.chat_id:
            record = self._chat.keeper.record(talk.chat_id) or talk.record
            self._write(wish, [Conversation(record, tuple(one.record() for one in talk.messages()))])
        elif not self._chat.keeper.read(partial(self._read, wish)):
            self.failed.emit(self.tr("Only the chat that is open can be exported: there is no chat file."))

    def _read(self, wish: ExportWish, file: ChatFile) -> None:
        """On the store's thread."""
        ids = [wish.chat_id] if wish.chat_id is not None else [chat.chat_id for chat in file.chats()]
        found = [file.conversation(one) for one in ids]
        self._write(wish, [one for one in found if one is not None])

    def _write(self, wish: ExportWish, conversations: Sequence[Conversation]) -> None:
        words = export_words()
        self._worker.do(
            lambda: write(wish, conversations, words),
            lambda path: self.done.emit(self.tr("Exported to {0}").format(path)),
            lambda error: self.failed.emit(str(error)),
        )

    def import_file(self, path: Path) -> None:
        """Take the chats of a file that was exported as JSON."""
        self._worker.do(lambda: read_file(path), self._take, lambda error: self.failed.emit(str(error)))

    def _take(self, conversations: list[Conversation]) -> None:
        self._chat.keeper.add(conversations)
        self.done.emit(self.tr("{0} chats were imported.").format(len(conversations)))


def read_file(path: Path) -> list[Conversation]:
    """The chats of an exported file. Raises AppError."""
    try:
        if path.stat().st_size > MAX_IMPORT_BYTES:
            raise AppError(f"{path.name} is larger than {disk_text(MAX_IMPORT_BYTES)} and cannot be imported.")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise AppError(f"{path.name} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise AppError(f"{path.name} is no JSON file: it is not UTF-8.") from error
    return from_json(text, path.name)


def write(wish: ExportWish, conversations: Sequence[Conversation], words: ExportWords) -> Path:
    """Write the file or files and return where. Raises AppError."""
    if not conversations:
        raise AppError("There is nothing to export: the chat is gone.")
    try:
        if wish.format == "json":
            text = to_json(conversations, all_branches=wish.all_branches)
            _put(wish.destination, text.encode("utf-8", "replace"))
        elif wish.chat_id is not None:
            _write_one(wish, conversations[0], wish.destination, words)
        else:
            taken: set[str] = set()
            for one in conversations:
                name = _free_name(file_name_of(one.chat.title), taken)
                _write_one(wish, one, wish.destination / f"{name}.{wish.format}", words)
    except OSError as error:
        raise AppError(f"{wish.destination} cannot be written: {error.strerror or error}.") from error
    return wish.destination


def _write_one(wish: ExportWish, conversation: Conversation, path: Path, words: ExportWords) -> None:
    match wish.format:
        case "md":
            _put(path, to_markdown(conversation, words, all_branches=wish.all_branches).encode("utf-8", "replace"))
        case "html":
            _put(path, to_html(conversation, words, all_branches=wish.all_branches).encode("utf-8", "replace"))
        case _:
            write_pdf(to_html(conversation, words, all_branches=wish.all_branches, is_plain=True), path)


def write_pdf(html: str, path: Path) -> None:
    """Set a page of HTML as A4. Raises OSError."""
    part = _part_of(path)
    _put(part, b"")  # says in words why not, which the writer does not
    writer = QPdfWriter(str(part))
    writer.setResolution(_PDF_DPI)
    margins = QMarginsF(_PAGE_MARGIN_MM, _PAGE_MARGIN_MM, _PAGE_MARGIN_MM, _PAGE_MARGIN_MM)
    writer.setPageLayout(
        QPageLayout(
            QPageSize(QPageSize.PageSizeId.A4), QPageLayout.Orientation.Portrait, margins, QPageLayout.Unit.Millimeter
        )
    )
    document = QTextDocument()
    font = QFont()
    font.setPixelSize(14)
    document.setDefaultFont(font)
    document.setDefaultStyleSheet(
        "pre, code { font-family: monospace; font-size: 12px; } h1 { font-size: 24px; } h2 { font-size: 15px; } "
        "pre { background-color: #f2f0ec; } .facts { color: #777777; font-size: 11px; } .error { color: #b3262b; } "
        "blockquote { color: #666666; } td, th { padding: 4px; }"
    )
    document.setHtml(html)
    document.print_(writer)
    part.replace(path)


def _put(path: Path, data: bytes) -> None:
    """Write the file as a whole or not at all."""
    part = _part_of(path)
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise


def _part_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def file_name_of(title: str) -> str:
    """A title as a file name that every system takes."""
    name = re.sub(r'[\x00-\x1f<>:"/\\|?*]+', " ", title)
    name = " ".join(name.split())[:_NAME_CHARS].strip(" .")
    return name if name and not re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)", name) else f"chat {name}".strip()


def _free_name(name: str, taken: set[str]) -> str:
    free, number = name, 2
    while free.casefold() in taken:
        free = f"{name} {number}"
        number += 1
    taken.add(free.casefold())
    return free


def export_words() -> ExportWords:
    """The words of exported files in the language of the window."""

    def when(seconds: float) -> str:
        return QLocale().toString(QDateTime.fromSecsSinceEpoch(int(seconds)), QLocale.FormatType.ShortFormat)

    def facts_line(stored: object) -> str:
        facts = facts_from(stored) if isinstance(stored, dict) else None
        if facts is None:
            return ""
        return "  ·  ".join(part for part in (facts.asked.model_name, facts.line()) if part)

    return ExportWords(
        roles={
            "user": translate("export", "You"),
            "assistant": translate("export", "Answer"),
            "system": translate("export", "System"),
            "tool": translate("export", "Tool result"),
        },
        thoughts=translate("export", "Thoughts"),
        attached=translate("export", "Attached:"),
        version=translate("export", "version {0} of {1}"),
        when=when,
        facts=facts_line,
    )
