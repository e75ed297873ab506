"""What went wrong with a load, or with the last run: told where the person looks, with buttons that lead on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, QUrl, Slot
from PySide6.QtGui import QDesktopServices

from dflash_desktop.engine.events import JobFailed
from dflash_desktop.ui.engine.failures import WayOut, load_failure, way_words
from dflash_desktop.ui.engine.load_desk import LoadDesk
from dflash_desktop.ui.engine.pair_state import PairFiles, PairState
from dflash_desktop.ui.kit.notice import Notice, Way
from dflash_desktop.ui.settings.desk import SettingsDesk


class TroubleTarget(Protocol):
    """What a way out needs of the window."""

    def current_notice(self) -> Notice: ...

    def adjust_load(self, files: PairFiles) -> object: ...

    def show_log(self) -> object: ...

    def ask_for_report(self) -> object: ...


class Troubles(QObject):
    """Belongs to one window."""

    def __init__(
        self, target: TroubleTarget, pair_state: PairState, load_desk: LoadDesk, settings_desk: SettingsDesk
    ) -> None:
        super().__init__()
        self._target = target
        self._pair_state = pair_state
        self._load_desk = load_desk
        self._settings_desk = settings_desk
        pair_state.failed.connect(self.on_load_failed)

    def begin(self, *, reloads: bool) -> None:
        """At the start: tell of damaged files, and of a run that was lost; else load what was loaded, where that is
        wished for."""
        lost = self._settings_desk.lost_run_words()
        damage = self._settings_desk.damage_words()
        last = self._load_desk.last_pair()
        ways = self._damage_ways() if damage else []
        if lost:
            ways += [self._button(way, last) for way in ("log", "report")]
            if last is not None:
                ways.insert(0, self._button("choose", last))
        if lost or damage:
            words = "\n".join(part for part in (lost, damage) if part)
            self._target.current_notice().show_error(words, "", None, ways, lasts=bool(damage))
        is_wanted = reloads or self._settings_desk.store.values.loads_last_pair
        if not lost and is_wanted and last is not None and self._pair_state.asked is None:
            self._pair_state.load(last)

    def _damage_ways(self) -> list[Way]:
        folders = dict.fromkeys(path.parent for path in self._settings_desk.files_aside())
        ways: list[Way] = [
            (self.tr("Show in folder"), partial(QDesktopServices.openUrl, QUrl.fromLocalFile(str(folder))))
            for folder in list(folders)[:1]
        ]
        if folders:
            ways.append((self.tr("Do not tell again"), self._settings_desk.forget_damage))
        return ways

    @Slot(object)
    def on_load_failed(self, failure: JobFailed) -> None:
        asked = self._pair_state.asked
        told = load_failure(failure, asked, self._load_desk.devices)
        first, *rest = [self._button(way, asked) for way in told.ways]
        self._target.current_notice().show_error(told.words(), *first, rest, told.details())

    def _button(self, way: WayOut, files: PairFiles | None) -> tuple[str, Callable[[], object]]:
        return way_words(way), self._action(way, files)

    def _action(self, way: WayOut, files: PairFiles | None) -> Callable[[], object]:
        match way:
            case "without_draft":
                return self._pair_state.load_again_without_draft
            case "again":
                return self._pair_state.load_again
            case "log":
                return self._target.show_log
            case "report":
                return self._target.ask_for_report
            case "choose":
                chosen = files if files is not None else PairFiles(Path(), None)
                return lambda: self._target.adjust_load(chosen)
