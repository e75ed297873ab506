"""Blocks of a message as laid-out documents: Qt reads the Markdown, this gives it our type and colours."""

from __future__ import annotations

import re
from dataclasses import dataclass

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import (
    QFont,
    QFontMetricsF,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrameFormat,
    QTextImageFormat,
    QTextLength,
    QTextListFormat,
    QTextOption,
    QTextTable,
)

from dflash_desktop.ui.chats.blocks import Block, Kind, balanced
from dflash_desktop.ui.chats.code_colors import CodeColors
from dflash_desktop.ui.chats.formulas import (
    PLACEHOLDER,
    Formula,
    FormulaImage,
    FormulaLook,
    Formulas,
    block_formula,
    lift_formulas,
)
from dflash_desktop.ui.kit.palette import FONT_PIXELS
from dflash_desktop.ui.kit.theme import FontRole, Theme

LINE_PERCENT = 142
NO_WIDTH = "\N{WORD JOINER}"
LIST_INDENT = 28
BULLET_STRETCH = 230  # per cent
NUMBER_GAP = "\N{SIX-PER-EM SPACE}"
_FEATURES = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML
_IMAGE = re.compile(r"!\[([^\]]*)\]\(")
_HEADING_PIXELS = {1: 22, 2: 19, 3: 17}
_QUOTE_MARK = re.compile(r"^ {0,3}> ?", re.MULTILINE)


@dataclass(slots=True)
class Press:
    """What documents are made with. `formulas` None: formulas show as they were written."""

    theme: Theme
    formulas: Formulas | None = None
    ratio: float = 1.0  # of the screen


