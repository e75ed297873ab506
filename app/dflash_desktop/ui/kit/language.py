"""The language of the window: Qt's texts and ours, and the notation of numbers."""

from __future__ import annotations

from pathlib import Path

import shiboken6
from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator
from PySide6.QtWidgets import QApplication

_OURS = "dflash"
_QTS = "qtbase"


def locale_of(language: str) -> QLocale:
    """The locale of a language setting: `system`, or a name such as `zh_CN`."""
    return QLocale.system() if language == "system" else QLocale(language)


def apply_language(app: QApplication, resources: Path, language: str) -> None:
    """Speak `language` from now on. Texts that are shown already stay as they are."""
    for old in app.findChildren(QTranslator):
        QCoreApplication.removeTranslator(old)
        shiboken6.delete(old)
    locale = locale_of(language)
    QLocale.setDefault(locale)
    for name, folder in (
        (_QTS, QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)),
        (_OURS, str(resources / "i18n")),
    ):
        translator = QTranslator(app)
        if _load(translator, locale, name, folder):
            QCoreApplication.installTranslator(translator)
        else:
            shiboken6.delete(translator)


def _load(translator: QTranslator, locale: QLocale, name: str, folder: str) -> bool:
    if translator.load(locale, name, "_", folder):
        return True
    # Singapore writes as China does, but its list of languages does not lead there.
    is_simplified = locale.script() == QLocale.Script.SimplifiedHanScript
    return is_simplified and translator.load(f"{name}_zh_CN", folder)
