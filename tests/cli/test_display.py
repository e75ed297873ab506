"""Without a screen the window command says so, and Qt is never asked."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dflash_desktop.base.errors import AppError
from dflash_desktop.cli.display import require_display

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems always have a screen")


@pytest.fixture(autouse=True)
def no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)


def test_without_a_display_it_names_the_terminal_twin() -> None:
    with pytest.raises(AppError, match=r"no display .* dflash-desktop chat"):
        require_display()


def test_a_dead_display_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":4711")
    with pytest.raises(AppError, match=r":4711 does not answer.*dflash-desktop chat"):
        require_display()


def test_a_wayland_name_without_its_socket_is_no_display(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(AppError, match="no display"):
        require_display()


def test_a_platform_chosen_by_hand_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    require_display()
