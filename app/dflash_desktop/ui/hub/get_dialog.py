"""Before a download: the true size, the licence, the room on the disk and whether it will fit. Then a yes, or not."""

from __future__ import annotations

from PySide6.QtCore import QDir, QEvent, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QCheckBox, QComboBox, QDialog, QHBoxLayout, QVBoxLayout, QWidget

from dflash_desktop.engine.requests import LoadOptions
from dflash_desktop.hub.fit import Fit, Recommendation
from dflash_desktop.hub.network import OFFICIAL
from dflash_desktop.hub.offers import Offer, OfferedModel
from dflash_desktop.hub.problems import HubProblem
from dflash_desktop.ui.hub.desk import KV_TYPES, ModelsDesk
from dflash_desktop.ui.hub.words import fit_badge, fit_source, fit_words, problem_words
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.palette import XL, XS, L, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, Card, label, push_button, set_tone

WIDTH = 560


class GetDialog(QDialog):
    """Non-modal. Opening it for a pair is the first moment that anything is asked of the hub."""

    network_wanted = Signal()
    download_begun = Signal()
    use_wanted = Signal(object)  # PairFiles: everything is here already

    def __init__(
        self, theme: Theme, desk: ModelsDesk, parent: QWidget, *, recommended: Recommendation | None = None
    ) -> None:
        """With `recommended` the files can be chosen and are asked for at once; else give an offer to `show_offer`."""
        super().__init__(parent)
        self._theme = theme
        self._desk = desk
        self._recommended = recommended
        self._offer: Offer | None = None
        self._question = 0
        title = recommended.pair.name if recommended is not None else self.tr("Get a model")
        self.setWindowTitle(title)
        self.setMinimumWidth(theme.px(WIDTH))
        self._title = label(theme, title, "title", weight=DEMI, wraps=True)
        self.target_box, self.draft_box = QComboBox(), QComboBox()
        self.scorer_check = QCheckBox()
        self._files = label(theme, "", "body", wraps=True)
        self._licence = label(theme, "", "body", tone="muted", wraps=True)
        self._place = label(theme, "", "body", tone="muted", wraps=True)
        self._fit = label(theme, "", "body", wraps=True)
        self._problem = label(theme, "", "body", tone="bad", wraps=True)
        self.page_button = push_button(theme, self.tr("Open its page"), "link")
        self.network_button = push_button(theme, self.tr("Network…"), "link")
        self.get_button = push_button(theme, self.tr("Download"), "primary")
        self.cancel_button = push_button(theme, self.tr("Cancel"), "secondary")
        self._build()
        self.get_button.clicked.connect(self.on_get_clicked)
        self.cancel_button.clicked.connect(self.reject)
        self.page_button.clicked.connect(self.on_page_clicked)
        self.network_button.clicked.connect(self.network_wanted)
        if recommended is not None:
            self._offer_choices(recommended)
            self.ask()

    def _build(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(XL, XL, XL, L)
        column.setSpacing(S)
        column.addWidget(self._title)
        self._choices = QWidget()
        choices = QVBoxLayout(self._choices)
        choices.setContentsMargins(0, 0, 0, 0)
        choices.setSpacing(XS)
        for box, words in ((self.target_box, self.tr("Target")), (self.draft_box, self.tr("Draft"))):
            box.setAccessibleName(words)
            box.setFont(self._theme.font("body"))
            box.setMinimumHeight(self._theme.px(32))
            row = QHBoxLayout()
            row.setSpacing(M)
            name = label(self._theme, words, "body", tone="muted")
            name.setFixedWidth(self._theme.px(64))
            row.addWidget(name)
            row.addWidget(box, 1)
            choices.addLayout(row)
        self.scorer_check.setFont(self._theme.font("body"))
        self.scorer_check.hide()
        choices.addWidget(self.scorer_check)
        self._choices.setVisible(self._recommended is not None)
        column.addWidget(self._choices)
        card = Card(self._theme)
        for part in (self._files, self._licence, self._place, self._fit, self._problem):
            card.body.addWidget(part)
        links = QHBoxLayout()
        links.addWidget(self.page_button)
        links.addWidget(self.network_button)
        links.addStretch(1)
        card.body.addLayout(links)
        column.addWidget(card)
        buttons = QHBoxLayout()
        buttons.setSpacing(S)
        buttons.addStretch(1)
        buttons.addWidget(self.cancel_button)
        buttons.addWidget(self.get_button)
        column.addLayout(buttons)
        self.page_button.hide()
        self.network_button.hide()
        self._problem.hide()
        self.get_button.setEnabled(False)

    def _offer_choices(self, recommended: Recommendation) -> None:
        pair, proposal = recommended.pair, recommended.proposal
        for box, models, chosen in (
            (self.target_box, pair.targets, proposal.target),
            (self.draft_box, pair.drafts, proposal.draft if recommended.has_draft else ""),
        ):
            for model in models:
                words = self.tr("{0}, about {1}").format(model.quantization, numbers.size(model.approx_bytes))
                if model.is_gated:
                    words = self.tr("{0}, terms to accept").format(words)
                box.addItem(words, model.quantization)
            if box is self.draft_box:
                box.addItem(self.tr("none: the target decodes alone"), "")
            box.setCurrentIndex(max(0, box.findData(chosen)))
            box.setEnabled(box.count() > 1)
        self.draft_box.setToolTip(
            self.tr("The draft only changes speed. On a processor it usually costs more than it gives.")
        )
        if pair.scorers:
            words = self.tr("With {0} (about {1}), which shortens long prompts: PFlash")
            name = pair.scorers[0].files[0].rpartition("/")[2]
            self.scorer_check.setText(words.format(name, numbers.size(pair.scorers[0].approx_bytes)))
            self.scorer_check.setAccessibleName(self.scorer_check.text())
            self.scorer_check.setToolTip(
                self.tr("Without it the built-in model does that, less well. It can be fetched later too.")
            )
            self.scorer_check.show()
        self.target_box.activated.connect(self.ask)
        self.draft_box.activated.connect(self.ask)
        self.scorer_check.toggled.connect(self.ask)

    # ---- asking

    @Slot()
    def ask(self) -> None:
        """Ask the hub about what is chosen. Over the network."""
        recommended = self._recommended
        if recommended is None:
            return
        pair = recommended.pair
        target = pair.target(self.target_box.currentData())
        draft = pair.draft(self.draft_box.currentData()) if self.draft_box.currentData() else None
        self._question += 1
        question = self._question
        self._show_waiting()
        self._desk.ask_pair(
            recommended,
            target,
            draft,
            lambda offer: self.show_offer(offer) if question == self._question else None,
            lambda problem: self.show_problem(problem) if question == self._question else None,
            pair.scorers[0] if pair.scorers and self.scorer_check.isChecked() else None,
        )

    def _show_waiting(self) -> None:
        self._offer = None
        self.get_button.setEnabled(False)
        self._problem.hide()
        self.page_button.hide()
        self.network_button.hide()
        self._files.setText(self.tr("Asking the hub for sizes and hashes"))
        for part in (self._licence, self._place, self._fit):
            part.setText("")
            part.hide()

    def show_offer(self, offer: Offer) -> None:
        """What the hub says."""
        self._offer = offer
        self._title.setText(offer.title)
        models = offer.models
        self._files.setText("\n".join(self._model_words(model) for model in models))
        licences = sorted({model.licence or self.tr("none stated") for model in models})
        self._licence.setText(self.tr("Licence: {0}").format(", ".join(licences)))
        self._licence.show()
        gated = [model.repo_id for model in models if model.is_gated and model.local is None]
        if gated:
            self._show_links(is_gated=True)
            self._licence.setText(
                self.tr("Licence: {0}. {1} has terms to accept on its page, and needs an access token.").format(
                    ", ".join(licences), gated[0]
                )
            )
        self.get_button.setEnabled(True)
        self._desk.free_bytes(lambda found: self._show_room(offer, *found))
        self._fit.setText(self.tr("Reading the headers, to plan the memory"))
        self._fit.show()
        question = self._question
        self._desk.ask_fit(
            offer,
            self._options(),
            lambda fit: self._show_fit(fit) if question == self._question else None,
            lambda problem: self._show_no_fit(problem) if question == self._question else None,
        )

    def _model_words(self, model: OfferedModel) -> str:
        name = model.files[0].name.rpartition("/")[2]
        if model.local is not None:
            words = self.tr("{0}: on this machine already, used where it is ({1})")
            return words.format(name, QDir.toNativeSeparators(str(model.local.parent)))
        if len(model.files) > 1 and model.files[0].name.endswith(".gguf"):
            words = self.tr("{0} and {1} more parts: {2}")
            return words.format(name, numbers.count(len(model.files) - 1), numbers.size(model.n_bytes))
        return self.tr("{0}: {1}").format(name, numbers.size(model.n_bytes))

    def _options(self) -> LoadOptions:
        recommended = self._recommended
        if recommended is None:
            return LoadOptions()
        kv = KV_TYPES.get(recommended.proposal.kv, "auto")
        return LoadOptions(context_tokens=recommended.proposal.context_tokens, kv_k=kv, kv_v=kv)

    def _show_room(self, offer: Offer, free_bytes: int, queued_bytes: int) -> None:
        if offer is not self._offer:
            return
        wanted = offer.wanted()
        place = QDir.toNativeSeparators(str(self._desk.models_folder))
        if wanted.n_bytes + queued_bytes > free_bytes:
            problem = HubProblem(
                "disk_full", where=place, needed_bytes=wanted.n_bytes + queued_bytes, free_bytes=free_bytes
            )
            self._show_problem(problem_words(problem))
            self.get_button.setEnabled(False)
        if not wanted.files:
            self.get_button.setText(self.tr("Load it"))
            self.get_button.setAccessibleName(self.get_button.text())
            self._place.setText(self.tr("Everything is here already."))
            self._place.show()
            return
        words = self.tr("{0} to download into {1}, where {2} are free.")
        self._place.setText(words.format(numbers.size(wanted.n_bytes), place, numbers.size(free_bytes)))
        self._place.show()
        self.get_button.setText(self.tr("Download {0}").format(numbers.size(wanted.n_bytes)))
        self.get_button.setAccessibleName(self.get_button.text())

    def _show_fit(self, fit: Fit) -> None:
        self._fit.setText(self.tr("{0} ({1})").format(fit_words(fit), fit_source(fit)))
        set_tone(self._fit, fit_badge(fit)[1])

    def _show_no_fit(self, problem: HubProblem) -> None:
        if problem.kind == "other" and self._recommended is None:
            self._fit.setText(self.tr("The engine cannot use it: {0}").format(problem.detail))
            set_tone(self._fit, "bad")
        elif self._recommended is not None:
            self._show_fit(self._recommended.fit)
        else:
            self._fit.hide()

    def show_problem(self, problem: HubProblem) -> None:
        """The hub did not answer, or not what was hoped for."""
        self._files.setText(self.tr("Nothing was downloaded."))
        self._show_problem(problem_words(problem))
        self._show_links(is_gated=problem.kind in ("token_needed", "terms"))

    def _show_problem(self, words: str) -> None:
        self._problem.setText(words)
        self._problem.show()

    def _show_links(self, *, is_gated: bool) -> None:
        self.page_button.setVisible(is_gated)
        self.network_button.show()

    def event(self, event: QEvent) -> bool:
        """Words that come later and need more lines get them; Qt counts wrapped lines only when it first shows them."""
        is_request = event.type() is QEvent.Type.LayoutRequest
        is_handled = super().event(event)  # may delete the dialog
        if is_request and (layout := self.layout()) is not None:
            wanted = layout.totalHeightForWidth(self.width())
            if wanted > self.height():
                self.resize(self.width(), wanted)
        return is_handled

    def done(self, result: int) -> None:
        """Answers that come later are for nobody."""
        self._question += 1
        self._offer = None
        super().done(result)

    # ---- yes

    @Slot()
    def on_get_clicked(self) -> None:
        offer = self._offer
        if offer is None:
            return
        self.get_button.setEnabled(False)
        wanted = offer.wanted()
        here = self._desk.files_of(offer)
        if not wanted.files and here is not None:
            self.use_wanted.emit(here)
        else:
            self._desk.download(wanted, self._show_refusal)
            self.download_begun.emit()
        self.accept()

    def _show_refusal(self, problem: HubProblem) -> None:
        self._desk.failed.emit(problem)

    @Slot()
    def on_page_clicked(self) -> None:
        """The repository's page in the browser: the person's own click, the person's own browser."""
        gated = self._gated_repository()
        if gated:
            QDesktopServices.openUrl(QUrl(f"{OFFICIAL}/{gated}"))

    def _gated_repository(self) -> str:
        if self._offer is not None:
            return next((model.repo_id for model in self._offer.models if model.is_gated), "")
        if self._recommended is not None:
            pair = self._recommended.pair
            return next((model.repo_id for model in (*pair.drafts, *pair.targets) if model.is_gated), "")
        return ""
