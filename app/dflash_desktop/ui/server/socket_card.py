"""The top of the serve page: the big switch, what the socket does, its addresses, the self-test."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSpinBox, QVBoxLayout, QWidget

from dflash_desktop.server.lan_addresses import lan_addresses
from dflash_desktop.ui.engine.pair_state import PairState, Phase
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.copy_button import CopyButton
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import XS, L, M
from dflash_desktop.ui.kit.switch import LARGE, Switch
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, Card, label, push_button, set_tone, style_spin
from dflash_desktop.ui.server import serve_words
from dflash_desktop.ui.server.ask_strip import Answers, AskStrip
from dflash_desktop.ui.server.checks_view import ChecksView
from dflash_desktop.ui.server.serving import BUSY, ServePhase, Serving


class SocketCard(Card):
    """Shows Serving; the switch stands where the socket is."""

    serve_wanted = Signal()  # the one-click way
    load_wanted = Signal()

    def __init__(self, theme: Theme, icons: Icons, serving: Serving, pair_state: PairState) -> None:
        super().__init__(theme)
        self._theme = theme
        self._serving = serving
        self._pair_state = pair_state
        self._is_stop_asked = False
        self.setAccessibleName(self.tr("Server"))
        self.switch = Switch(theme, self.tr("Server"), height=LARGE)
        self._state = label(theme, "", "title", weight=DEMI)
        self._sentence = label(theme, "", "body", tone="muted", wraps=True)
        self.port = QSpinBox()
        self.port.setRange(1, 65535)
        self.port.setKeyboardTracking(False)
        self.port.setValue(serving.settings.port)
        self.port.setAccessibleName(self.tr("Port"))
        self.port.setToolTip(self.tr("1234 is where programs look for LM Studio."))
        self.port.setFixedWidth(theme.px(76))
        self.port.setMinimumHeight(theme.px(32))
        style_spin(self.port)
        self.serve_button = push_button(theme, self.tr("Serve to LM Studio / Cline"), "primary")
        self.serve_button.setToolTip(
            self.tr(
                "Loads a model if none is, serves on port 1234 as LM Studio, tests, and sets Cline up if you agree."
            )
        )
        self.checks = ChecksView(theme, icons)
        self.ask = AskStrip(theme)
        self.addresses = _Addresses(theme, icons)
        self._build()
        self.switch.clicked.connect(self.on_switch_clicked)
        self.port.valueChanged.connect(self.on_port_chosen)
        self.serve_button.clicked.connect(self.serve_wanted)
        serving.changed.connect(self.on_serving_changed)
        pair_state.progressed.connect(self.on_load_progressed)
        self.on_serving_changed()

    def _build(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self._state)
        words.addWidget(self._sentence)
        row = QHBoxLayout()
        row.setSpacing(M)
        row.addWidget(self.switch, 0, Qt.AlignmentFlag.AlignTop)
        row.addSpacing(XS)
        row.addLayout(words, 1)
        port_label = label(self._theme, self.tr("Port"), "body", tone="muted")
        port_label.setBuddy(self.port)
        for widget in (port_label, self.port, self.serve_button):
            row.addWidget(widget, 0, Qt.AlignmentFlag.AlignTop)
        port_label.setFixedHeight(self._theme.px(32))
        self.body.addLayout(row)
        self.body.addWidget(self.addresses)
        self.body.addWidget(self.checks)
        self.body.addWidget(self.ask)

    def state_words(self) -> str:
        return self._state.text()

    def sentence(self) -> str:
        return self._sentence.text()

    # ---- what the person does

    @Slot()
    def on_switch_clicked(self) -> None:
        serving = self._serving
        if serving.phase in BUSY:
            return  # not disabled meanwhile: the keyboard would go on to the port, and what is typed with it
        if not serving.is_listening:
            serving.start()
        elif serving.n_running and not self._is_stop_asked:
            self._is_stop_asked = True
            self._show_ask()
        else:
            serving.stop()

    @Slot(int)
    def on_port_chosen(self, port: int) -> None:
        self._serving.choose(replace(self._serving.settings, port=port))

    def _use_port(self, port: int) -> None:
        self._serving.choose(replace(self._serving.settings, port=port))
        self._serving.start()

    def _keep(self) -> None:
        self._is_stop_asked = False
        self._show_ask()

    # ---- what happens

    @Slot()
    def on_load_progressed(self) -> None:
        if self._serving.phase is ServePhase.NO_MODEL and self.isVisible():
            self._sentence.setText(serve_words.sentence(self._serving, self._pair_state))

    @Slot()
    def on_serving_changed(self) -> None:
        serving, phase = self._serving, self._serving.phase
        if not serving.is_listening or not serving.n_running:
            self._is_stop_asked = False
        words = serve_words.state_words(serving, self._pair_state)
        self._state.setText(words)
        self._sentence.setText(serve_words.sentence(serving, self._pair_state))
        set_tone(self._state, "bad" if serve_words.tone(phase) == "bad" else "")
        self.switch.show_state(
            is_on=serving.is_listening, is_moving=phase in BUSY, tone=serve_words.tone(phase).replace("bad", "flash")
        )
        self.switch.setAccessibleDescription(words)
        self.port.blockSignals(True)
        self.port.setValue(serving.settings.port)
        self.port.blockSignals(False)
        self.serve_button.setVisible(phase in (ServePhase.OFF, ServePhase.FAILED, ServePhase.NO_MODEL))
        self.checks.setVisible(phase in (ServePhase.TESTING, ServePhase.SERVING, ServePhase.TEST_FAILED))
        self.checks.show_checks(serving.checks, is_running=phase is ServePhase.TESTING)
        self.addresses.show_port(serving.port if serving.is_listening else 0, is_lan=serving.is_lan)
        self._show_ask()

    def _show_ask(self) -> None:
        text, answers, is_bad = self._question()
        if text:
            self.ask.ask(text, answers, is_bad=is_bad)
        else:
            self.ask.clear()

    def _question(self) -> tuple[str, Answers, bool]:
        serving = self._serving
        if serving.phase is ServePhase.FAILED and serving.failure is not None:
            return self._after_failure()
        if self._is_stop_asked and serving.n_running:
            words = self.tr("Programs still wait for {0} replies. Closing the port ends them.").format(
                numbers.count(serving.n_running)
            )
            return words, [(self.tr("Close the port"), serving.stop), (self.tr("Keep serving"), self._keep)], False
        if serving.has_pending_settings:
            words = self.tr(
                "New settings count when nobody waits for a reply. Starting again now ends the replies that run."
            )
            return words, [(self.tr("Start again now"), serving.restart)], False
        if serving.phase is ServePhase.TEST_FAILED:
            words = self.tr("Programs may get wrong answers until this check passes.")
            return words, [(self.tr("Test again"), serving.test_again)], True
        if serving.phase is ServePhase.NO_MODEL and self._pair_state.phase is Phase.EMPTY:
            return (
                self.tr("Load a model so that programs get answers."),
                [(self.tr("Load"), self.load_wanted.emit)],
                False,
            )
        return "", [], False

    def _after_failure(self) -> tuple[str, Answers, bool]:
        failure = self._serving.failure
        assert failure is not None
        answers = [(self.tr("Try again"), self._serving.start)]
        if failure.free_port is not None:
            port = failure.free_port
            answers.insert(0, (self.tr("Use port {0}").format(port), lambda: self._use_port(port)))
        if failure.owner is None:
            words = self.tr("Choose another port, or try again.")
        elif failure.owner.kind == "lm_studio":
            words = self.tr("Stop LM Studio's own server and try again, or serve on another port.")
        elif failure.owner.kind == "dflash":
            words = self.tr("DFlash Desktop already serves there, perhaps in another window or a terminal.")
        else:
            words = self.tr("Close that program and try again, or serve on another port.")
        return words, answers, True


class _Addresses(QWidget):
    """Every address with a copy button; built from the open port, never from the wish."""

    def __init__(self, theme: Theme, icons: Icons) -> None:
        super().__init__()
        self._theme = theme
        rows = QVBoxLayout(self)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setSpacing(0)
        here, network = QHBoxLayout(), QHBoxLayout()
        self._fields: list[tuple[QLabel, QLabel, CopyButton]] = []
        self._urls: list[str] = ["", "", ""]
        names = (self.tr("OpenAI"), self.tr("Anthropic, LM Studio, Ollama"), self.tr("On the network"))
        for index, name in enumerate(names):
            title = label(theme, name, "caption", tone="muted")
            value = label(theme, "", "body")
            value.setFont(theme.code_font("body"))
            value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            value.setAccessibleName(name)
            says = self.tr("Copy the address: {0}").format(name)
            copy = CopyButton(icons, says, lambda index=index: self._urls[index])  # type: ignore[misc]
            self._fields.append((title, value, copy))
            row = network if index == len(names) - 1 else here
            for widget in (title, value, copy):
                row.addWidget(widget)
            row.addSpacing(L)
        for row in (here, network):
            row.setSpacing(XS)
            row.addStretch(1)
            rows.addLayout(row)

    def urls(self) -> list[str]:
        """What is shown, for tests."""
        return [url for url in self._urls if url]

    def show_port(self, port: int, *, is_lan: bool) -> None:
        self.setVisible(bool(port))
        if not port:
            self._urls = ["", "", ""]
            return
        others = lan_addresses() if is_lan else []
        base = f"http://127.0.0.1:{port}"
        urls = [f"{base}/v1", base, f"http://{others[0]}:{port}" if others else ""]
        if urls == self._urls:
            return
        self._urls = urls
        for (title, value, copy), url in zip(self._fields, urls, strict=True):
            value.setText(url)
            for widget in (title, value, copy):
                widget.setVisible(bool(url))
