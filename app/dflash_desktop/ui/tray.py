"""The icon in the system's tray: what the program does, and the few things one wants without its window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QObject, QPointF, Qt, QTimer, Slot
from PySide6.QtGui import QColor, QIcon, QPainter
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from dflash_desktop.hub.download_status import UNFINISHED
from dflash_desktop.ui.engine.pair_state import Phase
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.server.serving import ServePhase

if TYPE_CHECKING:
    from dflash_desktop.ui.desks import Desks
    from dflash_desktop.ui.window import MainWindow

UPDATE_MS = 1000
"""At least so long between two looks of the icon: steps and downloads move more often than anybody looks there."""
_SIZES = (16, 22, 24, 32, 48, 64)
_DOTS = {"downloading": "accent", "loading": "accent", "answering": "flash", "serving": "good", "idle": ""}


@dataclass(frozen=True, slots=True)
class TrayState:
    """What is told first: what changes soonest."""

    kind: Literal["downloading", "loading", "answering", "serving", "idle"] = "idle"
    percent: int = 0  # of downloads
    port: int = 0  # where the server answers; 0: nowhere
    model: str = ""  # "": none is loaded
    can_unload: bool = False


def tray_state(desks: Desks) -> TrayState:
    """What the desks do now."""
    rows = [row for row in desks.models.rows if row.state in UNFINISHED] if desks.models is not None else []
    n_total = sum(row.n_total_bytes for row in rows)
    percent = 100 * sum(row.n_done_bytes for row in rows) // n_total if n_total else 0
    serving = desks.serve.serving if desks.serve is not None else None
    port = serving.port if serving is not None and serving.is_listening else 0
    is_loaded = desks.pair_state.phase is Phase.LOADED
    model = desks.pair_state.title() if is_loaded else ""
    kind: Literal["downloading", "loading", "answering", "serving", "idle"] = "idle"
    if desks.chat.replies.n_running or (serving is not None and serving.n_running):
        kind = "answering"
    elif n_total:
        kind = "downloading"
    elif desks.pair_state.phase is Phase.LOADING:
        kind = "loading"
    elif port:
        kind = "serving"
    return TrayState(kind, percent if n_total else 0, port, model, is_loaded)


class Tray(QObject):
    """Belongs to one window. Does nothing where the desktop has no tray."""

    def __init__(self, window: MainWindow, theme: Theme, icons: Icons, *, is_available: bool | None = None) -> None:
        """`is_available`: None asks the desktop."""
        super().__init__(window)
        self._window = window
        self._desks = window.desks
        self._theme = theme
        self._icons = icons
        self.icon: QSystemTrayIcon | None = None
        self.state = TrayState()
        self._holds_window = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(UPDATE_MS)
        self._timer.timeout.connect(self.update)
        if QSystemTrayIcon.isSystemTrayAvailable() if is_available is None else is_available:
            self._build()

    def _build(self) -> None:
        self.menu = QMenu(self._window)
        self.menu.setTitle(self.tr("DFlash Desktop"))
        self._open = self.menu.addAction(self.tr("Open the window"), self.open_window)
        self.menu.addSeparator()
        self.serve_action = self.menu.addAction("", self.on_serve_triggered)
        self.serve_action.setVisible(self._desks.serve is not None)
        self.unload_action = self.menu.addAction(self.tr("Unload the model"), self._desks.pair_state.unload)
        self.menu.addSeparator()
        self.menu.addAction(self.tr("Quit"), self.on_quit_triggered)
        self.menu.setDefaultAction(self._open)
        self.icon = QSystemTrayIcon(self)
        self.icon.setContextMenu(self.menu)
        self.icon.activated.connect(self.on_activated)
        self._desks.pair_state.changed.connect(self.on_changed)
        self._desks.chat.replies.changed.connect(self.on_changed)
        self._theme.changed.connect(self.on_changed)
        if self._desks.serve is not None:
            self._desks.serve.serving.changed.connect(self.on_changed)
        if self._desks.models is not None:
            self._desks.models.rows_changed.connect(self.on_changed)
            self._desks.models.row_moved.connect(self.on_changed)
        self.update()
        self.icon.show()

    def can_hold_window(self) -> bool:
        """Whether a closed window may live on here: the person wants it, and others are being served."""
        is_wanted = self._desks.settings.values.stays_in_tray
        return self.icon is not None and is_wanted and self.state_now().port > 0

    def state_now(self) -> TrayState:
        """Not waiting for the next look."""
        return tray_state(self._desks)

    def holds_window(self) -> bool:
        """Whether the window was closed and lives on here."""
        return self._holds_window and not self._window.isVisible()

    def take_window(self) -> None:
        """The window goes, the program stays; said where the person looks for it."""
        self._holds_window = True
        self._window.hide()
        if self.icon is not None:
            self.icon.showMessage(
                self.tr("DFlash Desktop"),
                self.tr("Other programs are still served. The window is here; so is Quit."),
                self._icons.app_icon(),
            )

    def hide(self) -> None:
        """The program ends."""
        self._timer.stop()
        if self.icon is not None:
            self.icon.hide()

    @Slot()
    def on_changed(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    @Slot()
    def update(self) -> None:
        if self.icon is None:
            return
        self.state = self.state_now()
        self.icon.setIcon(self._drawn(self.state))
        self.icon.setToolTip("\n".join(["DFlash Desktop", *self.words()]))
        is_on = self.state.port > 0
        self.serve_action.setText(self.tr("Stop the server") if is_on else self.tr("Start the server"))
        self.unload_action.setEnabled(self.state.can_unload)

    def words(self) -> list[str]:
        """What the tip beside the icon says, a line each."""
        state = self.state
        lines = []
        if state.kind == "answering":
            lines.append(self.tr("Answering"))
        elif state.kind == "loading":
            lines.append(self.tr("A model is being loaded"))
        if state.percent or state.kind == "downloading":
            lines.append(self.tr("Downloading: {0}").format(numbers.percent(state.percent / 100)))
        if state.port:
            lines.append(self.tr("Serving other programs on port {0}").format(state.port))
        if state.kind != "loading":
            lines.append(self.tr("Loaded: {0}").format(state.model) if state.model else self.tr("No model is loaded"))
        return lines

    def _drawn(self, state: TrayState) -> QIcon:
        """The program's icon, with a dot where something goes on; a download fills a bar instead."""
        icon = QIcon()
        color = _DOTS[state.kind]
        for size in _SIZES:
            pixmap = self._icons.app_pixmap(size, 1.0)
            if color:
                painter = QPainter(pixmap)
                painter.setRenderHint(QPainter.RenderHint.Antialiasing)
                painter.setPen(Qt.PenStyle.NoPen)
                _mark(painter, size, self._theme.color(color), state.percent if state.kind == "downloading" else None)
                painter.end()
            icon.addPixmap(pixmap)
        return icon

    @Slot(object)
    def on_activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason in (QSystemTrayIcon.ActivationReason.Trigger, QSystemTrayIcon.ActivationReason.DoubleClick):
            self.open_window()

    @Slot()
    def open_window(self) -> None:
        """Up and in front, wherever it was."""
        window = self._window
        window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized | Qt.WindowState.WindowActive)
        window.show()
        window.raise_()
        window.activateWindow()

    @Slot()
    def on_serve_triggered(self) -> None:
        if self._desks.serve is None:
            return
        serving = self._desks.serve.serving
        if serving.phase in (ServePhase.OFF, ServePhase.FAILED):
            serving.start()
        else:
            serving.stop()

    @Slot()
    def on_quit_triggered(self) -> None:
        if self._window.closing.has_work() and not self._window.isVisible():
            self.open_window()  # the question stands over it
        self._window.quit()


def _mark(painter: QPainter, size: int, color: QColor, percent: int | None) -> None:
    if percent is None:
        radius = size * 0.2
        painter.setBrush(QColor("white"))
        painter.drawEllipse(QPointF(size - radius, size - radius), radius, radius)
        painter.setBrush(color)
        painter.drawEllipse(QPointF(size - radius, size - radius), radius * 0.78, radius * 0.78)
        return
    height = max(3, size // 6)
    painter.fillRect(0, size - height, size, height, QColor("white"))
    painter.fillRect(0, size - height, round(size * percent / 100), height, color)
