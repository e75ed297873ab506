"""What a changed setting does: theme at once, language and text size by building the window again around its desks."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Literal, cast

from PySide6.QtCore import QObject, Signal

from dflash_desktop.base.causes import Cause
from dflash_desktop.base.json_file import files_aside, original_name, take_as_known
from dflash_desktop.base.run_marker import LostRun
from dflash_desktop.settings.schema import Settings
from dflash_desktop.settings.store import SettingsStore
from dflash_desktop.ui.engine.pair_state import PairState
from dflash_desktop.ui.kit.cause_words import cause_words
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.worker import Worker
from dflash_desktop.ui.parts import Home

log = logging.getLogger(__name__)
_REBUILDING = ("language", "font_percent")


class SettingsDesk(QObject):
    """`close` ends its listening."""

    rebuild_wanted = Signal()  # another language, or letters of another size
    changed = Signal()

    def __init__(self, store: SettingsStore, theme: Theme, pair_state: PairState, home: Home | None) -> None:
        super().__init__()
        self.store = store
        self.home = home
        self._theme = theme
        self._pair_state = pair_state
        self._before = store.values
        self.worker = Worker("settings")
        store.subscribe(self.on_settings_changed)

    def close(self) -> None:
        """Hear of nothing any more, and end the thread."""
        self.store.unsubscribe(self.on_settings_changed)
        self.worker.close(timeout_s=2.0)

    def on_settings_changed(self, values: Settings) -> None:
        before, self._before = self._before, values
        self._theme.set_mode(cast(Literal["system", "light", "dark"], values.theme))
        if values.draft_mode != before.draft_mode:  # a pair that is loaded may have a mode of its own
            self._pair_state.set_draft_mode(values.draft_mode)
        self.changed.emit()
        if any(getattr(before, name) != getattr(values, name) for name in _REBUILDING):
            self.rebuild_wanted.emit()

    def files_aside(self) -> list[Path]:
        """Damaged files of ours that the person has not dealt with yet. Told at every start until then."""
        if self.home is None:
            return []
        folders = dict.fromkeys((self.home.paths.config, self.home.paths.data))
        return [path for folder in folders for path in files_aside(folder)]

    def damage_words(self) -> str:
        """What to tell about them, and about settings that cannot be read where they lie; "" when all is well."""
        damaged = self.files_aside()
        causes = [Cause("state_broken", {"file": original_name(one), "aside": one.name}) for one in damaged]
        if self.store.cause is not None and self.store.cause.name("aside") not in [one.name for one in damaged]:
            causes.insert(0, self.store.cause)
        return "\n".join(map(cause_words, causes))

    def forget_damage(self) -> None:
        """The person has read it: those files stay, and are told of no more."""
        for path in self.files_aside():
            try:
                take_as_known(path)
            except OSError as error:
                log.warning("%s cannot be renamed: %s", path, error)

    def lost_run(self) -> LostRun | None:
        """The last run that did not end by itself."""
        return self.home.lost_runs[0] if self.home is not None and self.home.lost_runs else None

    def lost_run_words(self) -> str:
        """What to tell about it; "" when the last run ended as it should."""
        lost = self.lost_run()
        if lost is None:
            return ""
        model = lost.details.get("target", "")
        device = lost.details.get("device", "")
        if lost.activity == "load" and model:
            words = self.tr("The program ended unexpectedly last time, while {0} was being loaded on {1}.").format(
                model, device or self.tr("the best device")
            )
        elif lost.activity == "reply" and model:
            words = self.tr("The program ended unexpectedly last time, while {0} was answering on {1}.").format(
                model, device or self.tr("the best device")
            )
        else:
            words = self.tr("The program ended unexpectedly last time.")
        if lost.has_crashed:
            cause = self.tr("The engine or its driver crashed; the log has the details.")
        else:
            cause = self.tr(
                "It was ended from outside: by the system (perhaps out of memory), by hand or by a power cut."
            )
        return self.tr("{0} {1} Your chats and what you had typed are still here.").format(words, cause)
