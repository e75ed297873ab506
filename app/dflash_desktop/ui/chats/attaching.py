"""Attaching files: chosen or dropped, read in a thread, put above the field; and looking at what was attached."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QDialog, QFileDialog, QPlainTextEdit, QVBoxLayout, QWidget

from dflash_desktop.base.presence import has_file
from dflash_desktop.chats.attachments import read_attachment
from dflash_desktop.chats.records import Attachment
from dflash_desktop.ui.chats.message_parts import attachment_words
from dflash_desktop.ui.kit.palette import L
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import label
from dflash_desktop.ui.kit.worker import Worker

SHOWN_CHARS = 200_000
LONGEST_LINE = 2000
"""Qt takes minutes to lay out a line of a megabyte; longer ones are broken for show."""
_NOT_TEXT = (".gguf", ".safetensors")


class Attaching(QObject):
    """Gives each file's text to `attached`, or says why not with `failed`."""

    attached = Signal(object)  # Attachment
    failed = Signal(object)  # a sentence

    def __init__(self, theme: Theme, window: QWidget) -> None:
        super().__init__()
        self._theme = theme
        self._window = window
        self._worker = Worker("read-attachments")

    def close(self) -> None:
        self._worker.close()

    @Slot()
    def choose(self) -> None:
        files, _ = QFileDialog.getOpenFileNames(self._window, self.tr("Attach text or PDF files"))
        self.read([Path(file) for file in files])

    def read(self, files: Sequence[Path]) -> None:
        for file in files:
            self._worker.do(
                lambda path=file: read_attachment(path),  # type: ignore[misc]
                self.attached.emit,
                lambda error: self.failed.emit(str(error)),
            )

    @Slot(object)
    def show_text(self, attachment: Attachment) -> None:
        """A window with what was attached."""
        dialog = AttachmentDialog(self._theme, attachment, self._window)
        dialog.show()


class AttachmentDialog(QDialog):
    """Deletes itself when closed."""

    def __init__(self, theme: Theme, attachment: Attachment, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(attachment.name or self.tr("Pasted text"))
        self.resize(theme.px(640), theme.px(480))
        view = QPlainTextEdit()
        view.setReadOnly(True)
        view.setFont(theme.code_font("body"))
        view.setAccessibleName(self.windowTitle())
        view.setPlainText(shown_text(attachment.text))
        column = QVBoxLayout(self)
        column.setContentsMargins(L, L, L, L)
        column.addWidget(label(theme, attachment_words(attachment), "body", tone="muted"))
        column.addWidget(view, 1)
        if len(attachment.text) > SHOWN_CHARS:
            column.addWidget(
                label(theme, self.tr("The beginning is shown; all of it is sent."), "caption", tone="muted")
            )


def shown_text(text: str) -> str:
    """The beginning of `text`, with lines that Qt can lay out."""
    lines = []
    for line in text[:SHOWN_CHARS].split("\n"):
        lines += [line[start : start + LONGEST_LINE] for start in range(0, max(1, len(line)), LONGEST_LINE)]
    return "\n".join(lines)


def dropped_texts(event: QDropEvent) -> list[Path]:
    """Files that were dropped and may be text; models belong to the window."""
    urls = event.mimeData().urls() if event.mimeData().hasUrls() else []
    files = [Path(url.toLocalFile()) for url in urls if url.isLocalFile()]
    return [file for file in files if has_file(file) and file.suffix.lower() not in _NOT_TEXT]
