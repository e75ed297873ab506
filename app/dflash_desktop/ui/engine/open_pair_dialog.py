"""Load a model: the target file, its draft if there is one, how to load them, and what that takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QDir, Qt, Signal, Slot
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from dflash_desktop.base.presence import has_file, is_there
from dflash_desktop.engine.inspect import ModelFile
from dflash_desktop.ui.engine.load_desk import LoadDesk
from dflash_desktop.ui.engine.pair_state import PairFiles
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import XL, XS, L, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, icon_button, label, push_button, rule

SUFFIX = ".gguf"
WIDTH, HEIGHT = 920, 760
MOST_FOUND = 3


class OpenPairDialog(QDialog):
    """Non-modal; `pair_chosen` says what to load. Files may be dropped on it."""

    pair_chosen = Signal(object)  # PairFiles
    folder_used = Signal(object)  # str

    def __init__(self, theme: Theme, icons: Icons, parent: QWidget, folder: str, desk: LoadDesk) -> None:
        super().__init__(parent)
        self._theme = theme
        self._folder = folder
        self._desk = desk
        self._is_draft_typed = False  # the person chose, or emptied, the draft: nothing is filled in any more
        self.panel = desk.make_panel(is_live=False)
        self.setWindowTitle(self.tr("Load a model"))
        self.setAcceptDrops(True)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        room = parent.window().size()
        self.resize(min(theme.px(WIDTH), room.width()), min(theme.px(HEIGHT), room.height()))
        self.target = QLineEdit()
        self.draft = QLineEdit()
        self._found: list[QPushButton] = []
        self._problem = label(theme, "", "body", tone="bad", wraps=True)
        self._problem.hide()
        self._build(icons)
        self.target.textChanged.connect(self.on_files_edited)
        self.draft.textChanged.connect(self.on_files_edited)
        self.draft.textEdited.connect(self.on_draft_typed)
        self.panel.changed.connect(self.on_panel_changed)
        self.panel.draft_dropped.connect(self.on_draft_dropped)
        if self.panel.planner is not None:
            self.panel.planner.drafts_ready.connect(self.on_drafts_found)
        self.finished.connect(lambda: desk.drop_panel(self.panel))
        self.on_files_edited()

    def _build(self, icons: Icons) -> None:
        page = QWidget()
        page.setProperty("kind", "page")
        inner = QVBoxLayout(page)
        inner.setContentsMargins(XL, L, XL, L)
        inner.setSpacing(XS)
        inner.addWidget(label(self._theme, self.tr("Load a model"), "title", weight=DEMI))
        words = self.tr("Files are used where they are; nothing is copied. You can drop them here.")
        inner.addWidget(label(self._theme, words, "body", tone="muted", wraps=True))
        inner.addSpacing(M)
        target_words = self.tr("A GGUF file. Its answers are what you read.")
        self._add_file(inner, icons, self.target, self.tr("Target"), target_words)
        draft_words = self.tr("The DFlash draft made for this target. It only changes speed.")
        self._add_file(inner, icons, self.draft, self.tr("Draft (optional)"), draft_words)
        self._found_row = QHBoxLayout()
        self._found_row.setSpacing(S)
        inner.addLayout(self._found_row)
        inner.addWidget(rule())
        inner.addSpacing(M)
        inner.addWidget(self.panel)
        inner.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(page)
        self.load_button = push_button(self._theme, self.tr("Load"), "primary")
        self.load_button.setDefault(True)
        self.load_button.clicked.connect(self.on_load_clicked)
        cancel = push_button(self._theme, self.tr("Cancel"), "secondary")
        cancel.clicked.connect(self.reject)
        buttons = QHBoxLayout()
        buttons.setContentsMargins(XL, M, XL, M)
        buttons.setSpacing(S)
        buttons.addWidget(self._problem, 1)
        buttons.addStretch(1)
        buttons.addWidget(cancel)
        buttons.addWidget(self.load_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(scroll, 1)
        column.addWidget(rule())
        column.addLayout(buttons)

    def show_pair(self, files: PairFiles) -> None:
        """Begin with these files, and no other draft than theirs."""
        self._is_draft_typed = True
        self.target.setText(QDir.toNativeSeparators(str(files.target)))
        self.draft.setText(QDir.toNativeSeparators(str(files.draft)) if files.draft is not None else "")

    def take_files(self, files: Sequence[Path]) -> None:
        """Sort dropped files into the two fields by their names; the person sees and corrects it."""
        ordered = sorted(files, key=lambda path: "dflash" in path.name.lower() or "draft" in path.name.lower())
        if len(ordered) == 1 and self.target.text() and "dflash" in ordered[0].name.lower():
            self._is_draft_typed = True
            self.draft.setText(QDir.toNativeSeparators(str(ordered[0])))
            return
        self._is_draft_typed = self._is_draft_typed or len(ordered) > 1
        for field, path in zip((self.target, self.draft), ordered, strict=False):
            field.setText(QDir.toNativeSeparators(str(path)))

    def _add_file(self, column: QVBoxLayout, icons: Icons, field: QLineEdit, name: str, help_words: str) -> None:
        title = label(self._theme, name, "body", weight=DEMI)
        title.setBuddy(field)
        field.setAccessibleName(name)
        field.setAccessibleDescription(help_words)
        field.setPlaceholderText(self.tr("No file chosen"))
        field.setFont(self._theme.font("body"))
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
        column.addSpacing(S)

    def _browse(self, field: QLineEdit, name: str) -> None:
        begin = field.text() or self._folder
        chosen, _ = QFileDialog.getOpenFileName(self, name, begin, self.tr("Models (*.gguf);;All files (*)"))
        if chosen:
            self._is_draft_typed = self._is_draft_typed or field is self.draft
            field.setText(QDir.toNativeSeparators(chosen))
            self._folder = str(Path(chosen).parent)
            self.folder_used.emit(self._folder)

    def _chosen(self) -> tuple[Path | None, Path | None]:
        target, draft = (field.text().strip() for field in (self.target, self.draft))
        return (Path(target) if target else None), (Path(draft) if draft else None)

    @Slot()
    def on_draft_typed(self) -> None:
        self._is_draft_typed = True

    @Slot()
    def on_draft_dropped(self) -> None:
        self._is_draft_typed = True
        self.draft.clear()

    @Slot()
    def on_files_edited(self) -> None:
        self._problem.hide()
        target, draft = self._chosen()
        if target is None or not has_file(target):
            self._show_found([])
        remembered = self._desk.recall(target) if target is not None else None
        if remembered is not None and draft is None and not self._is_draft_typed and remembered.draft:
            self.draft.setText(QDir.toNativeSeparators(remembered.draft))  # which brings us here again
            return
        self.panel.show_files(
            target if target is not None and has_file(target) else None,
            draft if draft is not None and is_there(draft) else None,
            remembered,
            self._desk.default_context(),
        )
        self.on_panel_changed()

    @Slot()
    def on_panel_changed(self) -> None:
        """Loading anyway stays possible: a plan may be wrong, and the engine refuses in words when memory runs out."""
        is_too_big = self.panel.is_too_big()
        words = self.tr("Load anyway") if is_too_big else self.tr("Load")
        self.load_button.setText(words)
        self.load_button.setAccessibleName(words)
        self.load_button.setToolTip(
            self.tr("Memory may run out. Then nothing is loaded, and you are told.") if is_too_big else ""
        )
        is_missing = bool(self.panel.devices.problem())
        self.load_button.setEnabled(bool(self.target.text().strip()) and not is_missing)

    @Slot(object)
    def on_drafts_found(self, drafts: Sequence[ModelFile]) -> None:
        self._show_found(drafts)
        if drafts and not self._is_draft_typed and not self.draft.text():
            self.draft.setText(QDir.toNativeSeparators(str(drafts[0].path)))

    def _show_found(self, drafts: Sequence[ModelFile]) -> None:
        while (item := self._found_row.takeAt(0)) is not None:
            if (old := item.widget()) is not None:
                old.hide()
                old.deleteLater()
        self._found = []
        if not drafts:
            return
        self._found_row.addWidget(label(self._theme, self.tr("Found on this computer:"), "caption", tone="muted"))
        for found in drafts[:MOST_FOUND]:
            # Published drafts are all called model.safetensors; their folder tells which one.
            name = found.path.parent.name if found.path.suffix == ".safetensors" else found.path.name
            button = push_button(self._theme, name, "link")
            button.setToolTip(str(found.path))
            button.clicked.connect(lambda _checked=False, path=found.path: self._use_draft(path))
            self._found_row.addWidget(button)
            self._found.append(button)
        self._found_row.addStretch(1)

    def _use_draft(self, path: Path) -> None:
        self._is_draft_typed = True
        self.draft.setText(QDir.toNativeSeparators(str(path)))

    @Slot()
    def on_load_clicked(self) -> None:
        target, draft = self._chosen()
        if target is None:
            return
        problem = self._why_not(target, draft)
        files = self.panel.files()
        if problem or files is None:
            self._problem.setText(problem or self.panel.devices.problem())
            self._problem.show()
            return
        self.pair_chosen.emit(files)
        self.accept()

    def _why_not(self, target: Path, draft: Path | None) -> str:
        if not has_file(target):
            return self.tr("There is no file {0}.").format(target)
        if draft is not None and not is_there(draft):  # a folder in Hugging Face's layout is a draft too
            return self.tr("There is no file {0}.").format(draft)
        if draft is not None and draft.resolve() == target.resolve():
            return self.tr("Target and draft are the same file. A draft is a file of its own.")
        return ""

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
