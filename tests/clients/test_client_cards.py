"""Cards of all clients on a home of our own: what they say, what they write, and that undo leaves nothing."""

from __future__ import annotations

import json
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from dflash_desktop.base.errors import AppError
from dflash_desktop.clients.card import Card
from dflash_desktop.clients.catalogue import all_cards
from dflash_desktop.clients.edits import BadSettings
from dflash_desktop.clients.endpoint import Endpoint, Machine
from dflash_desktop.clients.writer import SettingsWriter

HERE = Endpoint(port=1234, model="qwen3.5-27b", context_tokens=65536)
ELSEWHERE = Endpoint(port=4321, model="m", context_tokens=8192, key="s3cret")

OLD: dict[str, dict[str, str]] = {
    "cline": {
        ".cline/data/settings/providers.json": (
            '{\n  "version": 1,\n  "providers": {\n    "x": {"settings": {"k": 1}}\n  }\n}\n'
        ),
        ".cline/data/globalState.json": '{"actModeApiProvider":"anthropic","mine":[1,2]}',
    },
    "codex": {".codex/config.toml": 'model = "gpt"\n'},
    "claude_code": {".claude/settings.json": '{\n    "env": {\n        "MINE": "1"\n    },\n    "model": "opus"\n}\n'},
    "opencode": {".config/opencode/opencode.jsonc": '{\n  // mine\n  "theme": "x", // dark\n  "provider": {},\n}\n'},
    "continue": {".continue/config.yaml": "# mine\nname: Me\nmodels:\n  - name: other # keep\n    provider: x\n"},
    "qwen_code": {".qwen/settings.json": '{\r\n  "modelProviders": {"openai": [{"id": "a"}]}\r\n}\r\n'},
    "zed": {".config/zed/settings.json": '// Zed\n{\n  "theme": "One",\n  "language_models": {\n    /* c */\n  }\n}\n'},
    "copilot": {".config/Code/User/chatLanguageModels.json": '[{"vendor": "x", "name": "y"}]'},
    "droid": {".factory/settings.json": '{"customModels": [], "a": 1}'},
}


def home_with(tmp_path: Path, client: str | None) -> Machine:
    for name, text in OLD.get(client or "", {}).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return Machine(tmp_path, {"PATH": ""}, "linux")


def card_of(client: str, endpoint: Endpoint, machine: Machine) -> Card:
    return next(card for card in all_cards(endpoint, machine) if card.client_id == client)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("endpoint", [HERE, ELSEWHERE])
def test_every_card_names_address_and_model_or_says_that_none_is_needed(tmp_path: Path, endpoint: Endpoint) -> None:
    cards = all_cards(endpoint, home_with(tmp_path, None))
    assert len({card.client_id for card in cards}) == len(cards) == 15
    for card in cards:
        said = " ".join([*map(str, card.steps), *(snippet.text for snippet in card.snippets)])
        assert str(endpoint.port) in said, card.client_id
        assert card.steps and card.name
    assert [card.client_id for card in cards if card.is_detected] == ["other"]
    assert files_of(tmp_path) == {}


@pytest.mark.parametrize("client", OLD)
def test_written_settings_hold_ours_and_keep_theirs(tmp_path: Path, client: str) -> None:
    """Conformance 15."""
    home, backups = tmp_path / "home", tmp_path / "backups"
    machine = home_with(home, client)
    before = files_of(home)
    card = card_of(client, ELSEWHERE, machine)
    assert card.is_detected and card.can_write
    writer = SettingsWriter(backups)
    previews = writer.preview(card.edits)
    assert all(preview.diff for preview in previews) and files_of(home) == before
    writer.write(client, card.edits)
    after = files_of(home)
    assert "4321" in "".join(text.decode() for text in after.values())
    for mark in ("mine", "MINE", "other # keep", "// dark", "/* c */", '"id": "a"', '"a": 1', '"k": 1', "y"):
        if any(mark in text.decode() for text in before.values()):
            assert any(mark in text.decode() for text in after.values()), mark
    writer.write(client, card_of(client, ELSEWHERE, machine).edits)  # twice is no harm
    writer.undo(client, card.edits)
    writer.undo(client, card.edits)
    assert files_of(home) == before
    with pytest.raises(AppError, match="nothing to undo"):
        writer.undo(client, card.edits)


@pytest.mark.parametrize("client", OLD)
def test_undo_keeps_what_the_client_changed_meanwhile(tmp_path: Path, client: str) -> None:
    home = tmp_path / "home"
    machine = home_with(home, client)
    card = card_of(client, HERE, machine)
    writer = SettingsWriter(tmp_path / "backups")
    writer.write(client, card.edits)
    for edit in card.edits:
        text = edit.path.read_bytes().decode()
        changed = text.replace('"mine":[1,2]', '"mine":[3]').replace("# mine", "# changed")
        edit.path.write_bytes((changed + "\n").encode())
    writer.undo(client, card.edits)
    for edit in card.edits:
        if edit.path.exists():
            left = edit.path.read_text()
            assert "1234" not in left and "qwen3.5" not in left
            if edit.path.suffix == ".json" and "//" not in left:
                json.loads(left)


def test_clines_files(tmp_path: Path) -> None:
    machine = home_with(tmp_path, "cline")
    card = card_of("cline", HERE, machine)
    SettingsWriter(tmp_path / "b").write("cline", card.edits)
    providers = json.loads((tmp_path / ".cline/data/settings/providers.json").read_text())
    assert providers["providers"]["lmstudio"]["settings"]["baseUrl"] == "http://127.0.0.1:1234/v1"
    assert providers["providers"]["x"] == {"settings": {"k": 1}} and providers["lastUsedProvider"] == "lmstudio"
    state = json.loads((tmp_path / ".cline/data/globalState.json").read_text())
    assert state["planModeLmStudioModelId"] == HERE.model and state["lmStudioBaseUrl"] == "http://127.0.0.1:1234"
    assert not card_of("cline", HERE, Machine(tmp_path / "none", {"PATH": ""}, "linux")).can_write
    moved = Machine(tmp_path / "none", {"PATH": "", "CLINE_DATA_DIR": str(tmp_path / ".cline/data")}, "linux")
    assert card_of("cline", HERE, moved).can_write


