"""Tables of whole rows, as every page has them."""

from __future__ import annotations

from PySide6.QtCore import QAbstractItemModel
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView

from dflash_desktop.ui.kit.theme import Theme


def row_table(theme: Theme, model: QAbstractItemModel, name: str, *, row_pixels: int) -> QTableView:
    """One row is chosen at a time, nothing is edited in place, Tab leaves; columns are as wide as what they hold."""
    table = QTableView()
    table.setModel(model)
    table.setAccessibleName(name)
    table.setShowGrid(False)
    table.setFont(theme.font("body"))
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
    table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    table.setTabKeyNavigation(False)
    table.setWordWrap(False)
    table.verticalHeader().hide()
    table.verticalHeader().setDefaultSectionSize(theme.px(row_pixels))
    heads = table.horizontalHeader()
    heads.setFont(theme.font("caption"))
    heads.setHighlightSections(False)
    heads.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    return table
