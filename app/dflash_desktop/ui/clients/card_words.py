"""The sentences of the cards in the window's language."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from dflash_desktop.base.phrase import Phrase


def said(text: Phrase | str | None) -> str:
    """A phrase translated; a plain text is a name and stays as it is."""
    if isinstance(text, Phrase):
        return QCoreApplication.translate("clients", text.text).format(*text.values)
    return text or ""