def test_codexs_profile_is_toml_and_its_catalogue_json(tmp_path: Path) -> None:
    machine = home_with(tmp_path, "codex")
    SettingsWriter(tmp_path / "b").write("codex", card_of("codex", ELSEWHERE, machine).edits)
    profile = tomllib.loads((tmp_path / ".codex/dflash.config.toml").read_text())
    assert profile["model_providers"]["dflash"]["env_key"] == "DFLASH_API_KEY"
    assert profile["model_providers"]["dflash"]["wire_api"] == "responses"
    catalogue = json.loads(Path(profile["model_catalog_json"]).read_text())
    assert catalogue["models"][0]["context_window"] == 8192
    assert "env_key" not in card_of("codex", HERE, machine).snippets[2].text


def test_claude_codes_variables(tmp_path: Path) -> None:
    machine = home_with(tmp_path, "claude_code")
    card = card_of("claude_code", HERE, machine)
    SettingsWriter(tmp_path / "b").write("claude_code", card.edits)
    env = json.loads((tmp_path / ".claude/settings.json").read_text())["env"]
    assert env["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1234" and env["MINE"] == "1"
    assert all(isinstance(value, str) for value in env.values())
    assert [snippet.language for snippet in card.snippets] == ["bash", "fish", "powershell"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_files_with_a_key_are_private_and_modes_survive(tmp_path: Path) -> None:
    machine = home_with(tmp_path, "claude_code")
    path = tmp_path / ".claude/settings.json"
    path.chmod(0o640)
    writer = SettingsWriter(tmp_path / "b")
    writer.write("claude_code", card_of("claude_code", HERE, machine).edits)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    writer.write("claude_code", card_of("claude_code", ELSEWHERE, machine).edits)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for backup in (tmp_path / "b").rglob("*.json"):
        assert stat.S_IMODE(backup.stat().st_mode) == 0o600


@pytest.mark.parametrize("broken", ["{", '{"env": }', '{"env": 5}', "[]", "\x00", '{"a": 1} x'])
def test_a_file_we_cannot_read_is_left_alone(tmp_path: Path, broken: str) -> None:
    machine = home_with(tmp_path, "claude_code")
    path = tmp_path / ".claude/settings.json"
    path.write_text(broken)
    writer = SettingsWriter(tmp_path / "b")
    card = card_of("claude_code", HERE, machine)
    for act in (lambda: writer.preview(card.edits), lambda: writer.write("claude_code", card.edits)):
        with pytest.raises(BadSettings):
            act()
    assert path.read_text() == broken and files_of(tmp_path / "b") == {}
    path.write_bytes(b"\xff\xfe{\x00}\x00")
    with pytest.raises(BadSettings, match="UTF-8"):
        writer.write("claude_code", card.edits)


@pytest.mark.parametrize("broken", ["models: {", "- a\n", "models: 5\n"])
def test_broken_yaml_is_left_alone(tmp_path: Path, broken: str) -> None:
    machine = home_with(tmp_path, "continue")
    path = tmp_path / ".continue/config.yaml"
    path.write_text(broken)
    with pytest.raises(BadSettings):
        SettingsWriter(tmp_path / "b").write("continue", card_of("continue", HERE, machine).edits)
    assert path.read_text() == broken


def test_either_all_files_are_written_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = home_with(tmp_path, "cline")
    before = files_of(tmp_path)
    real = Path.replace

    def replace(self: Path, target: Any) -> Path:
        if Path(target).name == "globalState.json" and b"lmstudio" in self.read_bytes():
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(AppError, match="No space left"):
        SettingsWriter(tmp_path / "b").write("cline", card_of("cline", HERE, machine).edits)
    monkeypatch.undo()
    assert files_of(tmp_path) == before


def test_five_backups_are_kept(tmp_path: Path) -> None:
    machine = home_with(tmp_path, "droid")
    writer = SettingsWriter(tmp_path / "b")
    for port in range(1, 9):
        endpoint = Endpoint(port=port, model="m", context_tokens=1)
        writer.write("droid", card_of("droid", endpoint, machine).edits)
    assert len(list((tmp_path / "b" / "droid").iterdir())) == 5


def test_a_link_keeps_pointing_to_its_file(tmp_path: Path) -> None:
    machine = home_with(tmp_path, "claude_code")
    path, real = tmp_path / ".claude/settings.json", tmp_path / "dotfiles.json"
    path.rename(real)
    path.symlink_to(real)
    SettingsWriter(tmp_path / "b").write("claude_code", card_of("claude_code", HERE, machine).edits)
    assert path.is_symlink() and "1234" in real.read_text()


def test_a_byte_order_mark_stays(tmp_path: Path) -> None:
    machine = home_with(tmp_path, "claude_code")
    path = tmp_path / ".claude/settings.json"
    before = b"\xef\xbb\xbf" + path.read_bytes()
    path.write_bytes(before)
    writer = SettingsWriter(tmp_path / "b")
    card = card_of("claude_code", HERE, machine)
    writer.write("claude_code", card.edits)
    assert path.read_bytes().startswith(b"\xef\xbb\xbf{")
    writer.undo("claude_code", card.edits)
    assert path.read_bytes() == before
