"""Growing Markdown, cut at its top-level borders: finished blocks never change, only the last one is read again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

MAX_PROSE_CHARS = 3000
"""A paragraph or list that grows past this goes on in a new block at a good border; bounds the work per token."""

_FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})\s*([^`]*)$")
_HEADING = re.compile(r"^ {0,3}#{1,6}(\s|$)")
_RULE = re.compile(r"^ {0,3}([-*_])(\s*\1){2,}\s*$")
_BULLET = re.compile(r"^( {0,3})[-*+]\s+\S")
_NUMBER = re.compile(r"^( {0,3})(\d{1,9})[.)]\s+\S")
_QUOTE = re.compile(r"^ {0,3}>")
_TABLE_RULE = re.compile(r"^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
_UNCLEAR = re.compile(
    r"^\s*([#>*+|-]{1,6}|\d{1,9}[.)]?|`{1,2}|~{1,2}|(`{3,}|~{3,})[^`]*)\s*$"
)  # half a line that may become anything
_MATH_OPEN = re.compile(r"^ {0,3}(\$\$|\\\[)")
_MATH_CLOSE = {"$$": "$$", "\\[": "\\]"}
_CALL_OPEN, _CALL_CLOSE = "<tool_call>", "</tool_call>"
_WHOLE_OPEN = ("$$", "\\[", _CALL_OPEN)
_SENTENCE_END = re.compile(r"[.!?。！？]['\")\]]?\s|\n")


class Kind(Enum):
    PROSE = "prose"
    HEADING = "heading"
    LIST = "list"
    QUOTE = "quote"
    TABLE = "table"
    CODE = "code"
    RULE = "rule"
    MATH = "math"  # a formula on lines of its own
    CALL = "call"  # a tool call, as the model wrote it
    PLAIN = "plain"  # no Markdown at all: what the person wrote


@dataclass(slots=True)
class Block:
    """One piece of a message. `text` grows only while the block is the last one."""

    kind: Kind
    text: str = ""
    language: str = ""  # CODE only
    is_continuation: bool = False  # goes on from the block before: no gap above


class MarkdownBlocks:
    """Feed text as it comes; `blocks` is always the whole message so far."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._open: Block | None = None  # always the last of `blocks`
        self._line = ""  # the unfinished last line, as far as it may still change its meaning
        self._fence = ""
        self._close = ""  # what ends the formula or tool call that is open
        self._fence_indent = 0
        self._is_inside_line = False  # code: a part of the line is in the block already
        self._has_code_line = False
        self._after_blank = False
        self._goes_on = False  # prose: the line was cut, its rest belongs to it
        self._before_line: _Moment | None = None

    def feed(self, text: str) -> int:
        """Add text and return the index of the first block that may have changed."""
        self._take_back_line()
        first = len(self.blocks) - (1 if self._open else 0)
        *whole, self._line = (self._line + text).split("\n")
        for line in whole:
            self._add_line(line)
        self._show_unfinished_line()
        return first

    def finish(self) -> int:
        """The text is complete: what was held back as unclear is text."""
        self._take_back_line()
        first = len(self.blocks) - (1 if self._open else 0)
        if self._line:
            line, self._line = self._line, ""
            self._add_line(line)
        return first

    def _show_unfinished_line(self) -> None:
        if self._close:
            return  # half a line of a formula says nothing
        if self._fence:
            if not (self._line.strip(" ") == "" or _is_all(self._line.strip(), self._fence[0])) or self._is_inside_line:
                self._add_code(self._line)
                self._is_inside_line = True
                self._line = ""
        elif self._line and not _UNCLEAR.match(self._line) and not self._line.lstrip().startswith(_WHOLE_OPEN):
            self._line = self._cut_long_line(self._line)
            block = self._open
            self._before_line = _Moment(
                len(self.blocks),
                block,
                block.text if block else "",
                block.kind if block else Kind.PROSE,
                self._after_blank,
                self._goes_on,
            )
            self._add_text(self._line)

    def _take_back_line(self) -> None:
        # The last line is shown before it is complete; what it is may change: '-' can become a list or a rule.
        moment, self._before_line = self._before_line, None
        if moment is None:
            return
        del self.blocks[moment.n_blocks :]
        self._open, self._after_blank, self._goes_on = moment.open, moment.after_blank, moment.goes_on
        if moment.open is not None:
            moment.open.text, moment.open.kind = moment.text, moment.kind

    def _add_line(self, line: str) -> None:
        line = line.removesuffix("\r")
        if self._fence:
            if (
                not self._is_inside_line
                and len(line.strip()) >= len(self._fence)
                and _is_all(line.strip(), self._fence[0])
            ):
                self._fence = ""
                self._open = None
            else:
                self._add_code(line)
            self._is_inside_line = False
            return
        if self._close or self._opens_whole(line):
            self._add_whole(line)
            return
        fence = _FENCE.match(line)
        if fence:
            self._fence, self._fence_indent = fence[2], len(fence[1])
            self._start(Kind.CODE, language=_language(fence[3]))
            self._has_code_line = False
        elif line.strip():
            self._add_text(self._cut_long_line(line))
            self._goes_on = False
        else:
            self._after_blank = True
            if self._open and self._open.kind is not Kind.LIST:
                self._open = None

    def _opens_whole(self, line: str) -> bool:
        """Whether a block begins that shows as one thing: a formula or a tool call."""
        is_in_list = self._open is not None and self._open.kind is Kind.LIST and not self._after_blank
        if line.lstrip().startswith(_CALL_OPEN):
            self._close = _CALL_CLOSE
            self._start(Kind.CALL)
            return True
        math = None if is_in_list else _MATH_OPEN.match(line)
        if math is None:
            return False
        close = _MATH_CLOSE[math[1]]
        if not line[math.end() :].rstrip().endswith(close) and close in line[math.end() :]:
            return False  # "$$x$$ and more text": a formula inside a paragraph
        self._close = close
        self._start(Kind.MATH)
        return True

    def _add_whole(self, line: str) -> None:
        block = self._open
        if block is None:
            self._close = ""
            return
        if block.kind is Kind.MATH and not line.strip():
            block.kind = Kind.PROSE  # no formula has an empty line: it was a price, or never ended
            self._close, self._open, self._after_blank = "", None, True
            return
        opens = not block.text
        block.text += line if opens else f"\n{line}"
        # The mark that opens a formula is not the one that closes it, although $$ looks the same.
        inside = line.lstrip()[len(self._close) :] if opens and block.kind is Kind.MATH else line
        if inside.rstrip().endswith(self._close):
            self._close, self._open = "", None

    def _add_code(self, text: str) -> None:
        if self._open is None:
            return
        if self._is_inside_line:
            self._open.text += text
            return
        text = _without_indent(text, self._fence_indent)
        self._open.text = f"{self._open.text}\n{text}" if self._has_code_line else text
        self._has_code_line = True

    def _cut_long_line(self, line: str) -> str:
        while len(line) > MAX_PROSE_CHARS * 2:
            cut = _good_cut(line, MAX_PROSE_CHARS)
            self._add_text(line[:cut])
            self._goes_on = True
            line = line[cut:]
        return line

    def _add_text(self, line: str) -> None:
        block = self._open
        if self._goes_on:
            self._start(Kind.PROSE, line, is_continuation=True)
        elif _HEADING.match(line):
            self._start(Kind.HEADING, line)
            self._open = None
        elif _RULE.match(line):
            self._start(Kind.RULE)
            self._open = None
        elif _is_list_item(line) and not (block and block.kind is Kind.PROSE and not _may_interrupt(line)):
            is_full = block is not None and len(block.text) > MAX_PROSE_CHARS and not line.startswith("  ")
            if block is None or block.kind is not Kind.LIST or is_full:
                self._start(Kind.LIST, line, is_continuation=is_full)
            else:
                self._append(line)
        elif block and block.kind is Kind.LIST and (not self._after_blank or line.startswith(("  ", "\t"))):
            self._append(line)
        elif _QUOTE.match(line) and not (block and block.kind is Kind.QUOTE):
            self._start(Kind.QUOTE, line)
        elif block and (block.kind is Kind.QUOTE or (block.kind is Kind.TABLE and "|" in line)):
            self._append(line)
        elif block and block.kind is Kind.PROSE:
            self._add_to_prose(block, line)
        else:
            self._start(Kind.PROSE, line)
        self._after_blank = False

    def _add_to_prose(self, block: Block, line: str) -> None:
        *before, header = block.text.split("\n")
        if _is_table_rule(line, header):
            if before:
                block.text = "\n".join(before)
                self._start(Kind.TABLE, header)
            else:
                block.kind = Kind.TABLE
            self._append(line)
        elif len(block.text) > MAX_PROSE_CHARS:
            self._start(Kind.PROSE, line, is_continuation=True)
        else:
            self._append(line)

    def _start(self, kind: Kind, text: str = "", *, language: str = "", is_continuation: bool = False) -> None:
        self._open = Block(kind, text, language, is_continuation)
        self.blocks.append(self._open)
        self._after_blank = False

    def _append(self, line: str) -> None:
        if self._open is not None:
            self._open.text += ("\n\n" if self._after_blank else "\n") + line


