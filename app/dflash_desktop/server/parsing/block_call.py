"""Reads `<function=NAME><parameter=KEY>value</parameter></function>`; values become JSON by the tool's schema."""

from __future__ import annotations

import json
from collections.abc import Callable

from dflash_desktop.server.parsing.schemas import ToolSchemas, value_json
from dflash_desktop.server.parsing.source import Source, Wait, WaitBool, WaitStr, partial_suffix
from dflash_desktop.server.parsing.tags import (
    CALL_CLOSE,
    CALL_OPEN,
    FUNCTION_CLOSE,
    FUNCTION_OPEN,
    PARAMETER_CLOSE,
    PARAMETER_OPEN,
    BrokenCall,
    CallWriter,
)

_MAX_NAME = 256


def read_blocks(source: Source, writer: CallWriter, schemas: ToolSchemas) -> Wait:
    """One function block; raise BrokenCall if it cannot be read. White space before it is skipped."""
    yield from source.skip_space()
    source.take(len(FUNCTION_OPEN))
    tool = yield from _tag_name(source, "function")
    writer.start(tool)
    keys: set[str] = set()
    ignored: list[str] = []
    while True:
        yield from source.skip_space()
        if (yield from source.starts(FUNCTION_CLOSE)):
            source.take(len(FUNCTION_CLOSE))
            break
        if (yield from source.starts(CALL_CLOSE)):
            break  # the block's own end was forgotten
        if (yield from source.starts(PARAMETER_OPEN)):
            source.take(len(PARAMETER_OPEN))
            key = yield from _tag_name(source, "parameter")
            if key in keys:
                yield from _value(source, ignored.append)  # the first one stands: nothing is revised
                continue
            writer.write(("{" if not keys else ", ") + json.dumps(key, ensure_ascii=False) + ": ")
            keys.add(key)
            yield from _typed_value(source, writer, schemas.kind(tool, key))
        elif (yield from source.peek()) == "":
            raise BrokenCall("the reply ended inside the call")
        else:
            source.take(1)  # stray text between parameters
    writer.write("}" if keys else "{}")
    writer.end()


def _tag_name(source: Source, what: str) -> WaitStr:
    """The name up to `>`, which is consumed."""
    at = 0
    while (char := (yield from source.peek(at))) != ">":
        if char == "":
            raise BrokenCall("the reply ended inside the call")
        if char in "\n<" or at > _MAX_NAME:
            raise BrokenCall(f"the {what} has no readable name")
        at += 1
    name = source.take(at).strip().strip("\"'")
    source.take(1)
    if not name:
        raise BrokenCall(f"the {what} has no name")
    return name


def _typed_value(source: Source, writer: CallWriter, kind: str) -> Wait:
    if kind == "string":
        writer.write('"')
        yield from _value(source, lambda text: writer.write(json.dumps(text, ensure_ascii=False)[1:-1]))
        writer.write('"')
        return
    parts: list[str] = []
    yield from _value(source, parts.append)
    writer.write(value_json("".join(parts), kind))


def _value(source: Source, on_text: Callable[[str], None]) -> Wait:
    """The text of a value up to its end, without the line breaks beside the tags.

    A closing tag counts only where the block goes on after it: a value may hold such tags itself.
    """
    if (yield from source.peek()) == "\n":
        source.take(1)
    n_checked = 0  # so much of the text was found to hold no end
    while True:
        at, tag = _first_close(source.text, n_checked)
        if at < 0:
            held = partial_suffix(source.text, (PARAMETER_CLOSE, FUNCTION_CLOSE))
            sure = len(source.text) - held
            if sure and source.text[sure - 1] == "\n":
                sure -= 1
            if sure:
                on_text(source.take(sure))
            n_checked = 0
            if not (yield from source.more()):
                raise BrokenCall("the reply ended inside a parameter")
        elif (yield from _ends_here(source, at, tag)):
            value = source.take(at)
            if tag == PARAMETER_CLOSE:
                source.take(len(tag))
            value = value.removesuffix("\n")
            if value:
                on_text(value)
            return
        else:
            n_checked = at + len(tag)


def _first_close(text: str, start: int) -> tuple[int, str]:
    found = [(text.find(tag, start), tag) for tag in (PARAMETER_CLOSE, FUNCTION_CLOSE)]
    return min(((at, tag) for at, tag in found if at >= 0), default=(-1, ""))


def _ends_here(source: Source, at: int, tag: str) -> WaitBool:
    after = yield from source.space_end(at + len(tag))
    if tag == PARAMETER_CLOSE:
        for follower in (PARAMETER_OPEN, FUNCTION_CLOSE, CALL_CLOSE):
            if (yield from source.starts(follower, after)):
                return True
        return (yield from source.peek(after)) == ""
    if (yield from source.starts(CALL_CLOSE, after)) or (yield from source.starts(CALL_OPEN, after)):
        return True
    return (yield from source.peek(after)) == ""
