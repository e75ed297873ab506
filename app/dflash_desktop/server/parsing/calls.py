"""Tool calls inside the model's answer: text in, fragments out, the same for every way of cutting the text.

Known forms: `<tool_call>` around JSON (Qwen3, Hermes) or around function blocks (Qwen3-coder, 3.5, 3.6), a
function block without its wrapper at the start of a line, and a whole answer that is bare JSON.
A tag inside code or in prose is text. A call that breaks is reported and never leaks as text.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Literal

from dflash_desktop.server.parsing.block_call import read_blocks
from dflash_desktop.server.parsing.json_call import bare_json_prefix, read_json_calls
from dflash_desktop.server.parsing.schemas import ToolSchemas
from dflash_desktop.server.parsing.source import Source, Wait, WaitBool
from dflash_desktop.server.parsing.tags import (
    CALL_CLOSE,
    CALL_OPEN,
    FUNCTION_CLOSE,
    FUNCTION_OPEN,
    PARAMETER_OPEN,
    BrokenCall,
    CallWriter,
)
from dflash_desktop.server.pieces import CallBroken, Fragment, TextPiece

_MAX_NAME = 128
_SURE_OPENING = len("<tool_")  # so much of an opening tag at the end of a reply is no prose that was cut


class CallParser:
    """Turns answer text into TextPiece, CallStarted, CallArguments, CallEnded and CallBroken."""

    def __init__(
        self,
        schemas: ToolSchemas,
        on_fragment: Callable[[Fragment], None],
        new_id: Callable[[], str],
        *,
        reads_bare_json: bool = True,
    ) -> None:
        self._schemas = schemas
        self._emit = on_fragment
        self._writer = CallWriter(on_fragment, new_id)
        self._source = Source()
        self._reads_bare_json = reads_bare_json
        self._is_line_start = True
        self._fence = ""  # the back-ticks that opened a code block
        self._inline = ""  # the back-ticks that opened code within this line
        self._pending_space = ""
        self._has_text = False  # since the last call
        self._run = self._parse()
        self._is_over = False

    def feed(self, text: str) -> None:
        if self._is_over:
            return
        self._source.push(text)
        self._advance()

    def finish(self) -> None:
        self._source.is_final = True
        self._advance()
        if self._pending_space and (self._has_text or not self._writer.n_calls):
            self._emit(TextPiece(self._pending_space))
        self._pending_space = ""

    def _advance(self) -> None:
        if not self._is_over:
            try:
                next(self._run)
            except StopIteration:
                self._is_over = True

    def _parse(self) -> Wait:
        source = self._source
        if self._reads_bare_json and self._schemas:
            at = yield from bare_json_prefix(source, self._schemas)
            if at is not None:
                source.take(at)
                yield from self._guarded(read_json_calls(source, self._writer), "")
                yield from self._skip_fence_end()
        while (yield from source.peek()):
            yield from self._text_or_call()

    def _text_or_call(self) -> Wait:
        source = self._source
        text = source.text
        at = next((i for i, char in enumerate(text) if char in "<`\n"), len(text))
        if at:
            self._text(source.take(at))
            return
        char = text[0]
        if char == "\n":
            self._text(source.take(1))
            self._is_line_start = True
            self._inline = ""
        elif char == "`":
            yield from self._back_ticks()
        elif self._fence or self._inline or not self._schemas:
            self._text(source.take(1))
        elif (yield from self._is_stray_end()):
            source.take(len(CALL_CLOSE))
        elif (yield from source.starts(CALL_OPEN)):
            kind = yield from self._kind_after(len(CALL_OPEN))
            if kind == "text":
                self._text(source.take(len(CALL_OPEN)))
            else:
                source.take(len(CALL_OPEN))
                yield from self._wrapped(CALL_OPEN)
        elif self._is_line_start and (yield from self._is_bare_block()):
            yield from self._guarded(read_blocks(source, self._writer, self._schemas), "")
            yield from self._skip_tag(CALL_CLOSE)
        elif source.is_final and len(source.text) >= _SURE_OPENING and CALL_OPEN.startswith(source.text):
            self._emit(CallBroken("the reply ended inside the call", source.take(len(source.text))))
        else:
            self._text(source.take(1))

    def _is_stray_end(self) -> WaitBool:
        """A closing tag behind a call, or as much of it as the reply had room for."""
        if not self._writer.n_calls or self._has_text:
            return False
        source = self._source
        return (yield from source.starts(CALL_CLOSE)) or (source.is_final and CALL_CLOSE.startswith(source.text))

    def _wrapped(self, opener: str) -> Wait:
        """After `<tool_call>`: one or more calls up to the closing tag."""
        source = self._source
        while True:
            kind = yield from self._kind_after(0)
            if kind == "json":
                yield from self._guarded(read_json_calls(source, self._writer), opener)
            elif kind == "block":
                yield from self._guarded(read_blocks(source, self._writer, self._schemas), opener)
            else:
                if opener:
                    source.start_record()
                    yield from self._skip_past(CALL_CLOSE)
                    self._emit(CallBroken("nothing readable in the call", opener + source.end_record()))
                return
            if (yield from self._skip_tag(CALL_CLOSE)):
                return
            at = yield from source.space_end()
            if not (yield from source.starts(FUNCTION_OPEN, at)) and (yield from source.peek(at)) != "{":
                return
            opener = ""

    def _kind_after(self, at: int) -> Generator[None, None, Literal["json", "block", "end", "text"]]:
        source = self._source
        at = yield from source.space_end(at)
        char = yield from source.peek(at)
        if char == "":
            return "end"
        if char == "{":
            return "json"
        return "block" if (yield from source.starts(FUNCTION_OPEN, at)) else "text"

    def _is_bare_block(self) -> WaitBool:
        """`<function=KNOWN>` followed by a parameter or the end of the block; a mention in prose is neither."""
        source = self._source
        if not (yield from source.starts(FUNCTION_OPEN)):
            return False
        at = len(FUNCTION_OPEN)
        while (char := (yield from source.peek(at))) != ">":
            if char in {"", "\n", "<"} or at > len(FUNCTION_OPEN) + _MAX_NAME:
                return False
            at += 1
        if source.text[len(FUNCTION_OPEN) : at].strip() not in self._schemas:
            return False
        at = yield from source.space_end(at + 1)
        return (yield from source.starts(PARAMETER_OPEN, at)) or (yield from source.starts(FUNCTION_CLOSE, at))

    def _guarded(self, call: Wait, opener: str) -> Wait:
        """Run one call's reader; if the call breaks, report it and go on after its end."""
        source = self._source
        self._pending_space = ""
        self._has_text = False
        source.start_record()
        try:
            yield from call
        except BrokenCall as broken:
            yield from self._skip_to_end()
            self._emit(CallBroken(str(broken), opener + source.end_record()))
        else:
            source.end_record()

    def _skip_to_end(self) -> Wait:
        """Drop the rest of a broken call: up to its closing tag, or everything."""
        source = self._source
        while CALL_CLOSE not in source.text:
            if not (yield from source.more()):
                source.take(len(source.text))
                return
        source.take(source.text.index(CALL_CLOSE))

    def _skip_past(self, tag: str) -> Wait:
        yield from self._skip_to_end()
        if self._source.text.startswith(tag):
            self._source.take(len(tag))

    def _skip_tag(self, tag: str) -> WaitBool:
        source = self._source
        at = yield from source.space_end()
        if (yield from source.starts(tag, at)):
            source.take(at + len(tag))
            return True
        return False

    def _skip_fence_end(self) -> Wait:
        source = self._source
        for closer in ("]", "```"):
            at = yield from source.space_end()
            if (yield from source.starts(closer, at)):
                source.take(at + len(closer))

    def _back_ticks(self) -> Wait:
        source = self._source
        size = 1
        while (yield from source.peek(size)) == "`":
            size += 1
        run = source.take(size)
        if self._is_line_start and size >= 3:
            if not self._fence:
                self._fence = run
            elif size >= len(self._fence):
                self._fence = ""
        elif not self._fence:
            self._inline = "" if self._inline == run else self._inline or run
        self._text(run)

    def _text(self, text: str) -> None:
        if not text.isspace():
            self._is_line_start = False
        text = self._pending_space + text
        sure = text.rstrip()
        self._pending_space = text[len(sure) :]
        if sure:
            self._has_text = True
            self._emit(TextPiece(sure))