class BlockDocument:
    """One block's QTextDocument. `update` costs the block's own size; for code only what was added."""

    def __init__(self, press: Press, block: Block, *, is_open: bool, is_thought: bool = False) -> None:
        theme = press.theme
        self._press = press
        self._theme = theme
        self._is_thought = is_thought
        self._shown = ""
        self._highlighter: CodeColors | None = None
        self.formula_sources: list[str] = []  # of the pictures in the text, in order
        self.waits_for_formula = False
        self.document = QTextDocument()
        self.document.setUndoRedoEnabled(False)
        self.document.setDocumentMargin(0)
        self.document.setIndentWidth(LIST_INDENT)
        is_code = block.kind in (Kind.CODE, Kind.CALL)
        role: FontRole = "body" if is_thought else "reading"
        self.document.setDefaultFont(theme.zoomed(theme.code_font("body") if is_code else theme.font(role)))
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.document.setDefaultTextOption(option)
        if is_code:
            language = "json" if block.kind is Kind.CALL else block.language
            self._highlighter = CodeColors(self.document, language, theme)
        self.update(block, is_open=is_open)

    def update(self, block: Block, *, is_open: bool) -> None:
        """Bring the document up to the block's text."""
        is_muted = self._is_thought or block.kind is Kind.QUOTE
        match block.kind:
            case Kind.CODE:
                self._update_code(block.text)
            case Kind.CALL:
                self._update_code(_call_text(block.text))
            case Kind.PLAIN:
                self.document.setPlainText(block.text)
                self._style(is_muted=is_muted)
            case Kind.MATH:
                self.document.setPlainText(PLACEHOLDER)
                self._put_formulas([block_formula(block.text)], is_muted=is_muted, is_open=is_open)
            case _:
                markdown, formulas = lift_formulas(block.text)
                self.document.setMarkdown(_prepared(markdown, block.kind, is_open=is_open), _FEATURES)
                self._style(is_muted=is_muted)
                self._put_formulas(formulas, is_muted=is_muted, is_open=False)
        self._shown = block.text

    def _put_formulas(self, formulas: list[Formula], *, is_muted: bool, is_open: bool) -> None:
        self.formula_sources = []
        self.waits_for_formula = False
        cursor = QTextCursor(self.document)
        for formula in formulas:
            cursor = self.document.find(PLACEHOLDER, cursor)
            if cursor.isNull():
                return
            image = None if is_open else self._image_of(formula, cursor, is_muted=is_muted)
            if image is None:
                written = QTextCharFormat()
                written.setForeground(self._theme.color("muted"))
                written.setFontFamilies(self._theme.code_font("body").families())
                cursor.insertText(formula.source, written)
                continue
            name = f"formula:{len(self.formula_sources)}"
            self.document.addResource(QTextDocument.ResourceType.ImageResource.value, QUrl(name), image.image)
            self.formula_sources.append(formula.source)
            plain = cursor.charFormat()
            cursor.insertImage(_image_format(name, image, plain.font()))
            if cursor.block().length() == 2 and not formula.is_display:
                cursor.insertText(NO_WIDTH, plain)  # alone on its line, it stands as high as text would
            if formula.is_display and self.document.blockCount() == 1 and self.document.characterCount() == 2:
                centred = QTextBlockFormat()
                centred.setAlignment(Qt.AlignmentFlag.AlignHCenter)
                cursor.mergeBlockFormat(centred)

    def _image_of(self, formula: Formula, cursor: QTextCursor, *, is_muted: bool) -> FormulaImage | None:
        if self._press.formulas is None:
            return None
        pixels = cursor.charFormat().font().pixelSize()
        if pixels <= 0:
            pixels = self.document.defaultFont().pixelSize()
        color = "accent_text" if cursor.charFormat().isAnchor() else "muted" if is_muted else "text"
        look = FormulaLook(float(pixels), self._theme.color(color).name(), self._press.ratio)
        image = self._press.formulas.image(formula, look)
        self.waits_for_formula |= image is None and not self._press.formulas.is_known(formula, look)
        return image

    def set_width(self, width: float) -> float:
        """Lay out for that width and return the height."""
        self.document.setTextWidth(width)
        return self.document.size().height()

    def natural_width(self) -> float:
        """The width its longest line would like to have."""
        self.document.setTextWidth(-1)
        return self.document.idealWidth()

    def _update_code(self, text: str) -> None:
        cursor = QTextCursor(self.document)
        if text.startswith(self._shown):
            cursor.movePosition(QTextCursor.MoveOperation.End)
            text = text[len(self._shown) :]
        else:
            cursor.select(QTextCursor.SelectionType.Document)
        block_format = QTextBlockFormat()
        block_format.setLineHeight(135, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        cursor.mergeBlockFormat(block_format)
        cursor.insertText(text)

    def _style(self, *, is_muted: bool = False) -> None:
        cursor = QTextCursor(self.document)
        cursor.beginEditBlock()
        block = self.document.begin()
        while block.isValid():
            self._style_block(cursor, block, is_muted=is_muted)
            block = block.next()
        cursor.endEditBlock()
        for frame in self.document.rootFrame().childFrames():
            if isinstance(frame, QTextTable):
                self._style_table(frame)

    def _style_block(self, cursor: QTextCursor, block: QTextBlock, *, is_muted: bool) -> None:
        level = block.blockFormat().headingLevel()
        shape = QTextBlockFormat()
        shape.setLineHeight(
            LINE_PERCENT if not level else 125, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value
        )
        in_list = block.textList() is not None
        in_table = cursor_table(self.document, block)
        shape.setTopMargin(0)
        shape.setBottomMargin(4 if in_list else 0)
        if in_table:
            shape.setLineHeight(120, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        cursor.setPosition(block.position())
        cursor.mergeBlockFormat(shape)
        if in_list:
            self._style_marker(cursor, block)
        if level or is_muted:
            whole = QTextCharFormat()
            if level:
                font = self._theme.font("heading", weight=QFont.Weight.DemiBold)
                pixels = _HEADING_PIXELS.get(level, FONT_PIXELS["heading"])
                font.setPixelSize(self._theme.px(pixels))
                font = self._theme.zoomed(font)
                whole.setFont(font)
                whole.clearProperty(int(QTextFormat.Property.FontSizeAdjustment))
            else:
                whole.setForeground(self._theme.color("muted"))
            cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor)
            cursor.mergeCharFormat(whole)
        for start, length, found in _fragments(block):
            changed = self._fragment_format(found)
            if changed is not None:
                cursor.setPosition(start)
                cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
                cursor.mergeCharFormat(changed)

    def _style_marker(self, cursor: QTextCursor, block: QTextBlock) -> None:
        # Qt leaves one space between marker and text, of the block's own font; that is too little. A stretched font
        # has a wider space and the same bullet; a number gets its space at its end.
        marker = QTextCharFormat()
        marker.setForeground(self._theme.color("muted"))
        items = block.textList()
        shape = items.format()
        style = QTextListFormat.Style
        if shape.style() in (style.ListDisc, style.ListCircle, style.ListSquare):
            marker.setFontStretch(BULLET_STRETCH)
            if shape.indent() > 1 and shape.style() != style.ListCircle:
                shape.setStyle(style.ListCircle)
                items.setFormat(shape)
        elif not shape.numberSuffix().endswith(NUMBER_GAP):
            shape.setNumberSuffix((shape.numberSuffix() or ".") + NUMBER_GAP)
            items.setFormat(shape)
        cursor.setBlockCharFormat(marker)

    def _fragment_format(self, found: QTextCharFormat) -> QTextCharFormat | None:
        changed = QTextCharFormat()
        if found.isAnchor():
            changed.setForeground(self._theme.color("accent_text"))
            changed.setFontUnderline(False)
        elif found.fontFixedPitch():
            font = self._theme.code_font("body")
            changed.setFontFamilies(font.families())
            pixels = round(self._theme.px(FONT_PIXELS["body"] + 0.5) * self._theme.zoom_percent / 100)
            changed.setProperty(int(QTextFormat.Property.FontPixelSize), pixels)
            changed.setBackground(self._theme.color("sunken" if not self._theme.palette.is_dark else "hover"))
        elif found.fontWeight() >= QFont.Weight.Bold.value:
            changed.setFontWeight(QFont.Weight.DemiBold.value)
        else:
            return None
        return changed

    def _style_table(self, table: QTextTable) -> None:
        shape = table.format()
        shape.setBorder(0)
        shape.setBorderCollapse(True)
        shape.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_None)
        shape.setCellPadding(0)
        shape.setCellSpacing(0)
        shape.setTopMargin(2)
        shape.setBottomMargin(2)
        shape.setWidth(QTextLength(QTextLength.Type.PercentageLength, 100))
        table.setFormat(shape)
        for column in range(table.columns() if table.rows() > 1 else 0):
            # Qt aligns the cells of a column but not its head.
            head = table.cellAt(0, column).firstCursorPosition()
            aligned = QTextBlockFormat()
            aligned.setAlignment(table.cellAt(1, column).firstCursorPosition().blockFormat().alignment())
            head.mergeBlockFormat(aligned)
        line = self._theme.color("border")
        solid = QTextFrameFormat.BorderStyle.BorderStyle_Solid
        for row in range(table.rows()):
            for column in range(table.columns()):
                cell = table.cellAt(row, column)
                if cell.column() != column:
                    continue  # a row that is still being written: its last cell spans the rest
                cell_format = cell.format().toTableCellFormat()
                cell_format.setPadding(8)
                cell_format.setLeftPadding(2 if column == 0 else 12)
                cell_format.setBottomBorder(1)
                cell_format.setBottomBorderStyle(solid)
                cell_format.setBottomBorderBrush(self._theme.color("outline") if row == 0 else line)
                cell_format.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignTop)
                cell.setFormat(cell_format)


