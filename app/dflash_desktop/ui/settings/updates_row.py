"""Whether there is a newer version: asked when the button is pressed, and at no other time."""

from __future__ import annotations

from urllib.parse import urlsplit

from PySide6.QtCore import QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QHBoxLayout, QWidget

from dflash_desktop import __version__
from dflash_desktop.hub.problems import HubProblem
from dflash_desktop.hub.releases import Release
from dflash_desktop.ui.hub.desk import ModelsDesk
from dflash_desktop.ui.hub.words import problem_words
from dflash_desktop.ui.kit.palette import S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import label, push_button, set_tone


class UpdatesRow(QWidget):
    """What came of looking, hidden before. Its `button` is placed by whoever shows it."""

    def __init__(self, theme: Theme, desk: ModelsDesk) -> None:
        super().__init__()
        self._desk = desk
        self._page = ""
        self.button = push_button(theme, self.tr("Check for updates"), "secondary")
        self.words = label(theme, wraps=True)
        self.open_button = push_button(theme, self.tr("Open its page"), "secondary")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(S)
        row.addWidget(self.words, 1)
        row.addWidget(self.open_button)
        self.button.clicked.connect(self.on_check_clicked)
        self.open_button.clicked.connect(self.on_open_clicked)
        self.hide()

    @Slot()
    def on_check_clicked(self) -> None:
        feed = self._desk.release_feed
        if not feed:
            self._show(
                self.tr(
                    "This copy was built without the address where releases are announced, so it cannot look. "
                    "Newer versions are where you got this one."
                )
            )
            return
        self.button.setEnabled(False)
        self._show(self.tr("Asking {0}…").format(urlsplit(feed).netloc))
        self._desk.ask_release(self._on_told, self._on_failed)

    @Slot()
    def on_open_clicked(self) -> None:
        QDesktopServices.openUrl(QUrl(self._page))

    def _on_told(self, release: Release) -> None:
        self.button.setEnabled(True)
        if release.is_newer:
            words = self.tr("Version {0} is out. This is {1}.").format(release.version, __version__)
            self._show(words, page=release.page)
        else:
            self._show(self.tr("This is the newest version, {0}.").format(__version__), "good")

    def _on_failed(self, problem: HubProblem) -> None:
        self.button.setEnabled(True)
        if problem.kind == "not_found":
            self._show(self.tr("{0} has no list of releases at the address that is known here.").format(problem.where))
        else:
            self._show(problem_words(problem), "bad")

    def _show(self, words: str, tone: str = "", *, page: str = "") -> None:
        self._page = page
        self.words.setText(words)
        self.words.setAccessibleName(words)
        set_tone(self.words, tone)
        self.open_button.setVisible(bool(page))
        self.open_button.setToolTip(page)
        self.show()
