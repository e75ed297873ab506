"""The window as a person uses it, on a scripted engine: start, model bar, files, what is there at the next start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest

from dflash_desktop.ui.chats.messages import ReplyState
from dflash_desktop.ui.engine.pair_state import PairFiles, Phase
from dflash_desktop.ui.kit.window_state import WindowState, WindowStateFile
from ui.conftest import Desk
from ui.scripted_engine import Script

MakeDesk = Callable[..., Desk]


def test_the_first_screen_tells_device_pair_and_what_to_do(desk: Desk) -> None:
    start = desk.page.start
    assert desk.page.is_start_shown
    texts = " ".join(label.text() for label in start.findChildren(type(start._device_name)))
    assert "Scripted processor" in texts
    assert "21.0 GiB of 24.0 GiB" in texts
    assert "SmolLM2 135M Instruct" in texts
    assert "113.2 MB" in texts
    assert "Apache-2.0" in texts
    assert start.start_button.isVisible()
    assert start.open_button.isVisible()


def test_without_a_built_in_model_it_says_so_and_offers_a_file(make_desk: MakeDesk) -> None:
    desk = make_desk(starter=None)
    desk.send("hello")
    assert "No model is loaded yet" in desk.page.notice.text()
    assert desk.composer.text() == "hello"
    assert desk.page.start.open_button.property("kind") == "primary"


def test_one_button_loads_and_a_message_is_answered(make_desk: MakeDesk) -> None:
    desk = make_desk(Script(text="It is **blue**."))
    QTest.mouseClick(desk.page.start.start_button, Qt.MouseButton.LeftButton)
    desk.qtbot.waitUntil(lambda: desk.window.pair_state.phase is Phase.LOADED)
    QTest.keyClicks(desk.composer.edit, "Why is the sky blue?")
    QTest.keyClick(desk.composer.edit, Qt.Key.Key_Return)
    desk.wait_for_reply()
    assert desk.composer.text() == ""
    assert [m.text for m in desk.items.messages()] == ["Why is the sky blue?", "It is **blue**."]
    reply = desk.items.message(1)
    assert reply.state is ReplyState.DONE
    assert reply.facts is not None
    assert "draft on" in reply.facts.line()
    assert "finished" in reply.facts.line()


def test_the_model_bar_names_the_pair_and_the_state_of_the_draft(desk: Desk) -> None:
    bar = desk.window.model_bar
    assert "No model loaded" in bar.names()
    desk.load()
    assert bar.names() == "SmolLM2 135M Instruct + SmolLM2 DFlash"
    assert "Auto uses it where it is faster" in bar.sentence()
    assert bar.draft_switch.toolTip() == "Answers are the target's own; the draft only changes speed."
    QTest.mouseClick(bar.draft_switch.buttons()[2], Qt.MouseButton.LeftButton)
    assert "switched off" in bar.sentence()
    QTest.mouseClick(bar.unload_button, Qt.MouseButton.LeftButton)
    desk.qtbot.waitUntil(lambda: desk.window.pair_state.phase is Phase.EMPTY)
    assert "No model loaded" in bar.names()


def test_the_draft_switch_is_what_the_engine_is_asked_for(desk: Desk) -> None:
    desk.load()
    for index, (mode, budget) in enumerate((("auto", 0), ("tree", 7), ("off", 0))):
        QTest.mouseClick(desk.window.model_bar.draft_switch.buttons()[index], Qt.MouseButton.LeftButton)
        desk.send("go")
        desk.wait_for_reply()
        asked = desk.engine.generations()[-1].draft
        assert (asked.mode, asked.tree_budget) == (mode, budget)


def test_plain_decoding_that_is_faster_is_said_in_words(make_desk: MakeDesk) -> None:
    desk = make_desk(Script(reason="plain_faster"))
    desk.load()
    desk.send("go")
    desk.wait_for_reply()
    assert desk.window.model_bar.sentence() == (
        "Drafting is slower than plain decoding on this device: Auto uses plain decoding."
    )
    facts = desk.items.message(1).facts
    assert facts is not None
    assert "plain is faster here" in facts.line()


def test_a_message_written_while_loading_is_sent_when_the_model_is_ready(make_desk: MakeDesk) -> None:
    desk = make_desk(Script(text="Ready.", load_s=0.05))
    desk.window.load_starter()
    desk.send("first")
    assert desk.items.message(1).state is ReplyState.WAITING
    assert "Waiting for the model" in desk.items.message(1).status_words()
    assert not desk.engine.generations()
    desk.wait_for_reply()
    assert desk.items.message(1).text == "Ready."


def test_a_load_that_is_cancelled_gives_the_waiting_message_back(make_desk: MakeDesk) -> None:
    desk = make_desk(Script(load_s=0.05, load_chunks=100))
    desk.window.load_starter()
    desk.send("keep me")
    QTest.mouseClick(desk.window.model_bar.cancel_button, Qt.MouseButton.LeftButton)
    desk.qtbot.waitUntil(lambda: desk.window.pair_state.phase is Phase.EMPTY)
    assert desk.composer.text() == "keep me"
    assert desk.items.rowCount() == 0


def test_enter_without_a_model_offers_to_start_and_send(make_desk: MakeDesk) -> None:
    desk = make_desk(Script(text="Hi."))
    desk.send("hello")
    assert desk.composer.text() == "hello"
    QTest.mouseClick(desk.page.notice._button, Qt.MouseButton.LeftButton)
    desk.wait_for_reply()
    assert [m.text for m in desk.items.messages()] == ["hello", "Hi."]
    assert desk.composer.edit.hasFocus()  # not the paperclip, which a space would press


def test_the_buttons_of_the_start_card_hand_the_keyboard_to_the_composer(make_desk: MakeDesk) -> None:
    desk = make_desk()
    QTest.mouseClick(desk.page.start.start_button, Qt.MouseButton.LeftButton)
    desk.qtbot.waitUntil(lambda: desk.window.pair_state.phase is Phase.LOADED)
    assert desk.composer.edit.hasFocus()


def test_a_refused_draft_is_named_and_can_be_left_out(make_desk: MakeDesk) -> None:
    desk = make_desk(Script(refuses_draft="d.gguf was made for another target."))
    desk.window.load_starter()
    desk.qtbot.waitUntil(lambda: "another target" in desk.page.notice.text())
    assert desk.window.pair_state.phase is Phase.EMPTY
    QTest.mouseClick(desk.page.notice._button, Qt.MouseButton.LeftButton)
    desk.qtbot.waitUntil(lambda: desk.window.pair_state.phase is Phase.LOADED)
    assert desk.window.model_bar.sentence() == "Draft refused: d.gguf was made for another target."


def test_files_that_are_refused_leave_the_loaded_pair_alone(make_desk: MakeDesk) -> None:
    desk = make_desk()
    desk.load()
    desk.engine.script = Script(refuses_draft="No.")
    desk.window.pair_state.load(PairFiles(Path("/models/other.gguf"), Path("/models/d.gguf")))
    desk.qtbot.waitUntil(lambda: desk.page.notice.text() == "This pair cannot be loaded.\nNo.")
    assert desk.window.pair_state.phase is Phase.LOADED
    assert "SmolLM2" in desk.window.model_bar.names()


def test_a_refused_target_shows_the_engines_reason(make_desk: MakeDesk) -> None:
    desk = make_desk(Script(load_failure="x.gguf is cut short: 12 of 900 bytes."))
    desk.window.pair_state.load(PairFiles(Path("/models/x.gguf"), None))
    desk.qtbot.waitUntil(lambda: "x.gguf is cut short: 12 of 900 bytes." in desk.page.notice.text())


def test_unsent_text_and_settings_are_there_at_the_next_start(make_desk: MakeDesk, state_file: WindowStateFile) -> None:
    desk = make_desk()
    desk.composer.set_text("half a thought 家庭 😀")
    desk.page.panel.seed.setValue(5)
    desk.window.show_page("engine")
    desk.window.close()
    state = state_file.read()
    assert (state.composer_text, state.reply_settings["seed"]) == ("half a thought 家庭 😀", 5)
    assert state.page == "engine"
    again = make_desk()
    assert again.composer.text() == "half a thought 家庭 😀"
    assert again.chat.settings.seed == 5


def test_dropped_files_open_the_dialog_with_target_and_draft(desk: Desk, tmp_path: Path) -> None:
    names = ("smollm2-dflash-q8_0.gguf", "模型 & 'q' #1 😀.gguf")
    for name in names:
        (tmp_path / name).write_bytes(b"GGUF")
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(tmp_path / name)) for name in names])
    actions, buttons, keys = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    entered = QDragEnterEvent(QPoint(5, 5), actions, mime, buttons, keys)
    desk.window.dragEnterEvent(entered)
    assert entered.isAccepted()
    desk.window.dropEvent(QDropEvent(QPointF(5, 5), actions, mime, buttons, keys))
    dialog = desk.window.open_dialog()
    assert dialog.target.text() == str(tmp_path / names[1])
    assert dialog.draft.text() == str(tmp_path / names[0])
    dialog.panel.context.spin.setValue(2048)
    QTest.mouseClick(dialog.load_button, Qt.MouseButton.LeftButton)
    desk.qtbot.waitUntil(lambda: desk.window.pair_state.phase is Phase.LOADED)
    asked = desk.window.pair_state.asked
    assert asked is not None
    assert asked.target == tmp_path / names[1]
    assert asked.options.context_tokens == 2048


def test_the_dialog_refuses_missing_and_equal_files_in_words(desk: Desk, tmp_path: Path) -> None:
    dialog = desk.window.open_dialog()
    dialog.target.setText(str(tmp_path / "nowhere.gguf"))
    dialog.load_button.click()
    assert "There is no file" in dialog._problem.text()
    (tmp_path / "t.gguf").write_bytes(b"GGUF")
    dialog.target.setText(str(tmp_path / "t.gguf"))
    dialog.draft.setText(str(tmp_path / "t.gguf"))
    dialog.load_button.click()
    assert "same file" in dialog._problem.text()
    assert dialog.isVisible()
    dialog.reject()


def test_a_notice_outlives_what_has_nothing_to_do_with_it(make_desk: MakeDesk) -> None:
    desk = make_desk(Script(failure="Too long.", failure_kind="context_exceeded"))
    desk.load()
    desk.send("go")
    desk.wait_for_reply()
    desk.window.pair_state.set_draft_mode("off")
    assert desk.page.notice.text() == "Too long."


def test_after_a_device_error_the_model_can_be_loaded_again(make_desk: MakeDesk) -> None:
    desk = make_desk(Script(text="one two three four " * 9, failure="The device stopped.", failure_after=2))
    desk.load()
    desk.send("go")
    desk.wait_for_reply()
    QTest.mouseClick(desk.page.notice._button, Qt.MouseButton.LeftButton)
    assert desk.window.pair_state.phase is Phase.LOADING
    desk.qtbot.waitUntil(lambda: desk.window.pair_state.phase is Phase.LOADED)


def test_settings_out_of_bounds_in_the_file_are_brought_back(make_desk: MakeDesk, state_file: WindowStateFile) -> None:
    state_file.write(WindowState(reply_settings={"temperature": 99.0, "top_k": -4, "seed": "x"}))
    desk = make_desk()
    assert (desk.chat.settings.temperature, desk.chat.settings.top_k, desk.chat.settings.seed) == (2.0, 0, -1)
