"""What the catalogue says of its pairs, in the window's language. A pair that came later speaks English."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from dflash_desktop.base.phrase import QT_TRANSLATE_NOOP

# The texts of resources/catalogue/pairs.json once more: Qt's lupdate reads Python, not JSON. A test compares them.
SUMMARIES = (
    QT_TRANSLATE_NOOP("catalogue", "The default on a 24 GB card: writes, reasons, codes and calls tools."),
    QT_TRANSLATE_NOOP("catalogue", "The generation before; its draft is the best measured one on code."),
    QT_TRANSLATE_NOOP("catalogue", "The newest of the three, with a DFlash2 draft."),
    QT_TRANSLATE_NOOP("catalogue", "For cards with 10 to 16 GB: a good all-rounder with a long context."),
    QT_TRANSLATE_NOOP("catalogue", "For 10 to 12 GB; its draft was made for answers without thinking."),
    QT_TRANSLATE_NOOP("catalogue", "For 10 to 12 GB; no thinking, quick and plain."),
    QT_TRANSLATE_NOOP("catalogue", "For cards with 6 to 8 GB, and for patient people without one."),
    QT_TRANSLATE_NOOP("catalogue", "For 6 to 8 GB; its draft was made for answers without thinking."),
)


def summary_words(summary: str) -> str:
    return QCoreApplication.translate("catalogue", summary)