@dataclass(frozen=True, slots=True)
class _Moment:
    """The state before the unfinished line, to come back to when the line has grown."""

    n_blocks: int
    open: Block | None
    text: str
    kind: Kind
    after_blank: bool
    goes_on: bool


def plain_blocks(text: str) -> list[Block]:
    """What the person wrote, as it is, in pieces small enough to lay out one by one."""
    blocks: list[Block] = []
    piece: list[str] = []
    length = 0
    for whole_line in text.split("\n"):
        line = whole_line
        while len(line) > MAX_PROSE_CHARS:
            cut = _good_cut(line, MAX_PROSE_CHARS)
            blocks.append(Block(Kind.PLAIN, "\n".join([*piece, line[:cut]]), is_continuation=bool(blocks)))
            piece, length, line = [], 0, line[cut:]
        piece.append(line)
        length += len(line) + 1
        if length > MAX_PROSE_CHARS:
            blocks.append(Block(Kind.PLAIN, "\n".join(piece), is_continuation=bool(blocks)))
            piece, length = [], 0
    if piece or not blocks:
        blocks.append(Block(Kind.PLAIN, "\n".join(piece), is_continuation=bool(blocks)))
    return blocks


def balanced(text: str) -> str:
    """Unfinished Markdown, closed for display: half a **bold or `code` shows as what it is going to be."""
    last = text[text.rfind("\n\n") + 1 :]
    if last.count("`") % 2:
        return text + "`"
    if last.count("**") % 2:
        return text.rstrip("* ") + "**" if not last.rstrip(" ").endswith("**") else text.rstrip("* ")
    return text


