"""Who may call: this computer or the network, with which key, from which web pages."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QScrollArea, QVBoxLayout, QWidget

from dflash_desktop.server.lan_addresses import lan_addresses
from dflash_desktop.ui.kit.copy_button import CopyButton
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import READING_WIDTH, XS, L, M, S
from dflash_desktop.ui.kit.switch import Switch
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, Card, label, push_button
from dflash_desktop.ui.server.serving import ServeSettings, Serving


class AccessView(QScrollArea):
    """Every switch stands where the settings are; whether they are in force is the socket card's to say."""

    def __init__(self, theme: Theme, icons: Icons, serving: Serving) -> None:
        super().__init__()
        self._theme = theme
        self._serving = serving
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        page = QWidget()
        page.setProperty("kind", "page")
        self._column = QVBoxLayout(page)
        self._column.setContentsMargins(0, 0, M, 0)
        self._column.setSpacing(M)
        self.lan = Switch(theme, self.tr("Listen on the network"))
        self.asks_key = Switch(theme, self.tr("Ask programs on this computer for the key"))
        self.reload = Switch(theme, self.tr("Programs may load models"))
        self.shortens = Switch(theme, self.tr("Shorten long prompts of programs"))
        self.any_origin = Switch(theme, self.tr("Any web page may call"))
        self.key = QLineEdit()
        self.origins = QLineEdit(serving.settings.allowed_origins)
        self._problem = label(theme, "", "caption", tone="bad", wraps=True)
        self._problem.hide()
        self._lan_words = label(theme, "", "caption", tone="muted", wraps=True)
        self.show_key = push_button(theme, self.tr("Show"), "secondary")
        self.new_key = push_button(theme, self.tr("New key"), "secondary")
        self.copy_key = CopyButton(icons, self.tr("Copy the key"), serving.key)
        self._column.addWidget(self._network_card())
        self._column.addWidget(self._pages_card())
        self._column.addWidget(self._clients_card())
        self._column.addStretch(1)
        page.setMaximumWidth(theme.px(READING_WIDTH) + 2 * L)
        self.setWidget(page)
        self.setAlignment(Qt.AlignmentFlag.AlignLeft)
        self._connect()
        self.on_serving_changed()

    def _network_card(self) -> Card:
        card = Card(self._theme, self.tr("Network and key"))
        card.body.addLayout(
            self._row(
                self.lan,
                self.tr("Listen on the network"),
                self.tr("Other devices can use the model. Every program then needs the key, and nothing is encrypted."),
            )
        )
        card.body.addWidget(self._lan_words)
        card.body.addLayout(
            self._row(
                self.asks_key,
                self.tr("Ask programs on this computer for the key"),
                self.tr("Listing the models stays free, because some programs list without a key."),
            )
        )
        row = QHBoxLayout()
        row.setSpacing(S)
        title = label(self._theme, self.tr("Key"), "body", weight=DEMI)
        title.setBuddy(self.key)
        self.key.setReadOnly(True)
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        self.key.setFont(self._theme.code_font("body"))
        self.key.setMinimumHeight(self._theme.px(32))
        self.key.setAccessibleName(self.tr("Key for programs"))
        self.show_key.setCheckable(True)
        for widget in (title, self.key, self.show_key, self.copy_key, self.new_key):
            row.addWidget(widget, 1 if widget is self.key else 0)
        self.new_key.setToolTip(self.tr("The old key stops working; programs need the new one."))
        card.body.addLayout(row)
        return card

    def _pages_card(self) -> Card:
        card = Card(self._theme, self.tr("Web pages"))
        words = self.tr(
            "A web page in a browser may call only if it is named here. Pages of this computer and editors always may."
        )
        card.body.addWidget(label(self._theme, words, "caption", tone="muted", wraps=True))
        self.origins.setPlaceholderText("https://example.org  http://192.168.1.20:3000")
        self.origins.setMinimumHeight(self._theme.px(32))
        self.origins.setAccessibleName(self.tr("Allowed web pages"))
        self.origins.setAccessibleDescription(words)
        card.body.addWidget(self.origins)
        card.body.addWidget(self._problem)
        card.body.addLayout(
            self._row(
                self.any_origin,
                self.tr("Any web page may call"),
                self.tr("Dangerous without a key: every page you visit could use the model."),
            )
        )
        return card

    def _clients_card(self) -> Card:
        card = Card(self._theme, self.tr("Programs"))
        card.body.addLayout(
            self._row(
                self.reload,
                self.tr("Programs may load models"),
                self.tr("A request may name another model of this computer or a larger context. You are told of it."),
            )
        )
        card.body.addLayout(
            self._row(
                self.shortens,
                self.tr("Shorten long prompts of programs"),
                self.tr(
                    "PFlash on Auto, with the scorer and the share of the engine page: what matters little for the "
                    "question is left out. Requests that bring tools go in whole."
                ),
            )
        )
        return card

    def _row(self, switch: Switch, name: str, help_words: str) -> QHBoxLayout:
        switch.setAccessibleDescription(help_words)
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(label(self._theme, name, "body", weight=DEMI, wraps=True))
        words.addWidget(label(self._theme, help_words, "caption", tone="muted", wraps=True))
        row = QHBoxLayout()
        row.setSpacing(M)
        row.setContentsMargins(0, XS, 0, XS)
        row.addLayout(words, 1)
        row.addWidget(switch, 0, Qt.AlignmentFlag.AlignVCenter)
        return row

    def _connect(self) -> None:
        self.lan.clicked.connect(self.on_lan_clicked)
        self.asks_key.clicked.connect(self.on_asks_key_clicked)
        self.reload.clicked.connect(self.on_reload_clicked)
        self.shortens.clicked.connect(self.on_shortens_clicked)
        self.any_origin.clicked.connect(self.on_any_origin_clicked)
        self.origins.editingFinished.connect(self.on_origins_edited)
        self.show_key.toggled.connect(self.on_show_key_toggled)
        self.new_key.clicked.connect(self._serving.renew_key)
        self._serving.changed.connect(self.on_serving_changed)

    # ---- what the person does

    @Slot()
    def on_lan_clicked(self) -> None:
        self._choose(is_lan=not self._settings.is_lan)

    @Slot()
    def on_asks_key_clicked(self) -> None:
        self._choose(asks_key=not self._settings.asks_key)

    @Slot()
    def on_reload_clicked(self) -> None:
        self._choose(can_clients_load=not self._settings.can_clients_load)

    @Slot()
    def on_shortens_clicked(self) -> None:
        self._choose(shortens=not self._settings.shortens)

    @Slot()
    def on_any_origin_clicked(self) -> None:
        self._choose(has_any_origin=not self._settings.has_any_origin)

    @Slot()
    def on_origins_edited(self) -> None:
        bad = replace(self._settings, allowed_origins=self.origins.text()).bad_origin()
        words = self.tr("{0} is no origin. Write it as https://name or http://address:port, without a path.")
        self._problem.setText(words.format(bad))
        self._problem.setVisible(bool(bad))
        if not bad:
            self._choose(allowed_origins=self.origins.text().strip())

    @Slot(bool)
    def on_show_key_toggled(self, is_shown: bool) -> None:
        self.key.setEchoMode(QLineEdit.EchoMode.Normal if is_shown else QLineEdit.EchoMode.Password)
        self.show_key.setText(self.tr("Hide") if is_shown else self.tr("Show"))

    @property
    def _settings(self) -> ServeSettings:
        return self._serving.settings

    def _choose(self, **changes: object) -> None:
        self._serving.choose(replace(self._settings, **changes))  # type: ignore[arg-type]

    # ---- what is so

    @Slot()
    def on_serving_changed(self) -> None:
        chosen = self._settings
        self.lan.show_state(is_on=chosen.is_lan)
        self.asks_key.show_state(is_on=chosen.is_lan or chosen.asks_key)
        self.asks_key.setEnabled(not chosen.is_lan)
        self.reload.show_state(is_on=chosen.can_clients_load)
        self.shortens.show_state(is_on=chosen.shortens)
        self.any_origin.show_state(is_on=chosen.has_any_origin, tone="bad")
        has_key = chosen.is_lan or chosen.asks_key
        if has_key and self.key.text() != self._serving.key():
            self.key.setText(self._serving.key())
        elif not has_key:
            self.key.setText("")
        for widget in (self.key, self.show_key, self.copy_key, self.new_key):
            widget.setEnabled(has_key)
        self.key.setPlaceholderText("" if has_key else self.tr("No key is asked for"))
        self._lan_words.setVisible(chosen.is_lan)
        if chosen.is_lan:
            self._lan_words.setText(self._lan_sentence())

    def _lan_sentence(self) -> str:
        found = [f"http://{address}:{self._serving.port or self._settings.port}" for address in lan_addresses()]
        if not found:
            return self.tr("This computer is in no network at the moment.")
        return self.tr("Reachable as {0}, if the firewall lets programs in.").format(", ".join(found))
