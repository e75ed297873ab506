"""How the hub is reached: the official one or a mirror, proxy, access token, and a test with a plain verdict."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from dflash_desktop.hub.network import OFFICIAL, NetworkSettings, ProxyMode
from dflash_desktop.hub.problems import HubProblem
from dflash_desktop.ui.hub.desk import ModelsDesk
from dflash_desktop.ui.hub.words import problem_words
from dflash_desktop.ui.kit.palette import XL, XS, L, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, SegmentedControl, label, push_button, set_tone

WIDTH = 560
PROXY_MODES: tuple[ProxyMode, ...] = ("system", "none", "manual")


class NetworkDialog(QDialog):
    """Non-modal. Keeps what is entered when it is saved or tested."""

    saved = Signal()

    def __init__(self, theme: Theme, desk: ModelsDesk, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._desk = desk
        self._is_open = True
        self.setWindowTitle(self.tr("Network"))
        self.setMinimumWidth(theme.px(WIDTH))
        self.source = SegmentedControl(
            theme, [("official", self.tr("Hugging Face")), ("mirror", self.tr("A mirror"))], self.tr("Source")
        )
        self.mirror = QLineEdit()
        self.proxy = SegmentedControl(
            theme,
            [("system", self.tr("As the system")), ("none", self.tr("None")), ("manual", self.tr("This one"))],
            self.tr("Proxy"),
        )
        self.proxy_url = QLineEdit()
        self.token = QLineEdit()
        self.token.setEchoMode(QLineEdit.EchoMode.Password)
        self._token_place = label(theme, "", "caption", tone="muted", wraps=True)
        self._verdict = label(theme, "", "body", wraps=True)
        self.forget_button = push_button(theme, self.tr("Forget the token"), "link")
        self.test_button = push_button(theme, self.tr("Test"), "secondary")
        self.save_button = push_button(theme, self.tr("Save"), "primary")
        self.cancel_button = push_button(theme, self.tr("Cancel"), "secondary")
        self._build()
        self._show(desk.network)
        self.source.chosen.connect(self.on_choice_changed)
        self.proxy.chosen.connect(self.on_choice_changed)
        self.test_button.clicked.connect(self.on_test_clicked)
        self.save_button.clicked.connect(self.on_save_clicked)
        self.cancel_button.clicked.connect(self.reject)
        self.forget_button.clicked.connect(lambda: desk.write_token("", self._show_token_place, self._show_problem))
        desk.read_token_place(self._show_token_place)

    def _build(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(XL, XL, XL, L)
        column.setSpacing(XS)
        column.addWidget(label(self._theme, self.tr("Network"), "title", weight=DEMI))
        words = self.tr("Used for searches and downloads, and only when you ask for one. Nothing else goes out.")
        column.addWidget(label(self._theme, words, "body", tone="muted", wraps=True))
        column.addSpacing(M)
        self._add(column, self.tr("Source"), self.source)
        self._add_field(column, self.mirror, self.tr("Address of the mirror"), "https://")
        help_words = self.tr("A mirror never gets your access token.")
        column.addWidget(label(self._theme, help_words, "caption", tone="muted", wraps=True))
        column.addSpacing(M)
        self._add(column, self.tr("Proxy"), self.proxy)
        self._add_field(column, self.proxy_url, self.tr("Address of the proxy"), "http://127.0.0.1:7890")
        help_words = self.tr("Certificates are those that the system trusts.")
        column.addWidget(label(self._theme, help_words, "caption", tone="muted", wraps=True))
        column.addSpacing(M)
        column.addWidget(label(self._theme, self.tr("Access token"), "body", weight=DEMI))
        self._add_field(column, self.token, self.tr("Access token"), "hf_…")
        row = QHBoxLayout()
        row.addWidget(self._token_place, 1)
        row.addWidget(self.forget_button)
        column.addLayout(row)
        column.addSpacing(M)
        column.addWidget(self._verdict)
        buttons = QHBoxLayout()
        buttons.setSpacing(S)
        buttons.addWidget(self.test_button)
        buttons.addStretch(1)
        buttons.addWidget(self.cancel_button)
        buttons.addWidget(self.save_button)
        column.addLayout(buttons)

    def _add(self, column: QVBoxLayout, name: str, control: QWidget) -> None:
        row = QHBoxLayout()
        row.addWidget(label(self._theme, name, "body", weight=DEMI))
        row.addStretch(1)
        row.addWidget(control)
        column.addLayout(row)

    def _add_field(self, column: QVBoxLayout, field: QLineEdit, name: str, example: str) -> None:
        field.setAccessibleName(name)
        field.setPlaceholderText(example)
        field.setMinimumHeight(self._theme.px(32))
        column.addWidget(field)

    def _show(self, settings: NetworkSettings) -> None:
        self.source.choose("mirror" if settings.mirror else "official")
        self.mirror.setText(settings.mirror)
        self.proxy.choose(settings.proxy)
        self.proxy_url.setText(settings.proxy_url)
        self.on_choice_changed()

    def settings(self) -> NetworkSettings:
        """What is entered."""
        proxy = next(mode for mode in PROXY_MODES if mode == self.proxy.choice())
        mirror = self.mirror.text().strip().rstrip("/") if self.source.choice() == "mirror" else ""
        return NetworkSettings(
            mirror="" if mirror == OFFICIAL else mirror, proxy=proxy, proxy_url=self.proxy_url.text().strip()
        )

    @Slot()
    def on_choice_changed(self) -> None:
        self.mirror.setVisible(self.source.choice() == "mirror")
        self.proxy_url.setVisible(self.proxy.choice() == "manual")
        self._verdict.setText("")

    def done(self, result: int) -> None:
        """Answers that come later are for nobody."""
        self._is_open = False
        super().done(result)

    # ---- keeping and testing

    @Slot()
    def on_save_clicked(self) -> None:
        self._keep(self._after_save)

    @Slot()
    def on_test_clicked(self) -> None:
        """Over the network: one small question to the source."""
        self._say(self.tr("Asking"), "muted")
        self._keep(lambda: self._desk.try_network(self._show_success, self._show_problem))

    def _keep(self, then: Callable[[], object]) -> None:
        settings, token = self.settings(), self.token.text().strip()

        def after(place: str) -> None:
            if self._is_open:
                self.token.clear()
                self._show_token_place(place)
                then()

        def keep_token() -> None:
            if token:
                self._desk.write_token(token, after, self._show_problem)
            elif self._is_open:
                then()

        self._desk.use_network(settings, keep_token, self._show_problem)

    def _after_save(self) -> None:
        self.saved.emit()
        self.accept()

    def _show_success(self) -> None:
        self._say(self.tr("It answers."), "good")

    def _show_problem(self, problem: HubProblem) -> None:
        self._say(problem_words(problem), "bad")

    def _say(self, words: str, tone: str) -> None:
        if self._is_open:
            self._verdict.setText(words)
            set_tone(self._verdict, tone)

    def _show_token_place(self, place: str) -> None:
        if not self._is_open:
            return
        words = {
            "none": self.tr(
                "None is kept. Only gated models need one; it is sent to Hugging Face itself and nobody else."
            ),
            "keyring": self.tr("One is kept in the system's keyring."),
            "file": self.tr("One is kept in a file that only you may read: this system has no keyring."),
            "environment": self.tr("HF_TOKEN in the environment is used."),
        }
        self._token_place.setText(words.get(place, ""))
        self.forget_button.setVisible(place in ("keyring", "file"))