def _is_all(text: str, char: str) -> bool:
    return not text.strip(char)


def _is_table_rule(line: str, header: str) -> bool:
    is_rule = "|" in header and "-" in line and bool(_TABLE_RULE.match(line))
    return is_rule and header.strip("| ").count("|") == line.strip("| ").count("|")


def _is_list_item(line: str) -> bool:
    return bool(_BULLET.match(line) or _NUMBER.match(line))


def _may_interrupt(line: str) -> bool:
    """Whether a list item may follow a paragraph without a blank line: '1984. It was...' may not."""
    number = _NUMBER.match(line)
    return number is None or int(number[2]) == 1


def _good_cut(text: str, at_least: int) -> int:
    """Where to cut: after a sentence, else after a space, else anywhere past `at_least`."""
    end = min(len(text), at_least + at_least // 2)
    found = _SENTENCE_END.search(text, at_least, end)
    if found:
        return found.end()
    space = text.find(" ", at_least, end)
    return space + 1 if space >= 0 else at_least


def _without_indent(line: str, indent: int) -> str:
    n_spaces = len(line) - len(line.lstrip(" "))
    return line[min(indent, n_spaces) :]


def _language(info: str) -> str:
    word = info.strip().split(maxsplit=1)
    return word[0].strip("{}.").lower() if word else ""
