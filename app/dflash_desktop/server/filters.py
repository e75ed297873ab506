"""What stands between the parsers and the client: stop strings outside thoughts, and JSON-only answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dflash_desktop.server.parsing.json_scan import JsonScanner
from dflash_desktop.server.parsing.source import partial_suffix
from dflash_desktop.server.pieces import Fragment, TextPiece
from dflash_desktop.server.schema_check import misfit


class StopFilter:
    """Ends the answer before the first stop string. For replies with thoughts: the engine would look there too."""

    def __init__(self, stop: tuple[str, ...]) -> None:
        self._stop = tuple(each for each in stop if each)
        self._held = ""
        self.found: str | None = None

    def push(self, fragments: list[Fragment]) -> list[Fragment]:
        if not self._stop:
            return fragments
        out: list[Fragment] = []
        for fragment in fragments:
            if self.found is not None:
                break
            if isinstance(fragment, TextPiece):
                text = self._pass(self._held + fragment.text)
                if text:
                    out.append(TextPiece(text))
            else:
                out += self._flushed()
                out.append(fragment)
        return out

    def finish(self) -> list[Fragment]:
        return [] if self.found is not None else self._flushed()

    def _flushed(self) -> list[Fragment]:
        held, self._held = self._held, ""
        return [TextPiece(held)] if held else []

    def _pass(self, text: str) -> str:
        hits = [(at, each) for each in self._stop if (at := text.find(each)) >= 0]
        if hits:
            at, self.found = min(hits, key=lambda hit: (hit[0], -len(hit[1])))
            self._held = ""
            return text[:at]
        size = partial_suffix(text, self._stop)
        self._held = text[len(text) - size :]
        return text[: len(text) - size]


class JsonAnswer:
    """Passes the first JSON object or list of an answer, without what is around it, and knows when it is over.

    This is not constrained decoding: the model is asked for JSON, its first brace may be written for it, and what
    it writes is checked as it comes. Text that turns out not to be JSON passes as it is: nothing is hidden.
    """

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        self._schema = schema
        self._scanner = JsonScanner()
        self._before = ""
        self._has_begun = False
        self._text = ""
        self.verdict = "the answer holds no JSON"  # empty: valid

    @property
    def is_done(self) -> bool:
        return self._scanner.is_done

    def push(self, fragments: list[Fragment]) -> list[Fragment]:
        out: list[Fragment] = []
        for fragment in fragments:
            if isinstance(fragment, TextPiece):
                text = self._pass(fragment.text)
                if text:
                    out.append(TextPiece(text))
            else:
                out.append(fragment)
        return out

    def finish(self) -> list[Fragment]:
        if not self._has_begun:
            return [TextPiece(self._before)] if self._before.strip() else []
        if not self._scanner.is_done and not self._scanner.broken:
            self.verdict = "the JSON is not complete"
        return []

    def _pass(self, text: str) -> str:
        if not self._has_begun:
            self._before += text
            at = min((i for i in map(self._before.find, "{[") if i >= 0), default=-1)
            if at < 0:
                return ""
            self._has_begun = True
            text, self._before = self._before[at:], ""
        if self._scanner.is_done:
            return ""
        if self._scanner.broken:
            return text
        return self._scan(text)

    def _scan(self, text: str) -> str:
        n_used, out = self._scanner.push(text)
        self._text += out
        if self._scanner.broken:
            self.verdict = f"not valid JSON: {self._scanner.broken}"
            return out + text[n_used:]
        if self._scanner.is_done:
            self._judge()
        return out

    def _judge(self) -> None:
        self.verdict = misfit(self._schema, self._text) if self._schema is not None else ""
