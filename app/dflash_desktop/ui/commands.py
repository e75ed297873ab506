"""Every command of the window in one list: for its shortcuts, and for the palette (Ctrl+K)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QKeySequence

from dflash_desktop.ui.chats.messages import Message
from dflash_desktop.ui.kit.command_palette import Command
from dflash_desktop.ui.pages import pages_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dflash_desktop.ui.window import MainWindow

translate = QCoreApplication.translate
ZOOMS = (70, 80, 90, 100, 110, 125, 150, 175, 200)


def shortcuts(window: MainWindow) -> dict[str, Callable[[], object]]:
    """Every key of the window, and what it does."""
    return {
        "Esc": window.chat.stop,
        "Ctrl+O": window.on_open_wanted,
        **page_shortcuts(window),
        "Ctrl+M": lambda: window.show_page("models"),
        "Ctrl+,": lambda: window.show_page("settings"),
        "Ctrl+Q": window.quit,
        **chat_shortcuts(window),
    }


def page_shortcuts(window: MainWindow) -> dict[str, Callable[[], object]]:
    """Ctrl and a number: the pages as the rail has them, from the top."""
    keys = [page.key for page in pages_of(window) if not page.is_low]
    return {f"Ctrl+{number}": partial(window.show_page, key) for number, key in enumerate(keys, 1)}


def chat_shortcuts(window: MainWindow) -> dict[str, Callable[[], object]]:
    """Keys that concern chats, and what they do."""
    page = window.chat_page

    def on_chat_page(do: Callable[[], object]) -> Callable[[], object]:
        def run() -> None:
            window.show_page("chat")
            do()

        return run

    return {
        "Ctrl+K": window.open_palette,
        "Ctrl+N": on_chat_page(page.on_new_clicked),
        "Ctrl+L": on_chat_page(page.composer.edit.setFocus),
        "Ctrl+F": on_chat_page(page.find_chats),
        "Ctrl+B": on_chat_page(page.sides.on_list_clicked),
        "Ctrl+Shift+S": on_chat_page(page.settings_button.toggle),
        "Ctrl+Shift+A": on_chat_page(page.attaching.choose),
        "Ctrl+Shift+M": on_chat_page(page.focus_conversation),
        "Ctrl+Shift+P": on_chat_page(page.shortening.on_preview_wanted),
        "Ctrl+R": on_chat_page(page.chat.regenerate),
        "Ctrl+PgDown": on_chat_page(lambda: page.step_chat(1)),
        "Ctrl+PgUp": on_chat_page(lambda: page.step_chat(-1)),
        "Ctrl++": lambda: zoom(window, 1),
        "Ctrl+=": lambda: zoom(window, 1),
        "Ctrl+-": lambda: zoom(window, -1),
        "Ctrl+0": lambda: zoom(window, 0),
    }


def zoom(window: MainWindow, step: int) -> None:
    """The next larger or smaller text in conversations; 0: as it was."""
    now = window.theme.zoom_percent
    if step == 0:
        wanted = 100
    elif step > 0:
        wanted = next((one for one in ZOOMS if one > now), ZOOMS[-1])
    else:
        wanted = next((one for one in reversed(ZOOMS) if one < now), ZOOMS[0])
    window.theme.set_zoom(wanted)
    window.save_state()


def window_commands(window: MainWindow) -> list[Command]:
    """Everything that makes sense now, the most used first."""
    page, chat = window.chat_page, window.chat
    keys = chat_shortcuts(window)
    chats = translate("commands", "Chat")
    found = [
        Command(translate("commands", "New chat"), _shown(window, page.on_new_clicked), _keys("Ctrl+N"), chats),
        Command(translate("commands", "Search all chats"), keys["Ctrl+F"], _keys("Ctrl+F"), chats),
    ]
    if chat.is_busy:
        found.append(Command(translate("commands", "Stop the answer"), chat.stop, _keys("Esc"), chats))
    last = chat.items.message(chat.items.rowCount() - 1) if chat.items.rowCount() else None
    if last is not None and chat.can_send():
        found += _message_commands(window, last, chats)
    found += [
        Command(translate("commands", "Attach files"), keys["Ctrl+Shift+A"], _keys("Ctrl+Shift+A"), chats),
        Command(
            translate("commands", "Show what PFlash would keep of this message"),
            keys["Ctrl+Shift+P"],
            _keys("Ctrl+Shift+P"),
            chats,
        ),
        Command(translate("commands", "Chat settings"), keys["Ctrl+Shift+S"], _keys("Ctrl+Shift+S"), chats),
        Command(translate("commands", "Show or hide the list of chats"), keys["Ctrl+B"], _keys("Ctrl+B"), chats),
        Command(translate("commands", "Go through the messages"), keys["Ctrl+Shift+M"], _keys("Ctrl+Shift+M"), chats),
        Command(
            translate("commands", "Show what the draft got right"),
            _shown(window, lambda: page.view.show_accepted(is_on=not page.view.shows_accepted)),
            group=chats,
        ),
        Command(translate("commands", "Export all chats…"), lambda: page.exporting.ask(None), group=chats),
        Command(translate("commands", "Import chats…"), page.exporting.ask_import, group=chats),
    ]
    if len(chat.talk):
        export = translate("commands", "Export this chat…")
        found.append(Command(export, lambda: page.exporting.ask(chat.talk.chat_id), group=chats))
    found += _window_commands(window, keys)
    goto = translate("commands", "Go to")
    found += [
        Command(one.title, _opener(window, one.chat_id), group=goto)
        for one in page.keeper.chats()
        if one.title and one.chat_id != chat.talk.chat_id
    ]
    return found


def _message_commands(window: MainWindow, last: Message, chats: str) -> list[Command]:
    chat = window.chat
    found = []
    if last.role == "assistant":
        found.append(Command(translate("commands", "Answer again"), chat.regenerate, _keys("Ctrl+R"), chats))
    if last.can_continue:
        words = translate("commands", "Continue the answer")
        found.append(Command(words, lambda: chat.continue_reply(last), group=chats))
    return found


def _window_commands(window: MainWindow, keys: dict[str, Callable[[], object]]) -> list[Command]:
    pages = translate("commands", "Page")
    text = translate("commands", "Text size")
    found = [Command(name, lambda key=key: window.show_page(key), group=pages) for key, name in window.page_names()]  # type: ignore[misc]
    model = translate("commands", "Model")
    found.append(Command(translate("commands", "Open a model file…"), window.on_open_wanted, _keys("Ctrl+O"), model))
    if window.pair_state.pair is not None:
        found.append(Command(translate("commands", "Unload the model"), window.pair_state.unload, group=model))
    return [
        *found,
        Command(translate("commands", "Larger"), keys["Ctrl++"], _keys("Ctrl++"), text),
        Command(translate("commands", "Smaller"), keys["Ctrl+-"], _keys("Ctrl+-"), text),
        Command(translate("commands", "As it was"), keys["Ctrl+0"], _keys("Ctrl+0"), text),
        Command(translate("commands", "Quit"), window.quit, _keys("Ctrl+Q")),
    ]


def _shown(window: MainWindow, do: Callable[[], object]) -> Callable[[], object]:
    return lambda: (window.show_page("chat"), do())


def _opener(window: MainWindow, chat_id: int) -> Callable[[], object]:
    return _shown(window, lambda: window.chat_page.desk.on_chat_chosen(chat_id))


def _keys(written: str) -> str:
    """A shortcut as this system writes it."""
    return QKeySequence(written).toString(QKeySequence.SequenceFormat.NativeText)
