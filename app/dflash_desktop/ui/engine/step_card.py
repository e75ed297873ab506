"""The draft tree of a step: live, held, and walked through backwards over the last steps, with the tuner's reason."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, Qt, QTimer, Slot

from dflash_desktop.engine.events import StepDone
from dflash_desktop.ui.engine.draft_tree_view import DraftTreeView
from dflash_desktop.ui.engine.live_figures import KEPT_RECORDS, LiveFigures
from dflash_desktop.ui.engine.step_words import step_reason, step_times, step_title
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.pace import PLOT_MS
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import Card, ElidedLabel, icon_button, label


class StepCard(Card):
    """Reads the ring of LiveFigures at its own pace, and only while somebody looks."""

    def __init__(self, theme: Theme, icons: Icons, figures: LiveFigures, token_text: Callable[[int], str]) -> None:
        super().__init__(theme, QCoreApplication.translate("StepCard", "Draft tree of a step"))
        self._icons = icons
        self._figures = figures
        self._held: list[StepDone] = []  # the steps to walk through while held; empty: live
        self._held_at = 0
        self._shown: StepDone | None = None
        self.tree_view = DraftTreeView(theme, token_text)
        self._title_words = label(theme, "", "caption", tone="muted")
        self._title_words.setFont(theme.figure_font("caption", weight=theme.font("caption").weight()))
        self.back_button = icon_button(icons, "back", self.tr("One step back"), size=16)
        self.hold_button = icon_button(icons, "pause", self.tr("Hold this step"), size=16)
        self.forward_button = icon_button(icons, "forward", self.tr("One step on"), size=16)
        self._title_words.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.head.addWidget(self._title_words, 1)  # all the room: a new text needs no new layout
        for widget in (self.back_button, self.hold_button, self.forward_button):
            self.head.addWidget(widget)
        self.reason = ElidedLabel(theme, "body")
        self.times = ElidedLabel(theme, "caption", tone="muted")
        self.body.addWidget(self.reason)
        self.body.addWidget(self.times)
        self.body.addWidget(self.tree_view, 1)
        self.back_button.setToolTip(self.tr("One step back; the last {0} are kept").format(numbers.count(KEPT_RECORDS)))
        self.back_button.clicked.connect(self.on_back_clicked)
        self.hold_button.clicked.connect(self.on_hold_clicked)
        self.forward_button.clicked.connect(self.on_forward_clicked)
        self._timer = QTimer(self)
        self._timer.setInterval(PLOT_MS)
        self._timer.timeout.connect(self.repaint_step)
        self._timer.start()

    @Slot()
    def on_hold_clicked(self) -> None:
        if self._held:
            self._held = []
        else:
            self._hold()
        self._show_held()

    @Slot()
    def on_back_clicked(self) -> None:
        if not self._held:
            self._hold()
        self._held_at = max(0, self._held_at - 1)
        self._show_held()

    @Slot()
    def on_forward_clicked(self) -> None:
        self._held_at = min(len(self._held) - 1, self._held_at + 1)
        self._show_held()

    def _hold(self) -> None:
        self._held = list(self._figures.records)
        self._held_at = len(self._held) - 1

    def _show_held(self) -> None:
        words = self.tr("Go on live") if self._held else self.tr("Hold this step")
        self._icons.put(self.hold_button, "play" if self._held else "pause", "muted", checked="accent_text", size=16)
        self.hold_button.setToolTip(words)
        self.hold_button.setAccessibleName(words)
        self.repaint_step()

    @Slot()
    def repaint_step(self) -> None:
        """Show the held step, else the newest one."""
        if not self.isVisible():
            return
        records = self._figures.records
        if self._held:
            self._show_step(self._held[self._held_at])
        else:
            self._show_step(records[-1] if records else None)
        self.back_button.setEnabled(self._held_at > 0 if self._held else len(records) > 1)
        self.forward_button.setEnabled(bool(self._held) and self._held_at < len(self._held) - 1)
        self.hold_button.setEnabled(bool(self._held or records))

    def _show_step(self, step: StepDone | None) -> None:
        if step is self._shown:
            return
        self._shown = step
        self.tree_view.show_tree(step.tree if step is not None else None, had_step=step is not None)
        self._title_words.setText(step_title(step) if step is not None else "")
        self.reason.setText(step_reason(step) if step is not None else "")
        self.times.setText(step_times(step) if step is not None else "")
