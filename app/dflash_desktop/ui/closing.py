"""Asking once before a window closes over work that is running."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QMessageBox

from dflash_desktop.hub.download_status import UNFINISHED
from dflash_desktop.ui.kit import numbers

if TYPE_CHECKING:
    from dflash_desktop.ui.window import MainWindow


@dataclass(frozen=True, slots=True)
class RunningWork:
    """What closing the window would end."""

    n_replies: int = 0  # in this window's chats
    n_requests: int = 0  # of other programs
    n_downloads: int = 0

    def __bool__(self) -> bool:
        return bool(self.n_replies or self.n_requests or self.n_downloads)


def running_work(window: MainWindow) -> RunningWork:
    """What runs in that window now."""
    serve, models = window.serve_desk, window.models_desk
    return RunningWork(
        n_replies=window.chat.replies.n_running,
        n_requests=serve.serving.n_running if serve is not None else 0,
        n_downloads=sum(row.state in UNFINISHED for row in models.rows) if models is not None else 0,
    )


class ClosingQuestion(QObject):
    """Asks in a box over the window. Whoever closes the window again while the box is open means it."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self.box: QMessageBox | None = None

    def has_work(self) -> bool:
        """Whether there is anything to ask about."""
        return bool(running_work(self._window))

    def must_wait(self) -> bool:
        """Whether the window must stay for the person's answer, which then closes it."""
        work = running_work(self._window)
        if self.box is not None or not work:
            return False
        self.box = QMessageBox(
            QMessageBox.Icon.Question,
            self.tr("Close DFlash Desktop?"),
            "\n".join([self.tr("Work is still running:"), *self._lines(work)]),
            parent=self._window,
        )
        close = self.box.addButton(self.tr("Close"), QMessageBox.ButtonRole.DestructiveRole)
        self.box.setDefaultButton(self.box.addButton(self.tr("Keep open"), QMessageBox.ButtonRole.RejectRole))
        close.clicked.connect(self.on_close_clicked)
        self.box.finished.connect(self.on_finished)
        self.box.open()
        return True

    def _lines(self, work: RunningWork) -> list[str]:
        lines = []
        if work.n_replies:
            lines.append(self.tr("A reply is being written; what has come of it is kept."))
        if work.n_requests:
            lines.append(self.tr("Requests of other programs: {0}").format(numbers.count(work.n_requests)))
        if work.n_downloads:
            lines.append(
                self.tr("Downloads, which go on at the next start: {0}").format(numbers.count(work.n_downloads))
            )
        return lines

    @Slot()
    def on_close_clicked(self) -> None:
        self._window.close()

    @Slot(int)
    def on_finished(self, _result: int) -> None:
        box, self.box = self.box, None
        if box is not None:
            box.deleteLater()
