"""Every way a load can fail, told with a way out: what happened, why, and the buttons that lead on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from PySide6.QtCore import QCoreApplication

from dflash_desktop.engine.devices import Device
from dflash_desktop.engine.events import JobFailed
from dflash_desktop.ui.engine.pair_state import PairFiles
from dflash_desktop.ui.kit.cause_words import cause_words

translate = QCoreApplication.translate

WayOut = Literal["without_draft", "choose", "again", "log", "report"]
"""load without the draft; the load panel with these files; the same once more; the log; a report"""


@dataclass(frozen=True, slots=True)
class Failure:
    """In the window's language, with the engine's own sentence (file, field, value). The first way is the best."""

    headline: str
    detail: str
    ways: tuple[WayOut, ...]
    explained: str = ""  # the cause in the window's language; "" where only the engine's sentence is known

    def words(self) -> str:
        return "\n".join(part for part in (self.headline, self.explained or self.detail) if part)

    def details(self) -> str:
        """What `words` leaves out; "" when that is nothing."""
        return self.detail if self.explained else ""


def load_failure(failure: JobFailed, asked: PairFiles | None, devices: Sequence[Device]) -> Failure:
    """What to say of a load that failed."""
    explained = cause_words(failure.cause) if failure.cause is not None else ""
    found = _found(failure, asked, devices)
    if failure.kind == "bug" and explained:  # it says what the headline says
        found = replace(found, headline="")
    return replace(found, explained=explained)


def _found(failure: JobFailed, asked: PairFiles | None, devices: Sequence[Device]) -> Failure:
    has_draft = asked is not None and asked.draft is not None
    if asked is not None and _is_device_missing(asked, devices):
        headline = translate("failures", "The chosen device is not there. Nothing was loaded anywhere else.")
        return Failure(headline, failure.message, ("choose", "again"))
    match failure.kind:
        case "out_of_memory":
            headline = translate("failures", "The memory is not enough for this.")
            ways: tuple[WayOut, ...] = ("choose", "without_draft") if has_draft else ("choose",)
            return Failure(headline, failure.message, ways)
        case "device":
            headline = translate("failures", "The device failed.")
            return Failure(headline, failure.message, ("again", "choose", "log"))
        case "bug":
            headline = translate("failures", "Something went wrong in the program itself.")
            return Failure(headline, failure.message, ("again", "log", "report"))
        case _:
            if has_draft:
                headline = translate("failures", "This pair cannot be loaded.")
                return Failure(headline, failure.message, ("without_draft", "choose"))
            headline = translate("failures", "This model cannot be loaded.")
            return Failure(headline, failure.message, ("choose",))


def way_words(way: WayOut) -> str:
    """What its button says."""
    match way:
        case "without_draft":
            return translate("failures", "Load without the draft")
        case "choose":
            return translate("failures", "Change what is loaded…")
        case "again":
            return translate("failures", "Try again")
        case "log":
            return translate("failures", "Show the log")
        case "report":
            return translate("failures", "Save a report…")


def _is_device_missing(asked: PairFiles, devices: Sequence[Device]) -> bool:
    wanted = asked.options.device
    if not wanted or not devices:
        return False
    return not any(device.answers_to(wanted) for device in devices)
