"""Translations: complete, compiled, and nothing on the screen that does not pass through them or has no room."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QLocale, QPoint, Qt, QTranslator
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QWidget,
)

from dflash_desktop.base.paths import app_paths
from dflash_desktop.clients.catalogue import all_cards
from dflash_desktop.clients.endpoint import Endpoint, Machine
from dflash_desktop.settings.pair_memory import PairMemory
from dflash_desktop.startup import engine_tools, hub_parts, serving_parts, starter_pair
from dflash_desktop.ui.app import make_application
from dflash_desktop.ui.clients.card_words import said
from dflash_desktop.ui.clients.code_well import CodeWell
from dflash_desktop.ui.engine.load_fit import KV_TYPES
from dflash_desktop.ui.engine.page import EnginePage
from dflash_desktop.ui.hub.summaries import SUMMARIES
from dflash_desktop.ui.kit.language import apply_language, locale_of
from dflash_desktop.ui.kit.widgets import ElidedLabel
from dflash_desktop.ui.parts import Home, Parts
from dflash_desktop.ui.window import SMALLEST
from support.translations import LANGUAGES, collect, compile_ts, read_texts, ts_file
from ui.conftest import RESOURCES, Desk
from ui.scripted_engine import FAKE_DEVICES, Script

# Names and data: they stay as they are in every language.
_NAMES = {
    "English", "简体中文", "CPU", "AL", "KV", "tok/s", "GGUF", "OpenAI", "DFlash Desktop", "MB", "GB", "MiB", "GiB",
    "Scripted processor, 2 cores", "Hello, world.", "go", "auto", *KV_TYPES,
}  # fmt: skip
_BEGIN, _END = "⟦", "⟧"


class Pseudo(QTranslator):
    """Every text in brackets and a third longer, as German or French would be; what had words gets more of them."""

    def translate(self, context: str, source: str, disambiguation: str | None = None, n: int = -1) -> str:
        if not source or context.startswith("Q"):  # Qt's own
            return ""
        more = len(source) // 3
        tail = " ~~~~~~~" * (more // 8) + "~" * (more % 8) if " " in source else "~" * more
        return f"{_BEGIN}{source}{tail}{_END}"


@pytest.fixture
def pseudo(app: QApplication) -> Iterator[Pseudo]:
    translator = Pseudo(app)
    QCoreApplication.installTranslator(translator)
    yield translator
    QCoreApplication.removeTranslator(translator)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_of_the_program_is_translated(language: str, tmp_path: Path) -> None:
    fresh = tmp_path / ts_file(language).name
    fresh.write_bytes(ts_file(language).read_bytes())
    collect(fresh, language)
    missing = [text.key for text in read_texts(fresh) if not text.is_finished]
    assert missing == [], "run tests/support/translations.py, translate, and run it again"


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_shipped_was_made_from_what_was_translated(language: str, tmp_path: Path) -> None:
    compile_ts(ts_file(language), tmp_path / "new.qm")
    assert (tmp_path / "new.qm").read_bytes() == ts_file(language).with_suffix(".qm").read_bytes()


@pytest.mark.parametrize("language", LANGUAGES)
def test_translations_keep_every_value_and_end_like_the_source(language: str) -> None:
    for text in read_texts(ts_file(language)):
        for translation in text.translations if text.is_finished else ():
            assert sorted(re.findall(r"\{\d\}", translation)) == sorted(re.findall(r"\{\d\}", text.source)), text
            assert text.source.endswith("…") == translation.endswith("…"), text


def test_one_word_for_one_thing_in_chinese() -> None:
    for text in (text for text in read_texts(ts_file("zh_CN")) if text.is_finished):
        joined = "".join(text.translations)
        assert "小模型" not in joined or "小模型更合适" in joined, text
        words = f" {re.sub(r'[^a-z]+', ' ', text.source.lower())} "
        for english, chinese in (
            (" acceptance length ", "接受长度"),
            (" tree budget ", "树预算"),
            (" speed up ", "加速比"),
        ):
            assert english not in words or chinese in joined, text


@pytest.mark.parametrize(
    ("name", "speaks_chinese"),
    [("zh_CN", True), ("zh_SG", True), ("zh_Hans_MY", True), ("zh_TW", False), ("en_US", False), ("de_DE", False)],
)
def test_the_language_follows_the_locale(app: QApplication, name: str, speaks_chinese: bool) -> None:
    apply_language(app, RESOURCES, name)
    try:
        assert (QCoreApplication.translate("ModelBar", "No model loaded") == "未加载模型") is speaks_chinese
        assert QLocale() == QLocale(name)
    finally:
        make_application(RESOURCES, "en")
        QLocale.setDefault(locale_of("system"))


def shown_texts(root: QWidget) -> Iterator[tuple[QWidget, str]]:
    """What a person reads or hears: texts, tooltips, names for screen readers."""
    for widget in [root, *root.findChildren(QWidget)]:
        if not widget.isVisibleTo(root) or widget.objectName().startswith("qt_"):
            continue
        if isinstance(widget.parentWidget(), CodeWell):  # settings of other programs, in their own words
            continue
        texts = [widget.toolTip(), widget.accessibleName(), widget.accessibleDescription()]
        if isinstance(widget, ElidedLabel):
            texts.append(widget.whole_text())
        elif isinstance(widget, (QLabel, QAbstractButton)):
            texts.append(widget.text())
        elif isinstance(widget, (QLineEdit, QPlainTextEdit)):
            texts.append(widget.placeholderText())
        elif isinstance(widget, QComboBox):
            texts += [widget.itemText(row) for row in range(widget.count())]
        yield from ((widget, text) for text in texts if text)


def is_foreign(text: str, names: set[str]) -> bool:
    """Whether part of it is prose that no translator saw."""
    rest = text
    while (begin := rest.rfind(_BEGIN)) >= 0:  # innermost first: translated texts hold translated ones
        end = rest.find(_END, begin)
        rest = rest[:begin] + rest[end + 1 :] if end >= 0 else rest[:begin]
    for name in sorted(_NAMES | names, key=len, reverse=True):
        rest = rest.replace(name, "")
    rest = re.sub(r"[\w./\\-]*(?:gguf|/)[\w./\\-]*", "", rest)  # files and folders
    return re.search(r"[A-Za-z]{3,}", rest) is not None


@pytest.fixture
def everything(make_desk: Callable[..., Desk], pseudo: Pseudo) -> Desk:
    """A window of the smallest size with every page built, a pair loaded and a reply written."""
    starter = starter_pair()
    paths = app_paths()
    parts = Parts(
        engine_tools=engine_tools(paths),
        pair_memory=PairMemory(None),
        home=Home(paths),
        server=serving_parts(paths),
        hub=hub_parts(paths),
    )
    desk = make_desk(Script(), starter=starter, parts=parts)
    desk.window.resize(SMALLEST)
    desk.load()
    desk.send("go")
    desk.wait_for_reply()
    return desk


def views(desk: Desk) -> Iterator[tuple[str, QWidget]]:
    window = desk.window
    yield "chat", window
    page = window.page("engine")
    assert isinstance(page, EnginePage)
    desk.qtbot.waitUntil(lambda: page.loading.panel.plan.fit is not None)
    for view in ("live", "load"):
        window.show_page("engine")
        page.show_view(view)
        yield f"engine {view}", window
    for key in ("serve", "models"):
        window.show_page(key)
        desk.qtbot.wait(100)
        yield key, window
    window.show_page("settings")
    yield "settings", window
    dialog = window.open_dialog()
    starter = starter_pair()
    assert starter is not None
    dialog.take_files([starter.target])
    desk.qtbot.waitUntil(lambda: dialog.panel.plan.fit is not None)
    yield "dialog", dialog
    dialog.reject()


def test_nothing_on_the_screen_goes_round_the_translation(everything: Desk) -> None:
    bar = everything.window.model_bar
    names = {bar._target.whole_text(), *(device.description for device in FAKE_DEVICES), "SmolLM2 DFlash", "Vulkan0"}
    for entry in hub_parts(app_paths()).catalogue.pairs:
        names |= {entry.name, entry.licence}
    for card in all_cards(Endpoint(1234, "model", 4096), Machine.this()):
        titles = (snippet.title for snippet in card.snippets)
        names |= {text for text in (card.name, *titles) if isinstance(text, str)}
    foreign = {
        f"{name}: {type(widget).__name__}: {text}"
        for name, root in views(everything)
        for widget, text in shown_texts(root)
        if is_foreign(text, names)
    }
    assert not foreign, "\n".join(sorted(foreign))


def test_what_the_catalogue_says_of_its_pairs_is_translated() -> None:
    """The texts stand in JSON, which lupdate does not read: they are repeated where it looks."""
    assert set(SUMMARIES) == {pair.summary for pair in hub_parts(app_paths()).catalogue.pairs}


def test_a_card_speaks_the_language_with_its_values_in_place(app: QApplication) -> None:
    apply_language(app, RESOURCES, "zh_CN")
    try:
        for card in all_cards(Endpoint(4321, "a-model", 4096), Machine.this()):
            sentences = [*card.steps, *(each for each in (card.warning, card.next_step) if each is not None)]
            for sentence in sentences:
                assert re.search("[\u4e00-\u9fff]", said(sentence)), sentence
                assert all(value in said(sentence) for value in sentence.values), sentence
    finally:
        make_application(RESOURCES, "en")
        QLocale.setDefault(locale_of("system"))


def test_longer_languages_have_room_in_the_smallest_window(everything: Desk) -> None:
    cut = set()
    for name, root in views(everything):
        everything.qtbot.wait(50)  # layouts settle in the event loop
        for widget, text in cut_texts(root):
            cut.add(f"{name}: {type(widget).__name__}: {text}")
    assert not cut, "\n".join(sorted(cut))


def cut_texts(root: QWidget) -> Iterator[tuple[QWidget, str]]:
    for widget in root.findChildren(QWidget):
        text = widget.text() if isinstance(widget, (QLabel, QAbstractButton)) else ""
        if _BEGIN not in text or not widget.isVisibleTo(root) or isinstance(widget, ElidedLabel):
            continue
        wraps = isinstance(widget, QLabel) and widget.wordWrap()
        flags = int(Qt.TextFlag.TextWordWrap.value) if wraps else 0
        metrics = QFontMetrics(widget.font())
        box = metrics.boundingRect(0, 0, widget.width() if wraps else 10_000, 10_000, flags, text)
        if box.width() > widget.width() + 1 or box.height() > widget.height() + 2:
            yield widget, text
            continue
        area = next((w for w in parents(widget) if isinstance(w, QScrollArea)), root)
        if widget.mapTo(area, QPoint(widget.width(), 0)).x() > area.width() + 1:
            yield widget, text


def parents(widget: QWidget) -> Iterator[QWidget]:
    while (above := widget.parentWidget()) is not None:
        yield above
        widget = above
