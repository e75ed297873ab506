"""What stands where the conversation will be: this machine, the pair for it, and the one thing to do next."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSpacerItem,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from dflash_desktop.engine.devices import Device, choose_device
from dflash_desktop.ui.engine.device_words import device_facts
from dflash_desktop.ui.engine.pair_state import PairState, Phase, StarterPair
from dflash_desktop.ui.hub.desk import ModelsDesk
from dflash_desktop.ui.hub.first_pair import FirstPair
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import XS, L, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, Card, label, push_button, rule

WIDTH = 600
ROOM_FOR_MARK = 480
ROOM_FOR_TITLE = 420
PAIR_HEIGHT = 80
PROGRESS_STEPS = 1000


class StartView(QScrollArea):
    """Follows the pair's state by itself."""

    start_clicked = Signal()
    open_clicked = Signal()
    cancel_clicked = Signal()
    get_wanted = Signal(object)  # Recommendation
    load_wanted = Signal(object)  # DownloadStatus of a pair that has arrived
    models_wanted = Signal(object)  # str: a tab of the models page
    prompt_chosen = Signal(object)

    def __init__(self, theme: Theme, icons: Icons, pair_state: PairState, starter: StarterPair | None) -> None:
        super().__init__()
        self._theme = theme
        self._icons = icons
        self._pair_state = pair_state
        self._starter = starter
        self.first_pair: FirstPair | None = None  # of the catalogue, once `follow` was called
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        page = QWidget()
        page.setProperty("kind", "page")
        outer = QVBoxLayout(page)
        outer.setContentsMargins(L, S, L, S)
        outer.addStretch(2)
        self._pages = QStackedWidget()
        self._pages.setMaximumWidth(theme.px(WIDTH))
        across = QHBoxLayout()
        across.addStretch(1)
        across.addWidget(self._pages, 10)
        across.addStretch(1)
        outer.addLayout(across)
        outer.addStretch(3)
        self.setWidget(page)
        self._welcome = self._build_welcome()
        self._loading = self._build_loading()
        self._ready = self._build_ready()
        for part in self._parts():
            self._pages.addWidget(part)
        pair_state.changed.connect(self.on_pair_changed)
        pair_state.progressed.connect(self.on_load_progressed)
        theme.changed.connect(self._paint_marks)
        self._paint_marks()
        self.on_pair_changed()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._make_room()

    def _make_room(self) -> None:
        """Where there is no room for all, the program's mark goes first, then the large title: the buttons never."""
        has_pair = self.first_pair is not None and self.first_pair.recommended() is not None
        for_pair = PAIR_HEIGHT if has_pair else 0
        self._mark.setVisible(self.height() >= self._theme.px(ROOM_FOR_MARK + for_pair))
        is_roomy = self.height() >= self._theme.px(ROOM_FOR_TITLE + for_pair)
        self._title.setFont(self._theme.font("display" if is_roomy else "title", weight=DEMI))
        for gap in self._gaps:
            gap.changeSize(0, L if is_roomy else XS)
        self._welcome_column.invalidate()

    def show_devices(self, devices: Sequence[Device], problem: str) -> None:
        """The device a model would run on, or why none was found."""
        if not devices:
            self._device_name.setText(self.tr("No device found"))
            self._device_memory.setText(problem)
            return
        facts = device_facts(choose_device(devices))
        self._device_name.setText(facts.title)
        self._device_memory.setText(facts.memory_words)

    def follow(self, desk: ModelsDesk) -> None:
        """Recommend a pair of the catalogue from now on, and show how its download goes."""
        self.first_pair = FirstPair(self._theme, self._icons, desk)
        self._first_rule = rule()
        self._card.body.insertWidget(1, self.first_pair)
        self._card.body.insertWidget(1, self._first_rule)
        self.first_pair.changed.connect(self.on_first_pair_changed)
        self.on_first_pair_changed()

    @Slot()
    def on_first_pair_changed(self) -> None:
        """One primary button: the pair on a graphics card, the built-in model on a processor."""
        first = self.first_pair
        if first is None:
            return
        recommended, row = first.recommended(), first.row()
        self._first_rule.setVisible(recommended is not None)
        self._make_room()
        name = recommended.pair.name if recommended is not None else ""
        has_arrived = row is not None and row.state == "done"
        if has_arrived:
            self.get_button.setText(self.tr("Load {0}").format(name))
        elif row is not None:
            self.get_button.setText(self.tr("Show the download"))
        elif first.is_for_gpu() and recommended is not None:
            self.get_button.setText(self.tr("Get it: {0}…").format(numbers.size(recommended.n_bytes)))
        else:
            self.get_button.setText(self.tr("Get {0}…").format(name))
        self.get_button.setAccessibleName(self.get_button.text())
        self.get_button.setVisible(recommended is not None)
        is_first = recommended is not None and (has_arrived or (first.is_for_gpu() and row is None))
        _set_kind(self.get_button, "primary" if is_first or self._starter is None else "secondary")
        if self._starter is not None:
            _set_kind(self.start_button, "secondary" if is_first else "primary")
            words = self.tr("Use the built-in model now") if is_first else self.tr("Start with the built-in model")
            self.start_button.setText(words)
            self.start_button.setAccessibleName(words)
        _set_kind(self.open_button, "link")
        n_found = first.n_found()
        if n_found:
            self.found_button.setText(self.tr("I already have models ({0} found)").format(numbers.count(n_found)))
        else:
            self.found_button.setText(self.tr("I already have models"))
        self.found_button.setAccessibleName(self.found_button.text())
        self.found_button.show()

    @Slot()
    def on_get_clicked(self) -> None:
        first = self.first_pair
        if first is None:
            return
        row, recommended = first.row(), first.recommended()
        if row is not None and row.state == "done":
            self.load_wanted.emit(row)
        elif row is not None:
            self.models_wanted.emit("pairs")
        elif recommended is not None:
            self.get_wanted.emit(recommended)

    def _parts(self) -> tuple[QWidget, QWidget, QWidget]:
        return self._welcome, self._loading, self._ready

    def _show_part(self, shown: QWidget) -> None:
        """The others take no room meanwhile: a stack is as high as its highest page, and would scroll for it."""
        for part in self._parts():
            policy = QSizePolicy.Policy.Preferred if part is shown else QSizePolicy.Policy.Ignored
            part.setSizePolicy(policy, policy)
        self._pages.setCurrentWidget(shown)

    def _build_welcome(self) -> QWidget:
        part, column = _column()
        self._welcome_column = column
        self._gaps = [QSpacerItem(0, L), QSpacerItem(0, L)]
        self._mark = QLabel()
        column.addWidget(self._mark, 0, Qt.AlignmentFlag.AlignLeft)
        column.addSpacing(M)
        words = self.tr("Chat with a model on this machine")
        self._title = label(self._theme, words, "display", weight=DEMI, wraps=True)
        column.addWidget(self._title)
        words = self.tr("No account, no network: what you write stays here.")
        column.addWidget(label(self._theme, words, "reading", tone="muted", wraps=True))
        column.addItem(self._gaps[0])
        self._card = card = Card(self._theme)
        self._device_mark, self._device_name, self._device_memory = self._fact(card, self.tr("Looking for devices"), "")
        card.body.addWidget(rule())
        if self._starter is None:
            title, facts = self.tr("No model comes with this build"), self.tr("Open a GGUF file that you have.")
        else:
            title = self._starter.title
            words = (
                self.tr("With its draft  ·  {0}  ·  {1}  ·  comes with the app")
                if self._starter.draft is not None
                else self.tr("{0}  ·  {1}  ·  comes with the app")
            )
            facts = words.format(numbers.size(self._starter.n_bytes), self._starter.licence)
        self._pair_mark, _, _ = self._fact(card, title, facts)
        column.addWidget(card)
        column.addItem(self._gaps[1])
        row = QHBoxLayout()
        row.setSpacing(S)
        self.open_button = push_button(
            self._theme, self.tr("Open a model file…"), "secondary" if self._starter else "primary"
        )
        self.open_button.setMinimumHeight(self._theme.px(38))
        self.open_button.clicked.connect(self.open_clicked)
        self.get_button = push_button(self._theme, "", "secondary")
        self.get_button.setMinimumHeight(self._theme.px(38))
        self.get_button.clicked.connect(self.on_get_clicked)
        self.get_button.hide()
        row.addWidget(self.get_button)
        if self._starter is not None:
            self.start_button = push_button(self._theme, self.tr("Start with the built-in model"), "primary")
            self.start_button.setMinimumHeight(self._theme.px(38))
            self.start_button.clicked.connect(self.start_clicked)
            row.addWidget(self.start_button)
        row.addWidget(self.open_button)
        row.addStretch(1)
        column.addLayout(row)
        below = QHBoxLayout()
        below.setSpacing(S)
        self.found_button = push_button(self._theme, "", "link")
        self.found_button.clicked.connect(lambda: self.models_wanted.emit("here"))
        self.found_button.hide()
        below.addWidget(self.found_button)
        words = self.tr("You can also drop a GGUF file on this window.")
        below.addWidget(label(self._theme, words, "caption", tone="muted"))
        below.addStretch(1)
        column.addLayout(below)
        return part

    def _fact(self, card: Card, title: str, facts: str) -> tuple[QLabel, QLabel, QLabel]:
        mark = QLabel()
        mark.setFixedSize(self._theme.px(40), self._theme.px(40))
        mark.setAlignment(Qt.AlignmentFlag.AlignCenter)
        name = label(self._theme, title, "body", weight=DEMI, wraps=True)
        words = label(self._theme, facts, "body", tone="muted", wraps=True)
        text = QVBoxLayout()
        text.setSpacing(2)
        text.addWidget(name)
        text.addWidget(words)
        row = QHBoxLayout()
        row.setSpacing(M)
        row.addWidget(mark)
        row.addLayout(text, 1)
        row.setContentsMargins(0, XS, 0, XS)
        card.body.addLayout(row)
        return mark, name, words

    def _build_loading(self) -> QWidget:
        part, column = _column()
        self._loading_title = label(self._theme, "", "title", weight=DEMI, wraps=True)
        column.addWidget(self._loading_title)
        column.addSpacing(S)
        self._bar = QProgressBar()
        self._bar.setRange(0, PROGRESS_STEPS)
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(self.tr("Load progress"))
        column.addWidget(self._bar)
        self._loading_words = label(self._theme, "", "body", tone="muted")
        column.addWidget(self._loading_words)
        column.addSpacing(S)
        words = self.tr("You can write already: your message is sent when the model is ready.")
        column.addWidget(label(self._theme, words, "reading", tone="muted", wraps=True))
        cancel = push_button(self._theme, self.tr("Cancel"), "secondary")
        cancel.clicked.connect(self.cancel_clicked)
        column.addWidget(cancel, 0, Qt.AlignmentFlag.AlignLeft)
        return part

    def _build_ready(self) -> QWidget:
        part, column = _column()
        self._ready_title = label(self._theme, "", "title", weight=DEMI, wraps=True)
        column.addWidget(self._ready_title)
        self._ready_words = label(self._theme, "", "reading", tone="muted", wraps=True)
        column.addWidget(self._ready_words)
        column.addSpacing(L)
        column.addWidget(label(self._theme, self.tr("Try one of these"), "body", tone="muted"))
        for prompt in (
            self.tr("Explain photosynthesis in simple terms."),
            self.tr("Write a JavaScript function that checks whether a number is prime."),
            self.tr("Give me a list of healthy meals for a busy week."),
        ):
            button = push_button(self._theme, prompt, "secondary")
            button.setProperty("kind", "choice")
            button.setMinimumHeight(self._theme.px(40))
            button.clicked.connect(self.on_prompt_clicked)
            column.addWidget(button)
        return part

    @Slot()
    def on_prompt_clicked(self) -> None:
        self.prompt_chosen.emit(self.sender().accessibleName())  # type: ignore[attr-defined]

    @Slot()
    def on_pair_changed(self) -> None:
        state = self._pair_state
        match state.phase:
            case Phase.LOADING:
                self._loading_title.setText(self.tr("Loading {0}").format(state.title()))
                self.on_load_progressed()
                self._show_part(self._loading)
            case Phase.LOADED if state.pair is not None:
                self._ready_title.setText(self.tr("{0} is ready").format(state.title()))
                truth = self.tr("Answers are the target's own; the draft only changes speed.")
                self._ready_words.setText(truth if state.pair.draft else state.draft_sentence())
                self._show_part(self._ready)
            case _:
                self._show_part(self._welcome)

    @Slot()
    def on_load_progressed(self) -> None:
        share = self._pair_state.loading_share()
        self._bar.setValue(round((share or 0) * PROGRESS_STEPS))
        progress = self._pair_state.progress
        if progress is None or share is None:
            self._loading_words.setText(self.tr("Reading the file"))
        elif share >= 1:
            self._loading_words.setText(self.tr("Preparing the device"))
        else:
            part = self.tr("target") if progress.part == "target" else self.tr("draft")
            self._loading_words.setText(
                self.tr("{0} of {1}  ·  {2}").format(
                    numbers.size(progress.n_done_bytes), numbers.size(progress.n_total_bytes), part
                )
            )

    @Slot()
    def _paint_marks(self) -> None:
        ratio = self.devicePixelRatioF()
        self._mark.setPixmap(self._icons.app_pixmap(56, ratio))
        self._device_mark.setPixmap(self._icons.pixmap("chip", "accent_text", self._theme.px(24), ratio))
        self._pair_mark.setPixmap(self._icons.pixmap("bolt", "flash", self._theme.px(24), ratio))


def _set_kind(button: QPushButton, kind: str) -> None:
    if button.property("kind") != kind:
        button.setProperty("kind", kind)
        button.style().unpolish(button)
        button.style().polish(button)


def _column() -> tuple[QWidget, QVBoxLayout]:
    part = QWidget()
    column = QVBoxLayout(part)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(S)
    column.setAlignment(Qt.AlignmentFlag.AlignVCenter)
    return part, column
