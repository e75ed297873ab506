"""The models on this machine as rows of a table."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from dflash_desktop.hub.library import LibraryFile
from dflash_desktop.ui.hub.words import place_words
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.cause_words import told

Index = QModelIndex | QPersistentModelIndex
NAME, KIND, SIZE, PLACE = range(4)


class LibraryItemModel(QAbstractTableModel):
    """Targets first, then drafts, then what cannot be used, each by name."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._files: list[LibraryFile] = []

    def show_files(self, files: Sequence[LibraryFile]) -> None:
        """Replace the list; only a scan does that, never a timer."""
        self.beginResetModel()
        self._files = sorted(files, key=lambda file: (_order(file), file.name.casefold()))
        self.endResetModel()

    def file(self, row: int) -> LibraryFile | None:
        return self._files[row] if 0 <= row < len(self._files) else None

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  Qt's own default
        return 0 if parent.isValid() else len(self._files)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else 4

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole and section == SIZE:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        return (self.tr("Model"), self.tr("What it is"), self.tr("Size"), self.tr("Where"))[section]

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        file = self.file(index.row())
        if file is None:
            return None
        if role == Qt.ItemDataRole.ToolTipRole:
            sentence, cause = file.why_not
            return f"{file.path}\n{told(cause, sentence)}" if sentence else str(file.path)
        if role == Qt.ItemDataRole.TextAlignmentRole and index.column() == SIZE:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role not in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return None
        match index.column():
            case 0:
                return file.name
            case 1:
                return self.kind_words(file)
            case 2:
                return numbers.size(file.n_bytes)
            case _:
                return place_words(file.place.kind)

    def kind_words(self, file: LibraryFile) -> str:
        """target with or without a draft, draft, or why it cannot be used, in a few words."""
        if file.state == "part_missing":
            return self.tr("a part is missing")
        if file.facts is None:
            return self.tr("damaged or incomplete")
        if not file.facts.can_run:
            return self.tr("not supported: {0}").format(file.facts.architecture or file.facts.role)
        quantization = file.facts.quantization.upper()
        if file.facts.role == "draft":
            return self.tr("draft, {0}").format(quantization)
        if file.drafts:
            return self.tr("target, {0}, with a draft").format(quantization)
        return self.tr("target, {0}").format(quantization)


def _order(file: LibraryFile) -> int:
    if file.is_target:
        return 0 if file.drafts else 1
    return 2 if file.state == "ready" and file.facts is not None and file.facts.can_run else 3
