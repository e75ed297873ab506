"""Search the hub for GGUF models: nothing is asked before the button, nothing is fetched before a yes."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QHBoxLayout, QHeaderView, QLineEdit, QTableView, QVBoxLayout, QWidget

from dflash_desktop.engine.requests import LoadOptions
from dflash_desktop.hub.fit import Fit
from dflash_desktop.hub.offers import Offer
from dflash_desktop.hub.problems import HubProblem
from dflash_desktop.hub.repository import Repository
from dflash_desktop.hub.wanted import WantedFile
from dflash_desktop.ui.hub.desk import ModelsDesk
from dflash_desktop.ui.hub.words import fit_words
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import M, S
from dflash_desktop.ui.kit.tables import row_table
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import Card, label, push_button, set_tone

ROW_PIXELS = 34
TABLE_PIXELS = 320


class SearchView(QWidget):
    """Answers that come after the next question are dropped."""

    get_wanted = Signal(object)  # Offer
    failed = Signal(object)  # HubProblem

    def __init__(self, theme: Theme, icons: Icons, desk: ModelsDesk) -> None:
        super().__init__()
        self._theme = theme
        self._desk = desk
        self._question = 0  # which of them the answers on show belong to
        self._found: list[Repository] = []
        self._repository: Repository | None = None
        self._models: list[tuple[WantedFile, ...]] = []
        self.edit = QLineEdit()
        self.edit.setPlaceholderText(self.tr("Name of a model, or owner/repository"))
        self.edit.setAccessibleName(self.tr("Search the hub"))
        self.edit.setMinimumHeight(theme.px(34))
        self.search_button = push_button(theme, self.tr("Search the hub"), "primary")
        icons.put(self.search_button, "search", "on_accent", size=16)
        self._state = label(theme, "", "body", tone="muted", wraps=True)
        self.results = QStandardItemModel(self)
        self.files = QStandardItemModel(self)
        self.result_table = self._table(self.results, self.tr("Repositories"))
        self.file_table = self._table(self.files, self.tr("Models in the repository"))
        self._tables = QWidget()  # hidden while there is nothing to show in them
        self._tables.hide()
        self._fit = label(theme, "", "caption", tone="muted", wraps=True)
        self.fit_button = push_button(theme, self.tr("Does it fit?"), "secondary")
        self.fit_button.setToolTip(self.tr("Fetches the header of the file, and lets the engine plan with it"))
        self.get_button = push_button(theme, self.tr("Get it…"), "secondary")
        self._build()
        self.search_button.clicked.connect(self.on_search_clicked)
        self.edit.returnPressed.connect(self.on_search_clicked)
        self.result_table.selectionModel().currentRowChanged.connect(self.on_result_chosen)
        self.file_table.selectionModel().currentRowChanged.connect(self.on_file_chosen)
        self.fit_button.clicked.connect(self.on_fit_clicked)
        self.get_button.clicked.connect(self.on_get_clicked)
        self._say(self.tr("Nothing is sent before you press the button."))
        self._show_buttons()

    def _build(self) -> None:
        ask = QHBoxLayout()
        ask.setSpacing(S)
        ask.addWidget(self.edit, 1)
        ask.addWidget(self.search_button)
        buttons = QHBoxLayout()
        buttons.setSpacing(S)
        buttons.addWidget(self._fit, 1)
        buttons.addWidget(self.fit_button)
        buttons.addWidget(self.get_button)
        left, right = Card(self._theme), Card(self._theme)
        left.body.addWidget(self.result_table)
        right.body.addWidget(self.file_table)
        right.body.addLayout(buttons)
        tables = QHBoxLayout(self._tables)
        tables.setContentsMargins(0, 0, 0, 0)
        tables.setSpacing(M)
        tables.addWidget(left, 1)
        tables.addWidget(right, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(M)
        column.addLayout(ask)
        column.addWidget(self._state)
        column.addWidget(self._tables)
        column.addStretch(1)

    def _table(self, model: QStandardItemModel, name: str) -> QTableView:
        table = row_table(self._theme, model, name, row_pixels=ROW_PIXELS)
        table.setMinimumHeight(self._theme.px(TABLE_PIXELS))
        table.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        return table

    # ---- asking

    @Slot()
    def on_search_clicked(self) -> None:
        self._question += 1
        question = self._question
        self._say(self.tr("Asking the hub"))
        self._show_results([])
        words = self.edit.text().strip()
        self._desk.ask_search(
            words, lambda found: self._take_results(question, found), lambda problem: self._fail(question, problem)
        )

    def _take_results(self, question: int, found: list[Repository]) -> None:
        if question != self._question:
            return
        if found:
            self._say(self.tr("Found: {0}, the most downloaded first.").format(numbers.count(len(found))))
        else:
            self._say(self.tr("The hub has no GGUF model of that name."))
        self._show_results(found)

    def _fail(self, question: int, problem: HubProblem) -> None:
        if question == self._question:
            self._say("")
            self._tell("")
            self.failed.emit(problem)

    @Slot(QModelIndex, QModelIndex)
    def on_result_chosen(self, now: QModelIndex, _before: QModelIndex) -> None:
        if not 0 <= now.row() < len(self._found):
            return
        self._question += 1
        question = self._question
        self._show_repository(None)
        self._tell(self.tr("Asking the hub"))
        self._desk.ask_repository(
            self._found[now.row()].repo_id,
            lambda found: self._show_repository(found) if question == self._question else None,
            lambda problem: self._fail(question, problem),
        )

    @Slot(QModelIndex, QModelIndex)
    def on_file_chosen(self, _now: QModelIndex, _before: QModelIndex) -> None:
        self._tell("")
        self._show_buttons()

    @Slot()
    def on_fit_clicked(self) -> None:
        self._tell(self.tr("Fetching the header"))
        question = self._question

        def show(fit: Fit) -> None:
            if question == self._question:
                self._fit.setText(fit_words(fit))
                set_tone(self._fit, {"fits": "good", "tight": "flash", "too_large": "bad"}.get(fit.verdict, "muted"))

        def fail(problem: HubProblem) -> None:
            if question == self._question:
                self._tell("")
                self.failed.emit(problem)

        self._offer(lambda offer: self._desk.ask_fit(offer, LoadOptions(), show, fail))

    @Slot()
    def on_get_clicked(self) -> None:
        self._offer(self.get_wanted.emit)

    def _offer(self, then: Callable[[Offer], object]) -> None:
        row = self.file_table.currentIndex().row()
        if self._repository is not None and 0 <= row < len(self._models):
            self._desk.ask_file(self._repository, self._models[row], then, self.failed.emit)

    # ---- showing

    def _tell(self, words: str) -> None:
        """Beside the buttons: of the repository or the model that is chosen."""
        self._fit.setText(words)
        set_tone(self._fit, "muted")

    def _say(self, words: str) -> None:
        self._state.setText(words)
        self._state.setVisible(bool(words))

    def _show_results(self, found: list[Repository]) -> None:
        self._found = found
        self.results.clear()
        self.results.setHorizontalHeaderLabels([self.tr("Repository"), self.tr("Downloads")])
        for repo in found:
            name = self.tr("{0} (terms to accept)").format(repo.repo_id) if repo.is_gated else repo.repo_id
            self.results.appendRow([QStandardItem(name), _number(numbers.count(repo.n_downloads))])
        self._stretch_first(self.result_table)
        self._show_repository(None)
        self._tell(self.tr("Choose a repository: its models are listed here."))
        self._tables.setVisible(bool(found))

    def _show_repository(self, found: Repository | None) -> None:
        self._repository = found
        self._models = found.models() if found is not None else []
        self.files.clear()
        self.files.setHorizontalHeaderLabels([self.tr("Model"), self.tr("Size")])
        for parts in self._models:
            name = parts[0].name
            if len(parts) > 1:
                name = self.tr("{0} ({1} parts)").format(name, numbers.count(len(parts)))
            self.files.appendRow([QStandardItem(name), _number(numbers.size(sum(part.n_bytes for part in parts)))])
        self._stretch_first(self.file_table)
        is_empty = found is not None and not self._models
        self._tell(self.tr("No GGUF model is in this repository.") if is_empty else "")
        self._show_buttons()

    def _stretch_first(self, table: QTableView) -> None:
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter  # as the numbers below it
        table.model().setHeaderData(1, Qt.Orientation.Horizontal, right, Qt.ItemDataRole.TextAlignmentRole)
        table.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        table.horizontalHeader().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)

    def _show_buttons(self) -> None:
        is_chosen = 0 <= self.file_table.currentIndex().row() < len(self._models)
        self.fit_button.setEnabled(is_chosen)
        self.get_button.setEnabled(is_chosen)


def _number(words: str) -> QStandardItem:
    item = QStandardItem(words)
    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    return item
