"""How a setting is declared: type, default, bounds, and the words beside its control, all in one place."""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, TypeVar

Value = TypeVar("Value", str, int, bool)
_META = "setting"


@dataclass(frozen=True, slots=True)
class Words:
    """What the person reads: texts of the translation context `settings`, in English."""

    title: str
    help: str
    choices: tuple[tuple[str, str], ...] = ()  # value and its name
    zero: str = ""  # what the lowest value of a number stands for, such as "automatic"


@dataclass(frozen=True, slots=True)
class Setting:
    """One declared setting, as the store checks it and the page shows it."""

    name: str
    section: str
    default: str | int | bool
    words: Words
    low: int = 0
    high: int = 0
    step: int = 1
    unit: str = ""

    @property
    def kind(self) -> str:
        """choice, number, switch or text."""
        if self.words.choices:
            return "choice"
        return {bool: "switch", int: "number", str: "text"}[type(self.default)]

    def accepts(self, value: object) -> bool:
        """Whether a stored or given value may be used as it stands."""
        if type(value) is not type(self.default):
            return False
        if self.words.choices:
            return any(value == choice for choice, _ in self.words.choices)
        return not (self.kind == "number" and not self.low <= value <= self.high)  # type: ignore[operator]


def setting(
    default: Value, section: str, words: Words, *, low: int = 0, high: int = 0, step: int = 1, unit: str = ""
) -> Value:
    """A field of a settings class. `low` and `high` bound a number, both included."""
    made: Value = field(
        default=default,
        metadata={_META: {"section": section, "words": words, "low": low, "high": high, "step": step, "unit": unit}},
    )
    return made


def declared(record: type[Any]) -> dict[str, Setting]:
    """Every setting of a settings class, in the order of its declaration."""
    return {found.name: _of(found) for found in fields(record) if _META in found.metadata}


def _of(found: Field[Any]) -> Setting:
    if found.default is MISSING:
        raise TypeError(f"the setting {found.name} has no default")
    made = Setting(found.name, default=found.default, **found.metadata[_META])
    if not made.accepts(made.default):
        raise TypeError(f"the default of the setting {found.name} breaks its own bounds")
    return made
