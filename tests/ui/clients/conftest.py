"""The cards stand on the serve page: the same window as its tests."""

from __future__ import annotations

from ui.server.conftest import home, make_room, room

__all__ = ["home", "make_room", "room"]
