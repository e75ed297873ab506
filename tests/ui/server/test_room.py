"""Room and keyboard on the serve page: heads are read whole, and the switch keeps the keyboard."""

from __future__ import annotations

from dflash_desktop.ui.server.serving import ServePhase
from dflash_desktop.ui.window import SMALLEST
from ui.server.conftest import ServeRoom


def test_the_table_of_requests_is_readable_in_the_smallest_window(room: ServeRoom) -> None:
    room.window.resize(SMALLEST)
    room.window.show_page("serve")
    room.serve_page.show_tab("requests")
    room.serve_loaded()
    room.ask_chat("Hello").wait()
    room.qtbot.waitUntil(lambda: room.serve_page.requests.table.isVisible())
    requests = room.serve_page.requests
    room.qtbot.wait(50)  # layouts settle in the event loop
    heads = requests.table.horizontalHeader()
    for column in range(requests.table.model().columnCount()):
        if not requests.table.isColumnHidden(column):
            assert heads.sectionSize(column) >= heads.sectionSizeHint(column), column
    shown = [column for column in range(heads.count()) if not heads.isSectionHidden(column)]
    assert sum(heads.sectionSize(column) for column in shown) <= requests.table.viewport().width()


def test_the_switch_keeps_the_keyboard_while_it_works(room: ServeRoom) -> None:
    """A switch that is disabled hands it on to the port, and the next key would change that."""
    room.window.show_page("serve")
    room.load_and_wait()
    room.choose_free_port()
    switch = room.serve_page.socket.switch
    switch.setFocus()
    switch.click()
    switch.click()  # while it starts: nothing
    assert switch.hasFocus()
    room.wait_for(ServePhase.SERVING)
    assert switch.hasFocus()
