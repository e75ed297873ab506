"""The catalogue: every pair that this version runs, the best one for this device first."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from dflash_desktop.ui.hub.desk import ModelsDesk
from dflash_desktop.ui.hub.pair_card import PairCard
from dflash_desktop.ui.kit.palette import M
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import label


class CatalogueView(QWidget):
    """Follows the desk's device."""

    get_wanted = Signal(object)  # Recommendation
    load_wanted = Signal(object)  # DownloadStatus

    def __init__(self, theme: Theme, desk: ModelsDesk) -> None:
        super().__init__()
        self._theme = theme
        self._desk = desk
        self.cards: dict[str, PairCard] = {}
        self._lead = label(theme, "", "body", tone="muted", wraps=True)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(M)
        self._column.addWidget(self._lead)
        self._column.addStretch(1)
        desk.recommended_changed.connect(self.on_recommended_changed)
        self.on_recommended_changed()

    @Slot()
    def on_recommended_changed(self) -> None:
        device = self._desk.device
        if device is None:
            problem = self._desk.device_problem
            words = self.tr("No device was found, so what fits is not known. {0}").format(problem)
            self._lead.setText(words if problem else self.tr("Looking for devices"))
            return
        name = device.description or device.name
        if device.kind == "cpu":
            words = self.tr(
                "For {0}. Without a graphics card large models answer slowly: a small one needs less patience."
            )
        else:
            words = self.tr(
                "For {0}. Each pair is a target, which gives the answers, and a draft, which makes it faster."
            )
        self._lead.setText(words.format(name))
        for index, recommended in enumerate(self._desk.recommended):
            is_best = index == 0 and recommended.fit.verdict != "too_large"
            card = self.cards.get(recommended.pair.id)
            if card is None:
                card = self.cards[recommended.pair.id] = PairCard(self._theme, self._desk, recommended, is_best=is_best)
                card.get_wanted.connect(self.get_wanted)
                card.load_wanted.connect(self.load_wanted)
            card.show_recommended(recommended, is_best=is_best)
            if self._column.indexOf(card) != index + 1:
                self._column.insertWidget(index + 1, card)
