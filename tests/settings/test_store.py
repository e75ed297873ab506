"""The settings file: defaults, bounds, migrations, damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dflash_desktop.base.errors import BadInput
from dflash_desktop.settings.migrations import MIGRATIONS
from dflash_desktop.settings.schema import VERSION, Settings
from dflash_desktop.settings.store import DECLARED, SettingsStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "größe 家庭" / "settings.json"


def stored(path: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return values


def test_without_a_file_all_is_default_and_nothing_is_written(path: Path) -> None:
    store = SettingsStore(path)
    assert store.values == Settings()
    assert store.problem == ""
    assert not path.exists()


def test_what_was_changed_is_there_at_the_next_start(path: Path) -> None:
    SettingsStore(path).change(theme="dark", font_percent=130, loads_last_pair=True)
    again = SettingsStore(path).values
    assert (again.theme, again.font_percent, again.loads_last_pair) == ("dark", 130, True)
    assert stored(path)["version"] == VERSION
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "change",
    [
        {"theme": "pink"},
        {"font_percent": 79},
        {"font_percent": 201},
        {"font_percent": 1.5},
        {"loads_last_pair": 1},
        {"x": 1},
    ],
)
def test_a_value_outside_its_bounds_is_refused(path: Path, change: dict[str, Any]) -> None:
    store = SettingsStore(path)
    with pytest.raises(BadInput):
        store.change(**change)
    assert store.values == Settings()


def test_listeners_hear_changes_once_and_only_real_ones(path: Path) -> None:
    store = SettingsStore(path)
    heard: list[Settings] = []
    store.subscribe(heard.append)
    store.change(theme="dark")
    store.change(theme="dark")
    store.unsubscribe(heard.append)
    store.change(theme="light")
    assert [values.theme for values in heard] == ["dark"]


def test_unknown_settings_and_a_newer_version_are_kept(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"version": VERSION + 7, "theme": "dark", "from_the_future": [1, {"a": 2}]}), "utf-8")
    store = SettingsStore(path)
    assert store.values.theme == "dark"
    store.change(font_percent=90)
    assert stored(path)["from_the_future"] == [1, {"a": 2}]
    assert stored(path)["version"] == VERSION + 7


def test_one_bad_value_costs_only_itself(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"version": VERSION, "theme": 5, "font_percent": 120, "language": "tlh"}), "utf-8")
    assert SettingsStore(path).values == Settings(font_percent=120)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\x00\xff\xfe", b'{"version": 1, "theme": "da', b"[" * 100_000])
def test_a_damaged_file_is_moved_aside_and_told(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    store = SettingsStore(path)
    assert store.values == Settings()
    (aside,) = path.parent.iterdir()
    assert "broken" in aside.name
    assert aside.read_bytes() == content
    assert str(aside) in store.problem
    store.change(theme="dark")
    assert SettingsStore(path).values.theme == "dark"
    assert aside.exists()


def test_a_disk_that_refuses_is_told_and_the_value_counts(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = SettingsStore(tmp_path / "file" / "settings.json")
    store.change(theme="dark")
    assert store.values.theme == "dark"
    assert "cannot be written" in store.problem


def test_reset_gives_every_default_back(path: Path) -> None:
    store = SettingsStore(path)
    store.change(theme="dark", font_percent=200, detailed_log=True)
    store.reset()
    assert SettingsStore(path).values == Settings()


def test_every_older_version_has_a_step_forward() -> None:
    assert sorted(MIGRATIONS) == list(range(VERSION))


def test_version_0_was_the_windows_own_file(path: Path) -> None:
    older = {"version": 1, "theme": "dark", "draft_mode": "off", "composer_text": "not a setting", "page": "engine"}
    store = SettingsStore(path, older)
    assert (store.values.theme, store.values.draft_mode) == ("dark", "off")
    store.change(font_percent=110)
    assert "composer_text" not in stored(path)
    assert SettingsStore(path, {"theme": "light"}).values.theme == "dark"  # the file now counts, the old one no more


def test_every_setting_is_declared_with_words_and_bounds() -> None:
    assert set(DECLARED) == set(Settings.__dataclass_fields__)
    for setting in DECLARED.values():
        assert setting.words.title and setting.words.help
        assert setting.accepts(setting.default)
        if setting.kind == "number":
            assert setting.low < setting.high
            assert not setting.accepts(setting.high + 1)
        if setting.kind == "choice":
            assert len(setting.words.choices) > 1
