"""LaTeX formulas as pictures: found in Markdown here, set by ziamath in a thread, kept while they are in use."""

from __future__ import annotations

import logging
import math
import queue
import re
import threading
from collections import OrderedDict
from dataclasses import dataclass

from PySide6.QtCore import QByteArray, QObject, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

log = logging.getLogger(__name__)

PLACEHOLDER = "\ue0ff"
"""A character for private use: stands for a formula while Qt reads the Markdown around it."""
KEPT = 600
MAX_SOURCE_CHARS = 2000
MAX_PIXELS = 6_000_000
FONT_SHARE = 1.14
"""The letters of the formulas' font are smaller than those of screen fonts of the same size."""

_FORMULA = re.compile(
    r"(?P<code>(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`))"
    r"|\\\[(?P<bracket>.+?)\\\]|(?<![\\$])\$\$(?P<dollars>[^$]+?)\$\$"
    r"|\\\((?P<round>.+?)\\\)"
    # as Pandoc has it: "$5 and $6" is money, "$x$ and $y$" is not
    r"|(?<![\\$\w])\$(?P<inline>[^\s$](?:[^$\n]*?[^\s$\\])?)\$(?![\d$\w])",
    re.DOTALL,
)
_PRICES = re.compile(r"\d[^\\^_=+<>*/{}()|-]*\s[^\\^_=+<>*/{}()|-]*")
"""What stands between two dollars in "$10, or even 5$"."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula as it was written. `source` includes its marks."""

    latex: str
    source: str
    is_display: bool


@dataclass(frozen=True, slots=True)
class FormulaLook:
    """How large, in which colour, for which screen."""

    pixels: float
    color: str
    ratio: float


@dataclass(frozen=True, slots=True)
class FormulaImage:
    """Sizes in device-independent pixels; `depth` is what hangs below the line of text."""

    image: QImage
    width: float
    height: float
    depth: float


def lift_formulas(markdown: str) -> tuple[str, list[Formula]]:
    """Markdown with a placeholder for each formula, and the formulas in order. Code is left alone."""
    if "$" not in markdown and "\\(" not in markdown and "\\[" not in markdown:
        return markdown, []
    found: list[Formula] = []

    def lift(match: re.Match[str]) -> str:
        if match["code"] is not None:
            return match[0]
        display = match["bracket"] or match["dollars"]
        if match["inline"] and _PRICES.fullmatch(match["inline"]):
            return match[0]
        found.append(Formula((display or match["round"] or match["inline"]).strip(), match[0], display is not None))
        return PLACEHOLDER

    return _FORMULA.sub(lift, markdown.replace(PLACEHOLDER, "")), found


def block_formula(text: str) -> Formula:
    """The formula of a block that is nothing else."""
    inner = text.strip()
    for begin, end in (("$$", "$$"), ("\\[", "\\]")):
        if inner.startswith(begin):
            inner = inner.removeprefix(begin).removesuffix(end)
            break
    return Formula(inner.strip(), text.strip(), is_display=True)


class Formulas(QObject):
    """Asked in the GUI thread. What is not there yet is made, and `ready` tells when."""

    ready = Signal()
    _made = Signal(object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._images: OrderedDict[tuple[str, bool, FormulaLook], FormulaImage | None] = OrderedDict()
        self._asked: set[tuple[str, bool, FormulaLook]] = set()
        self._queue: queue.SimpleQueue[tuple[str, bool, FormulaLook] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._made.connect(self.on_made, Qt.ConnectionType.QueuedConnection)

    def image(self, formula: Formula, look: FormulaLook) -> FormulaImage | None:
        """The picture, or None: not yet, or never (`is_known` tells which)."""
        key = (formula.latex, formula.is_display, look)
        if key in self._images:
            self._images.move_to_end(key)
            return self._images[key]
        if key not in self._asked and len(formula.latex) <= MAX_SOURCE_CHARS:
            self._asked.add(key)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="formulas", daemon=True)
                self._thread.start()
            self._queue.put(key)
        return None

    def is_known(self, formula: Formula, look: FormulaLook) -> bool:
        """Whether it is decided what that formula looks like; without a picture, it cannot be set."""
        return (formula.latex, formula.is_display, look) in self._images or len(formula.latex) > MAX_SOURCE_CHARS

    def close(self) -> None:
        """End the thread. It may be in the middle of a formula, which takes some hundredths of a second."""
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    @Slot(object, object)
    def on_made(self, key: tuple[str, bool, FormulaLook], image: FormulaImage | None) -> None:
        self._asked.discard(key)
        self._images[key] = image
        while len(self._images) > KEPT:
            self._images.popitem(last=False)
        if not self._asked:  # one new layout for all that were asked for together
            self.ready.emit()

    def _run(self) -> None:
        while (key := self._queue.get()) is not None:
            try:
                image: FormulaImage | None = draw(*key)
            except Exception as error:  # the library asserts and indexes; whatever it is, the source shows instead
                log.info("a formula cannot be set: %s", error, exc_info=True)
                image = None
            self._made.emit(key, image)


def draw(latex: str, is_display: bool, look: FormulaLook) -> FormulaImage:
    """Set a formula. Raises whatever the library raises for LaTeX that it does not know."""
    from ziamath import zmath  # a fifth of a second: not before a formula is seen
    from ziamath.config import config

    config.svg2 = False  # Qt's SVG knows paths, not symbols inside symbols
    made = zmath.Latex(latex, size=look.pixels * FONT_SHARE, color=QColor(look.color).name(), inline=not is_display)
    renderer = QSvgRenderer(QByteArray(made.svg().encode()))
    box = renderer.viewBoxF()
    n_wide, n_high = math.ceil(box.width() * look.ratio), math.ceil(box.height() * look.ratio)
    if not renderer.isValid() or not 0 < n_wide * n_high <= MAX_PIXELS:
        raise ValueError(f"no picture of {n_wide} x {n_high} pixels")
    image = QImage(n_wide, n_high, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    renderer.render(painter, QRectF(0, 0, box.width() * look.ratio, box.height() * look.ratio))
    painter.end()
    image.setDevicePixelRatio(look.ratio)
    return FormulaImage(image, box.width(), box.height(), depth=max(0.0, box.bottom()))
