"""One theme, switched while the window is open."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QLocale, Qt
from PySide6.QtGui import QColor, QFontDatabase, QFontMetrics, QImage, QTextLayout
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import DARK, LIGHT
from dflash_desktop.ui.kit.rail import RailButton
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import icon_button, push_button
from ui.conftest import RESOURCES, Desk


def test_a_switch_repaints_window_and_icons(desk: Desk, theme: Theme) -> None:
    def corner() -> str:
        return desk.window.grab().toImage().pixelColor(desk.window.width() - 3, desk.window.height() - 3).name()

    assert corner() == LIGHT.window
    icon_before = desk.page.new_button.icon().pixmap(18).toImage()
    with desk.qtbot.waitSignal(theme.changed):
        theme.set_mode("dark")
    assert corner() == DARK.window
    assert desk.page.new_button.icon().pixmap(18).toImage() != icon_before


def test_following_the_system_takes_its_scheme(theme: Theme, app: QApplication) -> None:
    theme.set_mode("system")
    is_dark = app.styleHints().colorScheme() == Qt.ColorScheme.Dark
    assert theme.palette.is_dark is is_dark
    theme.set_mode("light")


@pytest.mark.parametrize("path", sorted((RESOURCES / "icons").glob("*.svg")), ids=lambda path: path.stem)
def test_every_icon_paints_something_in_the_colour_asked_for(path: Path, icons: Icons, theme: Theme) -> None:
    if path.stem == "dflash-desktop":
        image = icons.app_pixmap(64, 2.0).toImage()
        assert image.width() == 128
    elif path.stem.startswith("combo-"):  # read by the style sheet, which cannot colour
        image = icons.pixmap(path.stem, "bad", 18, 2.0).toImage()
        assert strongest(image).name() == (DARK if "dark" in path.stem else LIGHT).muted
    elif path.stem.endswith("-on-accent"):  # the same
        image = icons.pixmap(path.stem, "bad", 18, 2.0).toImage()
        assert strongest(image).name() == LIGHT.on_accent == DARK.on_accent
    else:
        image = icons.pixmap(path.stem, "bad", 18, 2.0).toImage()
        assert image.width() == 36
        assert strongest(image).name() == theme.palette.bad
    assert any(image.pixelColor(x, y).alpha() for x in range(image.width()) for y in range(image.height()))


def test_a_button_that_died_leaves_no_follower_behind(icons: Icons, theme: Theme, qtbot: QtBot) -> None:
    button = QPushButton()
    icons.put(button, "copy")
    icons.put(button, "check")
    button.deleteLater()
    qtbot.waitUntil(lambda: button not in QApplication.allWidgets())
    theme.set_mode("dark")
    theme.set_mode("light")


def test_chinese_is_written_with_chinese_forms_and_latin_as_before(theme: Theme) -> None:
    """Chinese and Japanese share characters; a system that is set to neither takes the Japanese forms."""

    def faces(text: str) -> set[str]:
        layout = QTextLayout(text, theme.font("body"))
        layout.beginLayout()
        layout.createLine()
        layout.endLayout()
        return {run.rawFont().familyName() for run in layout.glyphRuns()}

    if "Noto Sans CJK SC" not in QFontDatabase.families():
        pytest.skip("no font of this machine has both forms")
    before_locale, before = QLocale(), faces("Hamburg")
    QLocale.setDefault(QLocale("zh_CN"))
    theme.set_font_percent(100)
    try:
        assert faces("骨直角") == {"Noto Sans CJK SC"}
        assert faces("Hamburg") == before
    finally:
        QLocale.setDefault(before_locale)
        theme.set_font_percent(100)
    assert faces("Hamburg") == before


def test_what_holds_text_and_what_stands_beside_it_grow_with_the_text(theme: Theme, icons: Icons, qtbot: QtBot) -> None:
    def measured() -> tuple[int, int, int, int]:
        button, square = push_button(theme, "Load"), icon_button(icons, "copy", "Copy")
        rail = RailButton(theme, icons, "chat", "Chat")
        for widget in (button, square, rail):
            qtbot.addWidget(widget)
        button.ensurePolished()
        room = button.sizeHint().height() - QFontMetrics(button.font()).height()
        return room, square.width(), square.iconSize().width(), rail.sizeHint().height()

    usual = measured()
    theme.set_font_percent(200)
    try:
        large = measured()
    finally:
        theme.set_font_percent(100)
    assert all(after >= 1.7 * before for before, after in zip(usual, large, strict=True)), (usual, large)
    assert measured() == usual


def strongest(image: QImage) -> QColor:
    colors = [image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height())]
    return QColor(max(colors, key=lambda color: color.alpha()).rgb())
