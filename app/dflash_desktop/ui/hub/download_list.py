"""The downloads, one row each, updated in place; hidden while there are none."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from dflash_desktop.hub.download_status import RUNNING, UNFINISHED, DownloadStatus
from dflash_desktop.ui.hub.desk import ModelsDesk
from dflash_desktop.ui.hub.words import state_words
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import XS, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, Card, ElidedLabel, icon_button, label, push_button, set_tone
from dflash_desktop.ui.settings.confirm_button import ConfirmButton

PROGRESS_STEPS = 1000
WORTH_ASKING_BYTES = 100 * 2**20
"""What is dropped without a question when a download is cancelled."""


class DownloadRow(QFrame):
    """One download."""

    load_wanted = Signal(object)  # DownloadStatus

    def __init__(self, theme: Theme, icons: Icons, desk: ModelsDesk, row: DownloadStatus) -> None:
        super().__init__()
        self._icons = icons
        self._desk = desk
        self.row = row
        title = row.wanted.title
        self._title = ElidedLabel(theme, "body", weight=DEMI)
        self._title.setText(title)
        self.bar = QProgressBar()
        self.bar.setRange(0, PROGRESS_STEPS)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(self.tr("Progress of {0}").format(title))
        self.words = label(theme, "", "caption", tone="muted", wraps=True)
        self.words.setFont(theme.figure_font("caption", weight=theme.font("caption").weight()))
        self.load_button = push_button(theme, self.tr("Load"), "secondary")
        self.load_button.setAccessibleName(self.tr("Load {0}").format(title))
        self.pause_button = icon_button(icons, "pause", self.tr("Pause {0}").format(title), size=16)
        self.first_button = icon_button(icons, "up", self.tr("Fetch {0} first").format(title), size=16)
        self.remove_button = icon_button(icons, "close", self.tr("Take {0} off the list").format(title), size=16)
        self.cancel_button = ConfirmButton(theme, self.tr("Cancel"), self.tr("Delete what arrived?"))
        self._build()
        self.load_button.clicked.connect(lambda: self.load_wanted.emit(self.row))
        self.pause_button.clicked.connect(self.on_pause_clicked)
        self.first_button.clicked.connect(lambda: desk.move(self.row.download_id, 0))
        self.remove_button.clicked.connect(lambda: desk.remove(self.row.download_id))
        self.cancel_button.confirmed.connect(lambda: desk.remove(self.row.download_id))
        self.show_row(row, is_first=True)

    def _build(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(S)
        head.addWidget(self._title, 1)
        for button in (
            self.load_button,
            self.first_button,
            self.pause_button,
            self.cancel_button,
            self.remove_button,
        ):
            head.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, XS, 0, XS)
        column.setSpacing(XS)
        column.addLayout(head)
        column.addWidget(self.bar)
        column.addWidget(self.words)

    def show_row(self, row: DownloadStatus, *, is_first: bool) -> None:
        """The row as it is now; `is_first`: of the unfinished ones."""
        self.row = row
        is_done, is_going = row.state == "done", row.state in UNFINISHED
        self.bar.setVisible(not is_done)
        if row.state == "checking":
            self.bar.setValue(_steps(row.checked_bytes, row.check_total_bytes))
        else:
            self.bar.setValue(_steps(row.n_done_bytes, row.n_total_bytes))
        words = state_words(row)
        if self.words.text() != words:
            self.words.setText(words)
            self.bar.setAccessibleDescription(words)
        has_problem = row.problem is not None and row.problem.kind != "stalled"
        set_tone(self.words, "bad" if row.state == "failed" or has_problem else "good" if is_done else "muted")
        self.load_button.setVisible(is_done and self._desk.row_files(row) is not None)
        self.first_button.setVisible(is_going and not is_first)
        self.pause_button.setVisible(not is_done)
        self._show_pause(is_going=is_going, is_waiting=row.state == "waiting")
        is_cheap = row.n_done_bytes < WORTH_ASKING_BYTES
        self.cancel_button.setVisible(not is_done and not is_cheap)
        self.remove_button.setVisible(is_done or is_cheap)

    def _show_pause(self, *, is_going: bool, is_waiting: bool) -> None:
        title = self.row.wanted.title
        if is_waiting:
            icon, words = "refresh", self.tr("Try {0} again now").format(title)
        elif is_going:
            icon, words = "pause", self.tr("Pause {0}").format(title)
        else:
            icon, words = "play", self.tr("Go on with {0}").format(title)
        if self.pause_button.accessibleName() != words:
            self._icons.put(self.pause_button, icon, "muted", checked="accent_text", size=16)
            self.pause_button.setToolTip(words)
            self.pause_button.setAccessibleName(words)

    @Slot()
    def on_pause_clicked(self) -> None:
        is_loading = self.row.state in UNFINISHED and self.row.state != "waiting"
        (self._desk.pause if is_loading else self._desk.resume)(self.row.download_id)


class DownloadList(Card):
    """Follows the desk."""

    load_wanted = Signal(object)  # DownloadStatus

    def __init__(self, theme: Theme, icons: Icons, desk: ModelsDesk) -> None:
        super().__init__(theme, self.tr("Downloads"))
        self._theme = theme
        self._icons = icons
        self._desk = desk
        self._rows: dict[int, DownloadRow] = {}
        self.clear_button = push_button(theme, self.tr("Clear finished"), "link")
        self.clear_button.clicked.connect(desk.clear_done)
        self.head.addWidget(self.clear_button)
        self._box = QWidget()
        self._column = QVBoxLayout(self._box)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(M)
        self.body.addWidget(self._box)
        desk.rows_changed.connect(self.on_rows_changed)
        desk.row_moved.connect(self.on_row_moved)
        self.on_rows_changed()

    def row(self, download_id: int) -> DownloadRow:
        """The widget, for tests."""
        return self._rows[download_id]

    @Slot()
    def on_rows_changed(self) -> None:
        rows = self._desk.rows
        known = {row.download_id for row in rows}
        for download_id in [one for one in self._rows if one not in known]:
            widget = self._rows.pop(download_id)
            self._column.removeWidget(widget)
            widget.deleteLater()
        first = next((row.download_id for row in rows if row.state in UNFINISHED), None)
        for index, row in enumerate(rows):
            widget = self._rows.get(row.download_id) or self._add(row)
            if self._column.indexOf(widget) != index:
                self._column.insertWidget(index, widget)
            widget.show_row(row, is_first=row.download_id == first)
        self.clear_button.setVisible(any(row.state == "done" for row in rows))
        self.setVisible(bool(rows))

    @Slot(object)
    def on_row_moved(self, row: DownloadStatus) -> None:
        widget = self._rows.get(row.download_id)
        if widget is not None and widget.isVisible():
            widget.show_row(row, is_first=row.state in RUNNING)

    def _add(self, row: DownloadStatus) -> DownloadRow:
        widget = self._rows[row.download_id] = DownloadRow(self._theme, self._icons, self._desk, row)
        widget.load_wanted.connect(self.load_wanted)
        return widget


def _steps(part: int, whole: int) -> int:
    return round(part / whole * PROGRESS_STEPS) if whole else PROGRESS_STEPS
