"""LaTeX in answers: found, told from money and code, set as pictures that stand on the line, copied as written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from dflash_desktop.ui.chats.blocks import Block, Kind, MarkdownBlocks
from dflash_desktop.ui.chats.chat_item_model import ChatItemModel
from dflash_desktop.ui.chats.documents import BlockDocument, Press
from dflash_desktop.ui.chats.formulas import Formula, FormulaLook, Formulas, block_formula, draw, lift_formulas
from dflash_desktop.ui.chats.message_view import MessageView
from dflash_desktop.ui.chats.messages import Message
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.theme import Theme

LOOK = FormulaLook(15.0, "#102030", 2.0)


@pytest.fixture
def formulas(app: QApplication) -> Iterator[Formulas]:
    made = Formulas()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("markdown", "found"),
    [
        ("a $x$ b", ["x"]),
        ("**$x_1$**, then $\\frac{a}{b}$.", ["x_1", "\\frac{a}{b}"]),
        ("\\(a\\) and \\[b\\] and $$c$$ here", ["a", "b", "c"]),
        ("It costs $5 and $10.", []),
        ("$5-$10, 5$ or 6$, US$7", []),
        ("`$x$` and ``a `$y$` b``", []),
        ("\\$x\\$ stays", []),
        ("$ x $", []),
        ("a $x$5", []),
    ],
)
def test_which_dollars_are_formulas(markdown: str, found: list[str]) -> None:
    lifted, formulas = lift_formulas(markdown)
    assert [formula.latex for formula in formulas] == found
    assert len(lifted.split("\ue0ff")) == len(found) + 1


@pytest.mark.parametrize("step", [1, 4, 1000])
@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a\n\n$$\nx^2\n$$\n\nb", [Kind.PROSE, Kind.MATH, Kind.PROSE]),
        ("$$x$$\nb", [Kind.MATH, Kind.PROSE]),
        ("\\[\nx\n\\]", [Kind.MATH]),
        ("$$ 5 and\nmore\n\n# Head", [Kind.PROSE, Kind.HEADING]),
        ("$$x$$ in a line", [Kind.PROSE]),
        ("- a\n  $$x$$\n- b", [Kind.LIST]),
        ('<tool_call>\n{"name": "f"}\n</tool_call>\nok', [Kind.CALL, Kind.PROSE]),
    ],
)
def test_blocks_however_they_arrive(text: str, kinds: list[Kind], step: int) -> None:
    reader = MarkdownBlocks()
    for at in range(0, len(text), step):
        reader.feed(text[at : at + step])
    reader.finish()
    assert [block.kind for block in reader.blocks] == kinds


def test_a_formula_becomes_a_sharp_picture(app: QApplication) -> None:
    image = draw(r"\frac{a}{b}", False, LOOK)
    assert image.depth > 2
    assert image.image.width() >= 2 * image.width - 1
    colors = {
        image.image.pixelColor(x, y).name() for x in range(image.image.width()) for y in range(image.image.height())
    }
    assert "#102030" in colors


@pytest.mark.parametrize("latex", ["\\frac{a", "}", "\\begin{pmatrix} a", "x" * 3000, "\\left("])
def test_what_cannot_be_set_shows_as_it_was_written(formulas: Formulas, theme: Theme, qtbot: QtBot, latex: str) -> None:
    formula = Formula(latex, f"${latex}$", is_display=False)
    if formulas.image(formula, LOOK) is None and not formulas.is_known(formula, LOOK):
        with qtbot.waitSignal(formulas.ready):
            pass
    assert formulas.is_known(formula, LOOK)
    if formulas.image(formula, LOOK) is None:
        document = BlockDocument(Press(theme, formulas), Block(Kind.PROSE, "a $\\frac{a$ b"), is_open=False)
        assert document.document.toPlainText() == "a $\\frac{a$ b"


def test_a_picture_stands_on_the_line_of_text(formulas: Formulas, theme: Theme, qtbot: QtBot) -> None:
    press = Press(theme, formulas)
    block = Block(Kind.PROSE, "Let $x^2 + \\frac{a}{b}$ be so.")
    document = BlockDocument(press, block, is_open=False)
    assert document.waits_for_formula
    with qtbot.waitSignal(formulas.ready):
        pass
    document = BlockDocument(press, block, is_open=False)
    assert not document.waits_for_formula
    assert document.formula_sources == ["$x^2 + \\frac{a}{b}$"]
    document.set_width(600)
    line = document.document.begin().layout().lineAt(0)
    image = formulas.image(Formula("x^2 + \\frac{a}{b}", "", is_display=False), _look_of(theme))
    assert image is not None
    # What hangs below the base line is the formula's own depth, to a pixel.
    assert abs(line.descent() - max(image.depth, _text_descent(theme))) <= 1.5


def _look_of(theme: Theme) -> FormulaLook:
    return FormulaLook(float(theme.font("reading").pixelSize()), theme.color("text").name(), 1.0)


def _text_descent(theme: Theme) -> float:
    return QFontMetricsF(theme.font("reading")).descent()


def test_formulas_are_copied_as_they_were_written(theme: Theme, icons: Icons, qtbot: QtBot) -> None:
    formulas = Formulas()
    view = MessageView(theme, icons, formulas)
    qtbot.addWidget(view)
    model = ChatItemModel()
    view.setModel(model)
    view.resize(700, 500)
    view.show()
    with qtbot.waitSignal(formulas.ready):
        model.append(Message("assistant", "Let $x$ and $y$.\n\n$$\nz^2\n$$"))
    view.grab()
    box = view._stack.boxes[0]
    assert box.text_between((0, 0), box.end_position()) == "Let $x$ and $y$.\n\n$$\nz^2\n$$"
    assert box.text_between((0, 6), (0, 11)) == "and $y$"
    assert box.text_between((0, 0), (0, 6)) == "Let $x$ "
    formulas.close()


def test_the_marks_of_a_block_are_not_part_of_the_formula() -> None:
    assert block_formula("$$\nx\n$$").latex == "x"
    assert block_formula("\\[ y \\]").latex == "y"
