"""The serve page's tab Access: who may call, with which key, from which pages, and what is done to their prompts."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from dflash_desktop.ui.server.serving import ServePhase
from ui.server.conftest import ServeRoom


def test_the_network_needs_a_key_and_a_new_one_replaces_the_old(room: ServeRoom) -> None:
    room.serve_loaded()
    access = room.serve_page.access
    assert access.key.text() == ""
    assert not access.new_key.isEnabled()
    QTest.mouseClick(access.lan, Qt.MouseButton.LeftButton)
    room.qtbot.waitUntil(lambda: room.serving.phase is ServePhase.SERVING and room.serving.is_lan)
    assert any("0.0.0.0" in address for address in room.serving.addresses)
    key = access.key.text()
    assert key.startswith("sk-dflash-")
    assert not access.asks_key.isEnabled()
    assert room.ask_chat().wait().status == 401
    authorised = {"Authorization": f"Bearer {key}"}
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    assert room.ask("/v1/chat/completions", body, authorised).wait().status == 200
    access.copy_key.click()
    assert QGuiApplication.clipboard().text() == key
    access.show_key.click()
    assert access.key.displayText() == key
    access.new_key.click()
    room.qtbot.waitUntil(lambda: access.key.text() != key and not room.serving.has_pending_settings)
    room.wait_for(ServePhase.SERVING)
    assert room.ask("/v1/chat/completions", body, authorised).wait().status == 401
    assert room.ask("/v1/chat/completions", body, {"x-api-key": access.key.text()}).wait().status == 200


def test_the_key_lies_in_a_file_of_its_owner_alone(room: ServeRoom, tmp_path: Path) -> None:
    key = room.serving.key()
    stored = tmp_path / "server-key"
    assert stored.read_text().strip() == key
    assert stored.stat().st_mode & 0o077 == 0
    assert key not in (tmp_path / "window.json").read_text() if (tmp_path / "window.json").exists() else True


def test_a_web_page_may_call_only_when_it_is_named(room: ServeRoom) -> None:
    room.serve_loaded()
    page = {"Origin": "https://page.example"}
    assert room.ask("/v1/models", None, page).wait().status == 403
    access = room.serve_page.access
    access.origins.setText("page.example")
    access.on_origins_edited()
    assert "page.example is no origin" in access._problem.text()
    assert room.serving.settings.allowed_origins == ""
    access.origins.setText("https://page.example/ http://10.0.0.2:3000")
    access.on_origins_edited()
    assert access._problem.isHidden()
    room.qtbot.waitUntil(lambda: room.serving.phase is not ServePhase.SERVING)
    room.wait_for(ServePhase.SERVING)
    assert room.ask("/v1/models", None, page).wait().status == 200


def test_long_prompts_of_programs_are_shortened_from_the_click_on(room: ServeRoom) -> None:
    """The sockets stay open: nobody's reply is cut off for it."""
    room.serve_loaded()
    assert room.ask("/props").wait().json["pflash"]["mode"] == "off"
    room.serve_page.access.shortens.click()
    assert room.serving.phase is ServePhase.SERVING and not room.serving.has_pending_settings
    room.qtbot.waitUntil(lambda: room.ask("/props").wait().json["pflash"]["mode"] == "auto")
    room.serve_page.access.shortens.click()
    room.qtbot.waitUntil(lambda: room.ask("/props").wait().json["pflash"]["mode"] == "off")
    assert room.serving.phase is ServePhase.SERVING
