"""The state file: read what is sound, replace as a whole, never stand in the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dflash_desktop.ui.kit.window_state import WindowState, WindowStateFile


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    state = WindowState(
        page="engine",
        composer_text="家庭 😀 \ud800 'q' \\ \"",
        reply_settings={"temperature": 1.5},
        has_side_panel=True,
    )
    file = WindowStateFile(tmp_path / "ü ö" / "window.json")
    assert file.write(state)
    assert file.read() == state
    assert [p.name for p in (tmp_path / "ü ö").iterdir()] == ["window.json"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        "\x00\xff",
        '{"version": 99, "page": "engine"}',
        '{"version": 1, "last_folder": 5, "page": []}',
    ],
)
def test_a_broken_or_foreign_file_gives_the_defaults(tmp_path: Path, text: str) -> None:
    path = tmp_path / "window.json"
    path.write_bytes(text.encode("latin-1"))
    assert WindowStateFile(path).read() == WindowState()


def test_sound_values_survive_beside_unsound_ones(tmp_path: Path) -> None:
    path = tmp_path / "window.json"
    path.write_text(
        json.dumps({"version": 1, "composer_text": "kept", "has_side_panel": 1, "reply_settings": {"a": 1}}), "utf-8"
    )
    state = WindowStateFile(path).read()
    assert (state.composer_text, state.has_side_panel, state.reply_settings) == ("kept", False, {"a": 1})


def test_a_disk_that_refuses_costs_nobody_their_work(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("", "utf-8")
    assert not WindowStateFile(blocker / "window.json").write(WindowState())


def test_an_unchanged_state_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "window.json"
    file = WindowStateFile(path)
    file.write(WindowState())
    path.unlink()
    assert file.write(WindowState())
    assert not path.exists()


def test_geometry_that_is_no_base64_is_ignored() -> None:
    assert WindowState(geometry="!!").geometry_bytes() == b""
