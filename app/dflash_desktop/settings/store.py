"""The settings file: read once, changed value by value, told to whoever listens."""

from __future__ import annotations

import logging
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from dflash_desktop.base.causes import Cause
from dflash_desktop.base.errors import AppError, BadInput
from dflash_desktop.base.json_file import read_json, write_json
from dflash_desktop.settings.declare import declared
from dflash_desktop.settings.migrations import migrated
from dflash_desktop.settings.schema import VERSION, Settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

log = logging.getLogger(__name__)
SETTINGS_FILE = "settings.json"
DECLARED = declared(Settings)


class SettingsStore:
    """Used from one thread (the window's). `values` is always complete and within its bounds.

    `problem` is what has to be told to the person about the file, "" when all is well.
    """

    def __init__(self, path: Path | None, older: dict[str, Any] | None = None) -> None:
        """`path` None: in memory only. `older`: what is taken over when there is no file yet (version 0)."""
        self._path = path
        self._unknown: dict[str, Any] = {}  # of a newer version, or of a hand that typed it: kept
        self._version = VERSION
        self._listeners: list[Callable[[Settings], object]] = []
        self.problem = ""
        self.cause: Cause | None = None  # of the problem
        self.values = self._read(older or {})

    def change(self, **changes: str | int | bool) -> None:
        """Set values and write the file. Raises BadInput for a value outside its bounds; a disk that refuses is
        logged and kept in `problem`: the values count until the program ends."""
        for name, value in changes.items():
            if name not in DECLARED:
                raise BadInput(f"There is no setting {name!r}.")
            if not DECLARED[name].accepts(value):
                raise BadInput(f"{value!r} is no value for the setting {name!r}.")
        changed = replace(self.values, **changes)  # type: ignore[arg-type]
        if changed == self.values:
            return
        self.values = changed
        self._write()
        for listener in list(self._listeners):
            listener(changed)

    def reset(self) -> None:
        """Every setting back to its default; unknown ones stay."""
        defaults = Settings()
        self.change(**{found.name: getattr(defaults, found.name) for found in fields(defaults)})

    def subscribe(self, listener: Callable[[Settings], object]) -> None:
        """Call `listener` with the new values after each change, on the thread that changed them."""
        self._listeners.append(listener)

    def unsubscribe(self, listener: Callable[[Settings], object]) -> None:
        """No error when it was not subscribed."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def _read(self, older: dict[str, Any]) -> Settings:
        if self._path is None:
            return Settings()
        try:
            stored = read_json(self._path)
        except AppError as error:
            log.warning("settings: %s", error)
            self.problem, self.cause = str(error), error.cause
            return Settings()
        if stored is None:
            version, values = 0, older
        else:
            version = stored.get("version") if type(stored.get("version")) is int else VERSION  # type: ignore[assignment]
            values = {name: value for name, value in stored.items() if name != "version"}
        self._version = max(VERSION, version)
        values = migrated(values, max(0, version))
        self._unknown = {name: value for name, value in values.items() if name not in DECLARED}
        sound = {name: values[name] for name in DECLARED if name in values and DECLARED[name].accepts(values[name])}
        for name in values.keys() & DECLARED.keys() - sound.keys():
            log.warning("settings: %s has no use for %r, the default is used", name, values[name])
        return replace(Settings(), **sound)

    def _write(self) -> None:
        if self._path is None:
            return
        stored = {name: getattr(self.values, name) for name in DECLARED}
        try:
            # A newer version's number stays: that version must not migrate its own values again.
            write_json(self._path, {"version": self._version, **self._unknown, **stored})
            self.problem, self.cause = "", None
        except OSError as error:
            log.warning("settings could not be written: %s", error)
            reason = error.strerror or str(error)
            self.problem = f"The settings cannot be written to {self._path}: {reason}."
            self.cause = Cause("state_unwritable", {"file": str(self._path), "reason": reason})
