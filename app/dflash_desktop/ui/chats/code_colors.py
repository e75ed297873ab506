"""Colours for code: comments, strings, numbers, keywords. One pattern per family of languages."""

from __future__ import annotations

import re
from dataclasses import dataclass

from PySide6.QtGui import QSyntaxHighlighter, QTextCharFormat, QTextDocument

from dflash_desktop.ui.kit.theme import Theme

_MAX_LINE = 2000  # longer lines (minified code) stay in one colour

_WORDS = {
    "python": (
        "and as assert async await break case class continue def del elif else except False finally for from "
        "global if import in is lambda match None nonlocal not or pass raise return self True try while with "
        "yield"
    ),
    "c": (
        "abstract as async auto await bool boolean break byte case catch char class const constexpr continue "
        "default delete do double else enum export extends extern false final finally float fn for foreach "
        "from func function go goto if impl implements import in inline instanceof int interface let long "
        "loop match mod mut namespace new nil null nullptr of override package private protected pub public "
        "readonly return self short signed sizeof static string struct super switch template this throw "
        "throws trait true try type typedef typeof undefined union unsigned use using var virtual void "
        "volatile where while yield"
    ),
    "sql": (
        "add all alter and as asc avg between by case commit count create default delete desc distinct drop "
        "else end exists foreign from full group having in index inner insert into is join key left like "
        "limit max min not null offset on or order outer primary references right rollback select set sum "
        "table then union unique update values view when where with"
    ),
    "shell": (
        "alias break case cd continue do done echo elif else esac eval exec exit export fi for function if in "
        "local read return set shift source sudo then trap until while"
    ),
}
_FAMILIES = {
    "python": "python", "py": "python", "python3": "python", "ruby": "python", "rb": "python",
    "sql": "sql", "mysql": "sql", "postgresql": "sql", "sqlite": "sql",
    "bash": "shell", "sh": "shell", "shell": "shell", "zsh": "shell", "console": "shell", "powershell": "shell",
    "yaml": "shell", "yml": "shell", "toml": "shell", "ini": "shell", "dockerfile": "shell", "make": "shell",
    "text": "none", "txt": "none", "plaintext": "none", "markdown": "none", "md": "none", "output": "none",
}  # fmt: skip
_LINE_COMMENT = {"python": r"#.*", "shell": r"(?:^|(?<=\s))#.*", "sql": r"--.*", "c": r"//.*|^\s*#\s*\w+"}
_STRING = r""""(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|`(?:[^`\\]|\\.)*`"""
_NUMBER = r"\b(?:0[xX][0-9a-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\w*\b"
_NAME = r"\b[A-Za-z_]\w*(?=\()"


@dataclass(frozen=True, slots=True)
class _Grammar:
    pattern: re.Pattern[str]
    long_close: dict[str, str]


def _grammar(language: str) -> _Grammar | None:
    family = _FAMILIES.get(language, "c" if language else "none")
    if family == "none":
        return None
    words = "|".join(sorted(_WORDS[family].split(), key=len, reverse=True))
    flags = re.IGNORECASE if family == "sql" else 0
    closes = {"python": {'"""': '"""', "'''": "'''"}, "c": {"/*": "*/"}, "sql": {"/*": "*/"}}.get(family, {})
    opens = "|".join(re.escape(mark) for mark in closes)
    pattern = (
        f"(?P<long>{opens or '(?!)'})|(?P<comment>{_LINE_COMMENT[family]})|(?P<string>{_STRING})|(?P<number>{_NUMBER})"
        rf"|(?P<keyword>\b(?:{words})\b)|(?P<name>{_NAME})"
    )
    return _Grammar(re.compile(pattern, flags), closes)


class CodeColors(QSyntaxHighlighter):
    """Colours a document line by line; appended lines cost their own length only."""

    def __init__(self, document: QTextDocument, language: str, theme: Theme) -> None:
        super().__init__(document)
        self._grammar = _grammar(language)
        self._formats = {
            kind: _format(theme, f"code_{kind}") for kind in ("comment", "string", "number", "keyword", "name")
        }

    def highlightBlock(self, text: str) -> None:
        grammar = self._grammar
        if grammar is None or len(text) > _MAX_LINE:
            return
        marks = list(grammar.long_close)
        position = 0
        self.setCurrentBlockState(0)
        before = self.previousBlockState()
        if before > 0:  # inside something that a line above opened: its mark's number, from 1
            position = self._color_long(text, 0, 0, marks[before - 1])
        while position < len(text):
            found = grammar.pattern.search(text, position)
            if found is None:
                return
            kind = found.lastgroup or ""
            if kind == "long":
                position = self._color_long(text, found.start(), found.end(), found[0])
                continue
            self.setFormat(found.start(), found.end() - found.start(), self._formats[kind])
            position = max(found.end(), position + 1)

    def _color_long(self, text: str, start: int, search_from: int, mark: str) -> int:
        """Colour up to the closing mark, or the whole line; return where to go on."""
        grammar = self._grammar
        if grammar is None:
            return len(text)
        close = grammar.long_close[mark]
        end = text.find(close, search_from)
        if end < 0:
            end = len(text)
            self.setCurrentBlockState(list(grammar.long_close).index(mark) + 1)
        else:
            end += len(close)
        self.setFormat(start, end - start, self._formats["comment" if mark == "/*" else "string"])
        return end


def _format(theme: Theme, color: str) -> QTextCharFormat:
    made = QTextCharFormat()
    made.setForeground(theme.color(color))
    return made
