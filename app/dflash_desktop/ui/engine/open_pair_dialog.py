"""Open one's own model: a target file and, if there is one, the draft made for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QDir, Qt, Signal, Slot
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from dflash_desktop.engine.requests import LoadOptions
from dflash_desktop.ui.engine.pair_state import PairFiles
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import XL, XS, L, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, icon_button, label, push_button, style_spin

CONTEXT_STEP = 1024
MAX_CONTEXT = 1 << 20
SUFFIX = ".gguf"


class OpenPairDialog(QDialog):
    """Non-modal; `pair_chosen` says what to load. Files may be dropped on it."""

    pair_chosen = Signal(object)  # PairFiles
    folder_used = Signal(object)  # str

    def __init__(self, theme: Theme, icons: Icons, parent: QWidget, folder: str) -> None:
        super().__init__(parent)
        self._theme = theme
        self._folder = folder
        self.setWindowTitle(self.tr("Open a model"))
        self.setAcceptDrops(True)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setMinimumWidth(theme.px(560))
        column = QVBoxLayout(self)
        column.setContentsMargins(XL, XL, XL, L)
        column.setSpacing(XS)
        column.addWidget(label(theme, self.tr("Open a model"), "title", weight=DEMI))
        words = self.tr("Files are used where they are; nothing is copied. You can drop them here.")
        column.addWidget(label(theme, words, "body", tone="muted", wraps=True))
        column.addSpacing(M)
        self.target = QLineEdit()
        self.draft = QLineEdit()
        self._add_file(
            column, icons, self.target, self.tr("Target"), self.tr("A GGUF file. Its answers are what you read.")
        )
        self._add_file(
            column,
            icons,
            self.draft,
            self.tr("Draft (optional)"),
            self.tr("The DFlash draft made for this target. It only changes speed."),
        )
        column.addWidget(label(theme, self.tr("Context"), "body", weight=DEMI))
        self.context = QSpinBox()
        self.context.setRange(0, MAX_CONTEXT)
        self.context.setSingleStep(CONTEXT_STEP)
        self.context.setSpecialValueText(self.tr("let the engine choose"))
        self.context.setSuffix(self.tr(" tokens"))
        self.context.setAccessibleName(self.tr("Context in tokens"))
        self.context.setMinimumHeight(theme.px(32))
        self.context.setFixedWidth(theme.px(220))
        style_spin(self.context)
        column.addWidget(self.context)
        column.addSpacing(L)
        self._problem = label(theme, "", "body", tone="bad", wraps=True)
        self._problem.hide()
        column.addWidget(self._problem)
        buttons = QHBoxLayout()
        buttons.setSpacing(S)
        buttons.addStretch(1)
        cancel = push_button(theme, self.tr("Cancel"), "secondary")
        self.load_button = push_button(theme, self.tr("Load"), "primary")
        self.load_button.setDefault(True)
        buttons.addWidget(cancel)
        buttons.addWidget(self.load_button)
        column.addLayout(buttons)
        cancel.clicked.connect(self.reject)
        self.load_button.clicked.connect(self.on_load_clicked)
        self.target.textChanged.connect(self.on_edited)
        self.draft.textChanged.connect(self.on_edited)
        self.on_edited()

    def take_files(self, files: Sequence[Path]) -> None:
        """Sort dropped files into the two fields by their names; the person sees and corrects it."""
        ordered = sorted(files, key=lambda path: "dflash" in path.name.lower() or "draft" in path.name.lower())
        if len(ordered) == 1 and self.target.text() and "dflash" in ordered[0].name.lower():
            self.draft.setText(QDir.toNativeSeparators(str(ordered[0])))
            return
        for field, path in zip((self.target, self.draft), ordered, strict=False):
            field.setText(QDir.toNativeSeparators(str(path)))

    def _add_file(self, column: QVBoxLayout, icons: Icons, field: QLineEdit, name: str, help_words: str) -> None:
        title = label(self._theme, name, "body", weight=DEMI)
        title.setBuddy(field)
        field.setAccessibleName(name)
        field.setAccessibleDescription(help_words)
        field.setPlaceholderText(self.tr("No file chosen"))
        field.setMinimumHeight(self._theme.px(32))
        browse = icon_button(icons, "open", self.tr("Choose a file: {0}").format(name))
        browse.clicked.connect(lambda: self._browse(field, name))
        row = QHBoxLayout()
        row.setSpacing(S)
        row.addWidget(field, 1)
        row.addWidget(browse)
        column.addWidget(title)
        column.addLayout(row)
        column.addWidget(label(self._theme, help_words, "caption", tone="muted", wraps=True))
        column.addSpacing(M)

    def _browse(self, field: QLineEdit, name: str) -> None:
        begin = field.text() or self._folder
        chosen, _ = QFileDialog.getOpenFileName(self, name, begin, self.tr("Models (*.gguf);;All files (*)"))
        if chosen:
            field.setText(QDir.toNativeSeparators(chosen))
            self._folder = str(Path(chosen).parent)
            self.folder_used.emit(self._folder)

    @Slot()
    def on_edited(self) -> None:
        self.load_button.setEnabled(bool(self.target.text().strip()))
        self._problem.hide()

    @Slot()
    def on_load_clicked(self) -> None:
        target = Path(self.target.text().strip())
        draft = Path(self.draft.text().strip()) if self.draft.text().strip() else None
        for path in (target, draft):
            if path is not None and not path.is_file():
                self._problem.setText(self.tr("There is no file {0}.").format(path))
                self._problem.show()
                return
        if draft is not None and draft.resolve() == target.resolve():
            self._problem.setText(self.tr("Target and draft are the same file. A draft is a file of its own."))
            self._problem.show()
            return
        self.pair_chosen.emit(PairFiles(target, draft, LoadOptions(context_tokens=self.context.value())))
        self.accept()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped_models(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        self.take_files(dropped_models(event))
        event.acceptProposedAction()


def dropped_models(event: QDropEvent) -> list[Path]:
    """The model files among what is being dropped."""
    paths = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
    return [path for path in paths if path.suffix.lower() == SUFFIX]