def cursor_table(document: QTextDocument, block: QTextBlock) -> bool:
    """Whether the block stands in a table cell."""
    frame = document.frameAt(block.position())
    return isinstance(frame, QTextTable)


def _fragments(block: QTextBlock) -> list[tuple[int, int, QTextCharFormat]]:
    found = []
    iterator = block.begin()
    while not iterator.atEnd():
        fragment = iterator.fragment()
        if fragment.isValid():
            found.append((fragment.position(), fragment.length(), fragment.charFormat()))
        iterator += 1
    return found


def _image_format(name: str, image: FormulaImage, font: QFont) -> QTextImageFormat:
    """A picture that stands on the line of text.

    Qt lets a picture with this alignment hang below the line as deep as its own font's letters do, whatever the text
    around it: so it gets a font of the right size for its depth.
    """
    shape = QTextImageFormat()
    shape.setName(name)
    shape.setWidth(image.width)
    shape.setHeight(image.height)
    shape.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignBaseline)
    sized = QFont(font)
    sized.setPixelSize(100)
    sized.setPixelSize(max(1, round(100 * image.depth / max(1.0, QFontMetricsF(sized).descent()))))
    shape.setFont(sized)
    return shape


def _call_text(text: str) -> str:
    """A tool call without its tags."""
    return text.strip().removeprefix("<tool_call>").removesuffix("</tool_call>").strip("\n")


def _prepared(markdown: str, kind: Kind, *, is_open: bool) -> str:
    """Markdown as Qt should read it: line breaks kept, pictures as links (nothing is ever fetched)."""
    text = _IMAGE.sub(r"[\1](", markdown)
    if kind is Kind.QUOTE:
        text = _QUOTE_MARK.sub("", text)
    if kind in (Kind.PROSE, Kind.QUOTE):
        # People and models mean a line break when they write one (poems, addresses).
        text = text.replace("\n", "  \n")
    if is_open and kind is not Kind.TABLE:
        text = balanced(text)
    return text
