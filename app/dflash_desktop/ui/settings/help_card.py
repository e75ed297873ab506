"""Help when something is wrong: the log, and a report to attach to a bug that holds no chat text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from PySide6.QtCore import QDir, QStandardPaths, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QWidget

from dflash_desktop import __version__
from dflash_desktop.base.diagnostics import report_name, write_report
from dflash_desktop.ui.kit.notice import Notice
from dflash_desktop.ui.kit.palette import S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import Card, label, push_button
from dflash_desktop.ui.settings.desk import SettingsDesk
from dflash_desktop.ui.settings.log_dialog import LogDialog


class HelpCard(Card):
    """Needs a desk with a home: that is where the log lies."""

    def __init__(self, theme: Theme, desk: SettingsDesk, notice: Notice) -> None:
        super().__init__(theme, self.tr("When something is wrong"))
        assert desk.home is not None
        self._theme = theme
        self._desk = desk
        self._home = desk.home
        self._notice = notice
        self.more_facts: Callable[[], dict[str, Any]] = dict
        words = self.tr(
            "The report is a zip file with the log, the settings and facts about this machine. What you or the model "
            "wrote is not in it. It stays on this computer until you send it."
        )
        self.body.addWidget(label(theme, words, "caption", tone="muted", wraps=True))
        buttons = QHBoxLayout()
        buttons.setSpacing(S)
        self.log_button = push_button(theme, self.tr("Show the log"), "secondary")
        self.report_button = push_button(theme, self.tr("Save a report…"), "secondary")
        buttons.addWidget(self.log_button)
        buttons.addWidget(self.report_button)
        buttons.addStretch(1)
        self.body.addLayout(buttons)
        self.log_button.clicked.connect(self.on_log_clicked)
        self.report_button.clicked.connect(self.on_report_clicked)

    def add_row(self, row: QWidget) -> None:
        self.body.addWidget(row)

    @Slot()
    def on_log_clicked(self) -> LogDialog:
        dialog = LogDialog(self._theme, self.window(), self._home.paths.logs)
        dialog.show()
        return dialog

    @Slot()
    def on_report_clicked(self) -> None:
        folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DownloadLocation)
        begin = str(Path(folder or str(Path.home())) / report_name())
        chosen, _ = QFileDialog.getSaveFileName(self, self.tr("Save a report"), begin, self.tr("Zip files (*.zip)"))
        if chosen:
            self.save_report(Path(chosen))

    def save_report(self, destination: Path) -> None:
        """Write the report in a thread and say where it lies."""
        facts = {
            "program": {
                "version": __version__,
                "lost_runs": [asdict(run) for run in self._home.lost_runs],
                "is_portable": self._home.paths.is_portable,
            },
            "settings": asdict(self._desk.store.values),
            **self.more_facts(),
        }
        logs = self._home.paths.logs
        self._desk.worker.do(
            lambda: write_report(destination, logs, facts),
            self._on_written,
            lambda error: self._notice.show_error(str(error)),
        )

    def _on_written(self, path: Path) -> None:
        words = self.tr("The report is saved as {0}.").format(QDir.toNativeSeparators(str(path)))
        self._notice.show_info(
            words,
            self.tr("Show the folder"),
            lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(path.parent))),
        )
