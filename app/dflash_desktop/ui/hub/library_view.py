"""What is on this machine, wherever it lies: load, check, repair, delete; and folders of the person's own."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QDir, QModelIndex, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QHeaderView, QTableView, QVBoxLayout, QWidget

from dflash_desktop.hub.library import LibraryFile, LibraryPlace
from dflash_desktop.ui.engine.pair_state import PairFiles
from dflash_desktop.ui.hub.desk import ModelsDesk
from dflash_desktop.ui.hub.library_item_model import NAME, LibraryItemModel
from dflash_desktop.ui.hub.words import place_words
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.cause_words import told
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import M, S
from dflash_desktop.ui.kit.tables import row_table
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import Card, icon_button, label, push_button
from dflash_desktop.ui.settings.confirm_button import ConfirmButton

ROW_PIXELS = 36
LEAST_ROWS, MOST_ROWS = 4, 14


class LibraryView(QWidget):
    """Follows the desk's shelf."""

    load_wanted = Signal(object)  # PairFiles
    told = Signal(object)  # str: something was done
    refused = Signal(object)  # str

    def __init__(self, theme: Theme, icons: Icons, desk: ModelsDesk) -> None:
        super().__init__()
        self._theme = theme
        self._icons = icons
        self._desk = desk
        self._in_use: tuple[Path, ...] = ()
        self.model = LibraryItemModel(self)
        self.table = self._build_table()
        self._lead = label(theme, "", "body", tone="muted", wraps=True)
        self._about = label(theme, "", "caption", tone="muted", wraps=True)
        self._details = label(theme, "", "caption", tone="muted", wraps=True)  # the engine's own sentence
        self._details.hide()
        self.details_button = push_button(theme, self.tr("Details"), "link")
        self.details_button.setCheckable(True)
        self.details_button.toggled.connect(self._details.setVisible)
        self.load_button = push_button(theme, self.tr("Load"), "primary")
        self.folder_button = push_button(theme, self.tr("Show in folder"), "secondary")
        self.check_button = push_button(theme, self.tr("Check"), "secondary")
        self.check_button.setToolTip(self.tr("Read the file through and compare it with the hub's hash"))
        self.repair_button = push_button(theme, self.tr("Repair"), "secondary")
        self.delete_button = ConfirmButton(theme, self.tr("Delete"), self.tr("Delete the file?"))
        self.add_button = push_button(theme, self.tr("Add a folder…"), "secondary")
        self.again_button = icon_button(icons, "refresh", self.tr("Look again"), size=16)
        self._places = QVBoxLayout()
        self._broken: set[Path] = set()  # found damaged by `check`
        self._build()
        self.load_button.clicked.connect(self.on_load_clicked)
        self.folder_button.clicked.connect(self.on_folder_clicked)
        self.check_button.clicked.connect(self.on_check_clicked)
        self.repair_button.clicked.connect(self.on_repair_clicked)
        self.delete_button.confirmed.connect(self.on_delete_confirmed)
        self.add_button.clicked.connect(self.on_add_clicked)
        self.again_button.clicked.connect(desk.scan)
        self.table.selectionModel().currentRowChanged.connect(self.on_current_changed)
        self.table.activated.connect(self.on_load_clicked)
        desk.shelf_changed.connect(self.on_shelf_changed)
        self.on_shelf_changed()

    def _build(self) -> None:
        buttons = QHBoxLayout()
        buttons.setSpacing(S)
        for button in (self.load_button, self.folder_button, self.check_button, self.repair_button, self.delete_button):
            buttons.addWidget(button)
        buttons.addStretch(1)
        card = Card(self._theme)
        card.body.addWidget(self.table)
        about = QHBoxLayout()
        about.setSpacing(S)
        about.addWidget(self._about, 1)
        about.addWidget(self.details_button, 0, Qt.AlignmentFlag.AlignTop)
        card.body.addLayout(about)
        card.body.addWidget(self._details)
        card.body.addLayout(buttons)
        places = Card(self._theme, self.tr("Places"))
        places.head.addWidget(self.again_button)
        places.head.addWidget(self.add_button)
        self._places.setSpacing(S)
        places.body.addLayout(self._places)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(M)
        column.addWidget(self._lead)
        column.addWidget(card)
        column.addWidget(places)
        column.addStretch(1)

    def _build_table(self) -> QTableView:
        table = row_table(self._theme, self.model, self.tr("Models on this machine"), row_pixels=ROW_PIXELS)
        heads = table.horizontalHeader()
        heads.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        heads.setSectionResizeMode(NAME, QHeaderView.ResizeMode.Stretch)
        return table

    def show_in_use(self, files: tuple[Path, ...]) -> None:
        """The files of the loaded pair: they are not deleted."""
        self._in_use = files
        self._show_buttons(self.chosen())

    def chosen(self) -> LibraryFile | None:
        return self.model.file(self.table.currentIndex().row())

    @Slot()
    def on_shelf_changed(self) -> None:
        shelf = self._desk.shelf
        if shelf is None:
            self._lead.setText(self.tr("Looking for models on this machine"))
            self._show_buttons(None)
            return
        before = self.chosen()
        self.model.show_files(shelf.files)
        rows = range(self.model.rowCount())
        row = next((row for row in rows if before and self.model.file(row) == before), 0)
        self.table.selectRow(row)
        words = self.tr("Can be loaded: {0}. Files are used where they are; nothing is copied.")
        self._lead.setText(words.format(numbers.count(len(shelf.targets()))))
        n_rows = min(max(LEAST_ROWS, self.model.rowCount()), MOST_ROWS)
        head = self.table.horizontalHeader().sizeHint().height()
        self.table.setFixedHeight(head + n_rows * self._theme.px(ROW_PIXELS) + 4)
        self._show_places(shelf.places)
        self._show_buttons(self.chosen())

    def _show_places(self, places: tuple[LibraryPlace, ...]) -> None:
        while (item := self._places.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        for place in places:
            self._places.addWidget(self._place_row(place))

    def _place_row(self, found: LibraryPlace) -> QWidget:
        path = QDir.toNativeSeparators(str(found.place.path))
        if found.is_present:
            words = self.tr("{0} (models: {1})").format(place_words(found.place.kind), numbers.count(found.n_files))
        elif found.place.kind == "ours":
            words = self.tr("{0} (nothing yet)").format(place_words(found.place.kind))
        else:
            words = self.tr("{0}: not there now. If it is on a drive, connect it.").format(
                place_words(found.place.kind)
            )
        box = QWidget()
        row = QHBoxLayout(box)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(S)
        text = QVBoxLayout()
        text.setSpacing(0)
        is_missing = not found.is_present and found.place.kind != "ours"
        text.addWidget(label(self._theme, words, "body", tone="bad" if is_missing else "", wraps=True))
        text.addWidget(label(self._theme, path, "caption", tone="muted", wraps=True))
        row.addLayout(text, 1)
        if found.place.kind == "folder":
            drop = icon_button(self._icons, "close", self.tr("Look into {0} no more").format(path), size=16)
            drop.clicked.connect(lambda: self._desk.drop_place(found.place.path))
            row.addWidget(drop)
        return box

    @Slot(QModelIndex, QModelIndex)
    def on_current_changed(self, _now: QModelIndex, _before: QModelIndex) -> None:
        self._show_buttons(self.chosen())

    def _show_buttons(self, file: LibraryFile | None) -> None:
        is_used = file is not None and any(part in self._in_use for part in file.parts)
        self.load_button.setEnabled(file is not None and file.is_target)
        self.folder_button.setEnabled(file is not None)
        self.check_button.setEnabled(file is not None and file.is_ours)
        is_broken = file is not None and (file.facts is None or file.path in self._broken)
        self.repair_button.setVisible(file is not None and file.is_ours and is_broken and file.state != "part_missing")
        self.delete_button.setEnabled(file is not None and file.is_ours and not is_used)
        words = self._about_words(file, is_used=is_used) if file is not None else ""
        sentence = file.why_not[0] if file is not None and file.state != "part_missing" else ""
        self._about.setText(words)
        self._details.setText(sentence)
        self.details_button.setVisible(bool(sentence) and sentence != words)
        if self.details_button.isHidden():
            self.details_button.setChecked(False)

    def _about_words(self, file: LibraryFile, *, is_used: bool) -> str:
        if file.state == "part_missing":
            return self.tr("{0} is missing. Without it the model cannot be opened.").format(file.problem)
        sentence, cause = file.why_not
        if sentence:
            return told(cause, sentence)
        if is_used:
            return self.tr("It is loaded now: unload it before you delete it.")
        if file.drafts:
            return self.tr("Its draft here: {0}").format(file.drafts[0].parent.name + "/" + file.drafts[0].name)
        if file.is_target:
            return self.tr("No draft for it was found on this machine: it decodes alone.")
        return ""

    # ---- what the person wants

    @Slot()
    def on_load_clicked(self) -> None:
        file = self.chosen()
        if file is not None and file.is_target:
            self.load_wanted.emit(PairFiles(file.path, file.drafts[0] if file.drafts else None))

    @Slot()
    def on_folder_clicked(self) -> None:
        file = self.chosen()
        if file is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(file.path.parent)))

    @Slot()
    def on_check_clicked(self) -> None:
        file = self.chosen()
        if file is None:
            return
        self.told.emit(self.tr("Reading {0} through").format(file.name))
        self._desk.check(file, lambda is_sound: self._tell_check(file, is_sound=is_sound))

    def _tell_check(self, file: LibraryFile, *, is_sound: bool | None) -> None:
        if is_sound is None:
            self.told.emit(self.tr("Nobody knows what {0} should be: it was not downloaded here.").format(file.name))
        elif is_sound:
            self._broken.discard(file.path)
            self.told.emit(self.tr("{0} is sound: every byte is as on the hub.").format(file.name))
        else:
            self._broken.add(file.path)
            words = self.tr("{0} is damaged. Repair fetches the damaged parts again, and only those.")
            self.refused.emit(words.format(file.name))
        self._show_buttons(self.chosen())

    @Slot()
    def on_repair_clicked(self) -> None:
        file = self.chosen()
        if file is not None:
            self._broken.discard(file.path)
            self._desk.repair(file)

    @Slot()
    def on_delete_confirmed(self) -> None:
        file = self.chosen()
        if file is not None and file.is_ours:
            words = self.tr("{0} is deleted: {1} are free again.")
            self._desk.delete(file, lambda n_bytes: self.told.emit(words.format(file.name, numbers.size(n_bytes))))

    @Slot()
    def on_add_clicked(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, self.tr("A folder with models"), str(Path.home()))
        if chosen:
            self._desk.add_place(Path(chosen))
