"""Room: in the smallest window every way to begin shows, and a view that has nothing to show says what to do."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QTableView, QWidget

from dflash_desktop.ui.engine.pair_state import Phase
from dflash_desktop.ui.window import SMALLEST
from support.hub_server import Hub
from ui.hub.conftest import MAKER, ModelsRig
from ui.hub.test_first_minute import CARD


def is_whole(widget: QWidget, viewport: QWidget) -> bool:
    return viewport.rect().contains(QRect(widget.mapTo(viewport, QPoint(0, 0)), widget.size()))


def test_the_first_screen_shows_every_button_without_scrolling(rig: ModelsRig) -> None:
    rig.window.resize(SMALLEST)
    for devices in ([CARD], list(rig.desk.window.desks.devices[0]) if rig.desk.window.desks.devices else []):
        rig.window.on_devices_listed(devices, "")
        rig.qtbot.wait(50)  # layouts settle in the event loop
        start = rig.start
        for button in (start.get_button, start.start_button, start.open_button, start.found_button):
            assert is_whole(button, start.viewport()), button.text()
        assert start.verticalScrollBar().maximum() == 0


def test_a_small_part_of_the_first_screen_does_not_scroll_for_a_large_one(rig: ModelsRig) -> None:
    rig.window.resize(SMALLEST)
    rig.desk.load()
    assert rig.window.pair_state.phase is Phase.LOADED
    rig.qtbot.wait(50)
    assert rig.start.verticalScrollBar().maximum() == 0


def test_the_search_shows_tables_when_there_is_something_in_them(rig: ModelsRig, hub: Hub) -> None:
    rig.window.show_page("models")
    rig.page.show_tab("search")
    search = rig.page.search
    assert not search.result_table.isVisible()
    assert not search.file_table.isVisible()
    search.edit.setText("mini")
    search.on_search_clicked()
    rig.wait(lambda: search.results.rowCount())
    assert search.result_table.isVisible()
    assert search._fit.text() == "Choose a repository: its models are listed here."
    names = [search.results.item(row, 0).text() for row in range(search.results.rowCount())]
    search.result_table.selectRow(names.index(MAKER))
    assert search._fit.text() == "Asking the hub"
    rig.wait(lambda: search.files.rowCount())
    assert search._fit.text() == ""
    search.edit.setText("no such model anywhere")
    search.on_search_clicked()
    assert not search.result_table.isVisible()


def test_heads_of_tables_stand_above_what_they_head(rig: ModelsRig) -> None:
    rig.window.show_page("models")
    rig.page.show_tab("here")
    rig.models.scan()
    rig.qtbot.wait(50)
    table = rig.page.here.table
    orientation, role = Qt.Orientation.Horizontal, Qt.ItemDataRole.TextAlignmentRole
    for column in range(table.model().columnCount()):
        of_head = table.model().headerData(column, orientation, role) or table.horizontalHeader().defaultAlignment()
        of_cell = table.model().data(table.model().index(0, column), role) if table.model().rowCount() else of_head
        assert bool(of_head & Qt.AlignmentFlag.AlignRight) == bool(
            (of_cell or Qt.AlignmentFlag.AlignLeft) & Qt.AlignmentFlag.AlignRight
        )
    search = rig.page.search
    rig.page.show_tab("search")
    search.on_search_clicked()
    rig.wait(lambda: search.results.rowCount())
    rig.qtbot.wait(50)
    assert first_ink(search.result_table, head=True) > 0
    search.results.setHorizontalHeaderLabels(["H", ""])
    search.results.item(0, 0).setText("H")
    rig.qtbot.wait(50)
    assert abs(first_ink(search.result_table, head=True) - first_ink(search.result_table, head=False)) <= 1


def first_ink(table: QTableView, *, head: bool) -> int:
    """How far from the left the first thing is painted, in the head or in the first row."""
    table.clearSelection()
    image = (table.horizontalHeader().viewport() if head else table.viewport()).grab().toImage()
    top, bottom = 4, (image.height() if head else table.rowHeight(0)) - 4
    paper = image.pixelColor(2, top)
    columns = range(image.width())
    return next(x for x in columns if any(image.pixelColor(x, y) != paper for y in range(top, bottom)))


def test_what_arrives_is_loaded_and_leaves_the_person_where_they_are(rig: ModelsRig) -> None:
    QTest.mouseClick(rig.start.get_button, Qt.MouseButton.LeftButton)
    rig.wait(lambda: rig.page._dialog is not None and rig.page._dialog.get_button.isEnabled())
    dialog = rig.page._dialog
    assert dialog is not None
    QTest.mouseClick(dialog.get_button, Qt.MouseButton.LeftButton)
    rig.window.show_page("settings")
    rig.wait(lambda: rig.window.pair_state.phase is Phase.LOADED)
    assert rig.window.page("settings").isVisible()
