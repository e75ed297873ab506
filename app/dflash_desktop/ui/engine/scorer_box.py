"""Choosing the model that rates prompts: the built-in one, one of this machine's, or a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QComboBox, QFileDialog, QWidget

from dflash_desktop.engine.inspect import ModelFile
from dflash_desktop.ui.engine.pflash_choice import SCORER_FAMILIES
from dflash_desktop.ui.kit.cause_words import error_words, told
from dflash_desktop.ui.kit.theme import Theme

Inspect = Callable[[Path, Callable[[ModelFile], object], Callable[[Exception], object]], None]
"""Reads a file's header in a thread, and calls one of the two."""
_OTHER = "\0other"


@dataclass(frozen=True, slots=True)
class ScorerFile:
    """A model of this machine that can rate prompts. `is_made_for_it`: the catalogue names it for the loaded pair."""

    path: Path
    name: str
    is_made_for_it: bool = False


class ScorerBox(QComboBox):
    """`chosen` comes for what the person does."""

    chosen = Signal()
    file_wanted = Signal()

    def __init__(self, theme: Theme, *, has_built_in: bool) -> None:
        super().__init__()
        self._has_built_in = has_built_in
        self._files: Sequence[ScorerFile] = ()
        self._scorer: Path | None = None
        self.setFont(theme.font("body"))
        self.setMinimumHeight(theme.px(30))
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(12)
        self.activated.connect(self.on_activated)
        self._fill()

    def scorer(self) -> Path | None:
        """None: the built-in model."""
        return self._scorer

    def show_scorer(self, path: Path | None) -> None:
        self._scorer = path
        self._fill()

    def show_files(self, files: Sequence[ScorerFile]) -> None:
        """The models of this machine that may be chosen."""
        self._files = files
        self._fill()

    def _fill(self) -> None:
        self.clear()
        if self._has_built_in:
            self.addItem(self.tr("Built-in: SmolLM2 135M"), None)
        elif self._scorer is None:
            self.addItem(self.tr("None: choose one"), None)
        files = list(self._files)
        if self._scorer is not None and all(file.path != self._scorer for file in files):
            files.insert(0, ScorerFile(self._scorer, self._scorer.stem))
        for file in files:
            words = self.tr("{0} (made for this pair)").format(file.name) if file.is_made_for_it else file.name
            self.addItem(words, str(file.path))
        self.addItem(self.tr("Another file…"), _OTHER)
        self.setCurrentIndex(max(0, self.findData(str(self._scorer) if self._scorer is not None else None)))

    @Slot(int)
    def on_activated(self, index: int) -> None:
        data = self.itemData(index)
        if data == _OTHER:
            self._fill()
            self.file_wanted.emit()
            return
        self._scorer = Path(data) if data else None
        self.chosen.emit()


class ScorerFinder(QObject):
    """Asks for a file and looks whether it can rate: `found`, or `refused` with a sentence."""

    found = Signal(object)  # Path
    refused = Signal(object)  # str

    def __init__(self, window: QWidget, inspect: Inspect) -> None:
        super().__init__(window)
        self._window = window
        self._inspect = inspect

    @Slot()
    def ask(self) -> None:
        file, _ = QFileDialog.getOpenFileName(self._window, self.tr("A model that rates prompts"), "", "GGUF (*.gguf)")
        if file:
            self.look_at(Path(file))

    def look_at(self, path: Path) -> None:
        self._inspect(path, self._judge, lambda error: self.refused.emit(error_words(error)))

    def _judge(self, facts: ModelFile) -> None:
        name = facts.path.name
        if not facts.can_run or facts.role != "target":
            words = self.tr("{0} cannot rate prompts: {1}")
            why = told(facts.cause, facts.reason) or self.tr("it is no model that reads text by itself.")
            self.refused.emit(words.format(name, why))
        elif facts.architecture not in SCORER_FAMILIES:
            words = self.tr("{0} is of the family {1}; models of the families {2} rate prompts.")
            self.refused.emit(words.format(name, facts.architecture, ", ".join(SCORER_FAMILIES)))
        else:
            self.found.emit(facts.path)
