"""An incremental JSON checker: passes on only what is certainly the start of one valid value."""

from __future__ import annotations

import re

_STRING_RUN = re.compile(r'[^"\\\x00-\x1f]+')
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}
_MAX_DEPTH = 100
_ESCAPES = frozenset('"\\/bfnrtu')
_HEX = frozenset("0123456789abcdefABCDEF")


class JsonScanner:
    """Feed with `push` until `is_done` or `broken` is set.

    Raw control characters in strings become escapes and Python's True, False, None become JSON's: models
    write both, and neither needs a revision of what was passed on before.
    """

    def __init__(self) -> None:
        self.is_done = False
        self.broken = ""
        self._stack: list[str] = []  # "{" or "["
        self._wants = "value"  # value, first_value, key, first_key, colon, comma
        self._string = ""  # "", "plain", "escape", "hex"
        self._n_hex = 0
        self._is_key = False
        self._scalar = ""

    def push(self, text: str) -> tuple[int, str]:
        """Check the next part; return how many characters belong to the value, and what to pass on."""
        out: list[str] = []
        at = 0
        while at < len(text) and not self.is_done and not self.broken:
            if self._string:
                at = self._in_string(text, at, out)
            elif self._scalar:
                if text[at].isalnum() or text[at] in "+-.":
                    self._scalar += text[at]
                    at += 1
                    if len(self._scalar) > 400:
                        self.broken = "a number or word that does not end"
                else:
                    self._end_scalar(out)  # the character itself is looked at again
            else:
                self._between(text[at], out)
                at += 1
        return at, "".join(out)

    def finish(self) -> str:
        """The end of the text: a number at top level is complete only now."""
        out: list[str] = []
        if self._scalar and not self.broken and not self.is_done:
            self._end_scalar(out)
        if not self.is_done and not self.broken:
            self.broken = "the JSON value is not complete"
        return "".join(out)

    def _in_string(self, text: str, at: int, out: list[str]) -> int:
        if self._string == "plain":
            run = _STRING_RUN.match(text, at)
            if run is not None:
                out.append(run.group())
                return run.end()
            char = text[at]
            if char == '"':
                out.append(char)
                self._string = ""
                self._after_string()
            elif char == "\\":
                self._string = "escape"  # held until the next character says that it is one
            else:
                out.append(_escaped(char))
        elif self._string == "escape":
            char = text[at]
            if char not in _ESCAPES:
                self.broken = f"unknown escape \\{char}"
                return at
            out.append("\\" + char)
            self._string = "hex" if char == "u" else "plain"
            self._n_hex = 0
        else:
            char = text[at]
            if char not in _HEX:
                self.broken = "a broken \\u escape"
                return at
            out.append(char)
            self._n_hex += 1
            if self._n_hex == 4:
                self._string = "plain"
        return at + 1

    def _between(self, char: str, out: list[str]) -> None:
        if char in " \t\r\n":
            if self._stack:
                out.append(char)
            return
        wants = self._wants
        if char == '"' and wants in {"value", "first_value", "key", "first_key"}:
            self._is_key = wants in {"key", "first_key"}
            self._string = "plain"
            out.append(char)
        elif char in "{[" and wants in {"value", "first_value"}:
            if len(self._stack) >= _MAX_DEPTH:
                self.broken = "nested too deep"
                return
            self._stack.append(char)
            self._wants = "first_key" if char == "{" else "first_value"
            out.append(char)
        elif char == ":" and wants == "colon":
            self._wants = "value"
            out.append(char)
        elif char == "," and wants == "comma":
            self._wants = "key" if self._stack[-1] == "{" else "value"
            out.append(char)
        elif self._closes(char):
            self._stack.pop()
            out.append(char)
            self._after_value()
        elif wants in {"value", "first_value"} and (char.isalnum() or char == "-"):
            self._scalar = char
        else:
            self.broken = f"unexpected {char!r}"

    def _closes(self, char: str) -> bool:
        if not self._stack or self._wants not in {"comma", "first_key", "first_value"}:
            return False
        return char == ("}" if self._stack[-1] == "{" else "]")

    def _end_scalar(self, out: list[str]) -> None:
        scalar, self._scalar = self._scalar, ""
        if scalar in _WORDS:
            out.append(_WORDS[scalar])
        elif _NUMBER.fullmatch(scalar):
            out.append(scalar)
        else:
            self.broken = f"{scalar[:40]!r} is no JSON value"
            return
        self._after_value()

    def _after_string(self) -> None:
        if self._is_key:
            self._is_key = False
            self._wants = "colon"
        else:
            self._after_value()

    def _after_value(self) -> None:
        if self._stack:
            self._wants = "comma"
        else:
            self.is_done = True


def _escaped(char: str) -> str:
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char) or f"\\u{ord(char):04x}"
