"""All settings. The settings page and its help are built from this list; nothing else declares one."""

from __future__ import annotations

from dataclasses import dataclass

from dflash_desktop.base.phrase import QT_TRANSLATE_NOOP
from dflash_desktop.settings.declare import Words, setting

VERSION = 1


@dataclass(frozen=True, slots=True)
class Settings:
    """Values in force. Window places and unsent text are state, not settings, and are kept elsewhere."""

    language: str = setting(
        "system",
        "general",
        Words(
            QT_TRANSLATE_NOOP("settings", "Language"),
            QT_TRANSLATE_NOOP("settings", "Takes effect at once; the model stays loaded, and what runs goes on."),
            (
                ("system", QT_TRANSLATE_NOOP("settings", "As the system")),
                ("en", "English"),
                ("zh_CN", "简体中文"),
            ),
        ),
    )
    theme: str = setting(
        "system",
        "general",
        Words(
            QT_TRANSLATE_NOOP("settings", "Theme"),
            QT_TRANSLATE_NOOP("settings", "Light, dark, or whatever the desktop uses."),
            (
                ("system", QT_TRANSLATE_NOOP("settings", "As the system")),
                ("light", QT_TRANSLATE_NOOP("settings", "Light")),
                ("dark", QT_TRANSLATE_NOOP("settings", "Dark")),
            ),
        ),
    )
    font_percent: int = setting(
        100,
        "general",
        Words(
            QT_TRANSLATE_NOOP("settings", "Text size"),
            QT_TRANSLATE_NOOP("settings", "Of everything in the window, on top of what the screen asks for."),
        ),
        low=80,
        high=200,
        step=10,
        unit="%",
    )
    stays_in_tray: bool = setting(
        False,
        "general",
        Words(
            QT_TRANSLATE_NOOP("settings", "Keep serving in the tray when the window is closed"),
            QT_TRANSLATE_NOOP("settings", "Only while the server is on. Otherwise closing ends the program."),
        ),
    )
    draft_mode: str = setting(
        "auto",
        "engine",
        Words(
            QT_TRANSLATE_NOOP("settings", "Draft"),
            QT_TRANSLATE_NOOP("settings", "Answers are the target's own; the draft only changes speed."),
            (
                ("auto", QT_TRANSLATE_NOOP("settings", "Auto")),
                ("on", QT_TRANSLATE_NOOP("settings", "On")),
                ("off", QT_TRANSLATE_NOOP("settings", "Off")),
            ),
        ),
    )
    loads_last_pair: bool = setting(
        False,
        "engine",
        Words(
            QT_TRANSLATE_NOOP("settings", "Load the last model at the start"),
            QT_TRANSLATE_NOOP("settings", "With the settings it had. Not after a start that ended in a crash."),
        ),
    )
    default_context_tokens: int = setting(
        0,
        "engine",
        Words(
            QT_TRANSLATE_NOOP("settings", "Context of a new model"),
            QT_TRANSLATE_NOOP(
                "settings", "Proposed when a model is loaded for the first time; never more than fits in memory."
            ),
            zero=QT_TRANSLATE_NOOP("settings", "what fits, up to 32,768"),
        ),
        low=0,
        high=1_048_576,
        step=1024,
        unit=QT_TRANSLATE_NOOP("settings", "tokens"),
    )
    detailed_log: bool = setting(
        False,
        "files",
        Words(
            QT_TRANSLATE_NOOP("settings", "Detailed log"),
            QT_TRANSLATE_NOOP("settings", "Writes more about the engine. Never what you or the model wrote."),
        ),
    )
