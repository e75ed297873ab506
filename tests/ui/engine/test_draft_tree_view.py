"""The tree as it is placed and drawn."""

from __future__ import annotations

import math

import pytest
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from dflash_desktop.engine.events import DraftTree
from dflash_desktop.ui.engine.draft_tree_view import DraftTreeView, node_share, place_nodes, shown_token
from dflash_desktop.ui.kit.theme import Theme

#       0
#     1   4
#   2       5 (accepted: 0 4 5)
#   3
TREE = DraftTree((9, 1, 2, 3, 4, 5), (-1, 0, 1, 2, 0, 4), (0.0, -0.5, -0.7, -0.9, -1.0, -1.2), (0, 4, 5))


def test_the_accepted_path_is_a_straight_line_on_top() -> None:
    placed = {node.row: node for node in place_nodes(TREE)}
    assert [placed[row].lane for row in TREE.accepted_rows] == [0, 0, 0]
    assert [placed[row].depth for row in TREE.accepted_rows] == [0, 1, 2]
    assert [placed[row].lane for row in (1, 2, 3)] == [1, 1, 1]


def test_a_chain_of_sixty_three_nodes_and_a_bush_of_as_many_are_placed() -> None:
    chain = DraftTree(tuple(range(64)), tuple(range(-1, 63)), tuple(-0.1 * i for i in range(64)), (0,))
    assert max(node.depth for node in place_nodes(chain)) == 63
    bush = DraftTree(tuple(range(64)), (-1, *[0] * 63), tuple(-0.1 * i for i in range(64)), (0, 7))
    assert sorted(node.lane for node in place_nodes(bush) if node.depth == 1) == list(range(63))


def test_the_share_of_a_node_is_that_after_its_parent() -> None:
    assert node_share(TREE, 0) == 1.0
    assert node_share(TREE, 2) == pytest.approx(math.exp(-0.2))


@pytest.mark.parametrize(
    ("text", "shown"), [(" the", "the"), ("  ", "␣"), ("\n", "↵"), ("\t x", "⇥ x"), ("", ""), ("家", "家")]
)
def test_blanks_are_made_visible_where_there_is_nothing_else(text: str, shown: str) -> None:
    assert shown_token(text) == shown


@pytest.mark.parametrize("size", [(400, 200), (1600, 400), (60, 40)])
def test_it_paints_at_any_size(theme: Theme, qtbot: QtBot, size: tuple[int, int]) -> None:
    view = DraftTreeView(theme, lambda token: f"t{token}")
    qtbot.addWidget(view)
    view.setMinimumHeight(0)
    view.resize(*size)
    empty = view.grab().toImage()
    view.show_tree(TREE)
    drawn = view.grab().toImage()
    assert drawn != empty
    assert has_color(drawn, theme.palette.flash)
    assert "5 nodes drafted, 2 accepted" in view.accessibleDescription()
    view.show_tree(None)
    assert view.grab().toImage() == empty


def has_color(image: QImage, name: str) -> bool:
    return any(image.pixelColor(x, y).name() == name for x in range(image.width()) for y in range(image.height()))
