"""The pair that is recommended for this machine, as the first screen shows it: size, fit, speed, and how it arrives."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QVBoxLayout, QWidget

from dflash_desktop.hub.download_status import DownloadStatus
from dflash_desktop.hub.fit import Recommendation
from dflash_desktop.ui.hub.desk import ModelsDesk
from dflash_desktop.ui.hub.pair_card import badge, show_badge
from dflash_desktop.ui.hub.words import fit_badge, fit_source, fit_words, speed_words, state_words
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import XS, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, label

PROGRESS_STEPS = 1000


class FirstPair(QWidget):
    """A row of the first card. Hidden while no pair of the catalogue fits this machine."""

    changed = Signal()  # what the buttons below it have to offer

    def __init__(self, theme: Theme, icons: Icons, desk: ModelsDesk) -> None:
        super().__init__()
        self._theme = theme
        self._icons = icons
        self._desk = desk
        self._mark = QLabel()
        self._mark.setFixedSize(theme.px(40), theme.px(40))
        self._mark.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._name = label(theme, "", "body", weight=DEMI)
        self._badge = badge(theme)
        self._words = label(theme, "", "body", tone="muted", wraps=True)
        self._fit = label(theme, "", "caption", tone="muted", wraps=True)
        self._bar = QProgressBar()
        self._bar.setRange(0, PROGRESS_STEPS)
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(self.tr("Download progress"))
        head = QHBoxLayout()
        head.setSpacing(S)
        head.addWidget(self._name)
        head.addWidget(self._badge)
        head.addStretch(1)
        text = QVBoxLayout()
        text.setSpacing(2)
        text.addLayout(head)
        text.addWidget(self._words)
        text.addWidget(self._fit)
        text.addWidget(self._bar)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, XS, 0, XS)
        row.setSpacing(M)
        row.addWidget(self._mark)
        row.addLayout(text, 1)
        theme.changed.connect(self._paint_mark)
        desk.recommended_changed.connect(self.on_changed)
        desk.rows_changed.connect(self.on_changed)
        desk.row_moved.connect(self.on_row_moved)
        desk.shelf_changed.connect(self.changed)
        self._paint_mark()
        self.on_changed()

    def recommended(self) -> Recommendation | None:
        """The best pair for this machine; None while devices are unknown, or when none fits."""
        found = self._desk.recommended[:1]
        return found[0] if found and found[0].fit.verdict != "too_large" else None

    def row(self) -> DownloadStatus | None:
        """Its download, if there is one."""
        recommended = self.recommended()
        return self._desk.row_of_pair(recommended.pair.id) if recommended is not None else None

    def is_for_gpu(self) -> bool:
        """On a processor the built-in pair is the better beginning."""
        return self._desk.device is not None and self._desk.device.kind != "cpu"

    def n_found(self) -> int:
        """Models on this machine that could be loaded, the built-in one not counted."""
        shelf = self._desk.shelf
        return sum(file.place.kind != "built_in" for file in shelf.targets()) if shelf is not None else 0

    @Slot()
    def on_changed(self) -> None:
        recommended = self.recommended()
        self.setVisible(recommended is not None)
        if recommended is not None:
            name = recommended.pair.name
            self._name.setText(self.tr("{0} with its DFlash draft").format(name) if recommended.has_draft else name)
            show_badge(self._badge, *fit_badge(recommended.fit))
            facts = [
                self.tr("{0} to download").format(numbers.size(recommended.n_bytes)),
                speed_words(recommended.expected_tps),
                recommended.pair.licence,
            ]
            self._words.setText("  ·  ".join(fact for fact in facts if fact))
            self._fit.setText(self.tr("{0} ({1})").format(fit_words(recommended.fit), fit_source(recommended.fit)))
        self._show_row(self.row())
        self.changed.emit()

    @Slot(object)
    def on_row_moved(self, row: DownloadStatus) -> None:
        mine = self.row()
        if mine is not None and mine.download_id == row.download_id:
            self._show_row(row)

    def _show_row(self, row: DownloadStatus | None) -> None:
        self._bar.setVisible(row is not None and row.state != "done")
        if row is not None:
            self._bar.setValue(round(row.n_done_bytes / max(1, row.n_total_bytes) * PROGRESS_STEPS))
            self._fit.setText(state_words(row))

    @Slot()
    def _paint_mark(self) -> None:
        self._mark.setPixmap(self._icons.pixmap("bolt", "flash", self._theme.px(24), self.devicePixelRatioF()))
