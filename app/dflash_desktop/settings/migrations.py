"""How older settings files become today's. Each step takes the values of one version and gives those of the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dflash_desktop.settings.schema import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable


def _from_window_state(values: dict[str, Any]) -> dict[str, Any]:
    """0 to 1: theme and draft switch lay in the window's own file before there were settings."""
    return {name: values[name] for name in ("theme", "draft_mode") if name in values}


MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {0: _from_window_state}


def migrated(values: dict[str, Any], version: int) -> dict[str, Any]:
    """The values as this version reads them. Newer files are left as they are: what is unknown is kept, not used."""
    for step in range(version, VERSION):
        values = MIGRATIONS[step](values)
    return values
