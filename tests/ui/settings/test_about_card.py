"""About: the version, and every licence of what is shipped."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from dflash_desktop import __version__
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.settings.about_card import AboutCard, licence_text


def test_a_checkout_shows_the_licences_of_its_source(theme: Theme, qtbot: QtBot) -> None:
    card = AboutCard(theme)
    qtbot.addWidget(card)
    dialog = card.on_licences_clicked()
    shown = dialog.text.toPlainText()
    for words in ("Apache License", "PySide6", "MIT License", "GNU LESSER GENERAL PUBLIC LICENSE"):
        assert words in shown
    dialog.close()


def test_a_packed_program_shows_what_was_collected(tmp_path: Path) -> None:
    for name, text in (("LICENSE.txt", "ours"), ("third-party.txt", "all parts"), ("ggml.txt", "one part")):
        (tmp_path / name).write_text(text)
    assert licence_text(tmp_path) == "ours\n\n\nall parts\n"


def test_the_version_is_said(theme: Theme, qtbot: QtBot) -> None:
    from PySide6.QtWidgets import QLabel

    card = AboutCard(theme)
    qtbot.addWidget(card)
    assert any(__version__ in label.text() for label in card.findChildren(QLabel))
