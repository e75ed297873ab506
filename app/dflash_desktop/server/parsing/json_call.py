"""Reads `{"name": ..., "arguments": {...}}`; the arguments pass on as written, as far as they are valid JSON."""

from __future__ import annotations

import json
from collections.abc import Generator

from dflash_desktop.server.parsing.json_scan import JsonScanner
from dflash_desktop.server.parsing.schemas import ToolSchemas
from dflash_desktop.server.parsing.source import Source, Wait, WaitStr
from dflash_desktop.server.parsing.tags import BrokenCall, CallWriter

_ARGUMENT_KEYS = frozenset({"arguments", "parameters"})


def read_json_calls(source: Source, writer: CallWriter) -> Wait:
    """One call, or several separated by commas and white space; raise BrokenCall if one cannot be read."""
    while True:
        yield from source.skip_space()
        yield from _read_call(source, writer)
        at = yield from source.space_end()
        while (yield from source.peek(at)) in {"}", ","}:  # one brace too many is a common slip
            at = yield from source.space_end(at + 1)
        if (yield from source.peek(at)) != "{":
            if (yield from source.peek(at)) == "<" or (at > 0 and source.text[:at].strip()):
                source.take(at)
            return
        source.take(at)


def _read_call(source: Source, writer: CallWriter) -> Wait:
    source.take(1)  # the brace
    name = ""
    held = ""  # arguments that came before the name
    is_written = False
    while True:
        yield from source.skip_space()
        char = yield from source.peek()
        if char == "}":
            source.take(1)
            break
        if char == ",":
            source.take(1)
            continue
        if char != '"':
            raise BrokenCall(_unexpected(char))
        key = json.loads((yield from _value(source)))
        yield from source.skip_space()
        char = yield from source.peek()
        if char != ":":
            raise BrokenCall(_unexpected(char))
        source.take(1)
        yield from source.skip_space()
        if key in _ARGUMENT_KEYS and not held and not is_written:
            if name and (yield from source.peek()) == "{":
                writer.start(name)
                yield from _stream(source, writer)
                is_written = True
            else:
                held = yield from _value(source)
        elif key == "name" and not name:
            value = json.loads((yield from _value(source)))
            if not isinstance(value, str) or not value.strip():
                raise BrokenCall("the call's name is no text")
            name = value.strip()
        else:
            yield from _value(source)
    if not name:
        raise BrokenCall("the call has no name")
    if not is_written:
        arguments = _object_text(held)
        writer.start(name)
        writer.write(arguments)
    writer.end()


def _stream(source: Source, writer: CallWriter) -> Wait:
    scanner = JsonScanner()
    while True:
        n_used, out = scanner.push(source.text)
        source.take(n_used)
        writer.write(out)
        if scanner.is_done:
            return
        if scanner.broken:
            raise BrokenCall(scanner.broken)
        if not (yield from source.more()):
            raise BrokenCall("the reply ended inside the arguments")


def _value(source: Source) -> WaitStr:
    """One whole JSON value, made valid."""
    scanner = JsonScanner()
    parts: list[str] = []
    while True:
        n_used, out = scanner.push(source.text)
        source.take(n_used)
        parts.append(out)
        if scanner.is_done:
            return "".join(parts)
        if scanner.broken:
            raise BrokenCall(scanner.broken)
        if not (yield from source.more()):
            raise BrokenCall("the reply ended inside the call")


def _object_text(held: str) -> str:
    """The arguments as the text of an object; models also write null, nothing, or the object in a string."""
    value = json.loads(held) if held else None
    if value is None:
        return "{}"
    if isinstance(value, str):
        text = value.strip() or "{}"
        scanner = JsonScanner()
        n_used, out = scanner.push(text)
        if text.startswith("{") and scanner.is_done and n_used == len(text):
            return out
        raise BrokenCall("the arguments are no object")
    if not isinstance(value, dict):
        raise BrokenCall("the arguments are no object")
    return held


def _unexpected(char: str) -> str:
    return f"unexpected {char!r} in the call" if char else "the reply ended inside the call"


def bare_json_prefix(source: Source, schemas: ToolSchemas) -> Generator[None, None, int | None]:
    """Where a reply that is nothing but a JSON call has its brace; None if the reply is something else.

    Waits only while the text can still be `{"name": "KNOWN", "arguments":`, maybe in a code block or a list.
    """
    at = yield from source.space_end()
    if (yield from source.starts("```", at)):
        at += 3
        if (yield from source.starts("json", at)):
            at += 4
        at = yield from source.space_end(at)
    if (yield from source.peek(at)) == "[":
        at = yield from source.space_end(at + 1)
    start = at
    for literal in ("{", '"name"', ":", '"'):
        if not (yield from source.starts(literal, at)):
            return None
        at += len(literal)
        if literal != '"':
            at = yield from source.space_end(at)
    name_at = at
    while (char := (yield from source.peek(at))) != '"':
        if char in {"", "\\", "\n"} or at - name_at > 128:
            return None
        at += 1
    if source.text[name_at:at] not in schemas:
        return None
    at = yield from source.space_end(at + 1)
    if not (yield from source.starts(",", at)):
        return None
    at = yield from source.space_end(at + 1)
    for key in ('"arguments"', '"parameters"'):
        if (yield from source.starts(key, at)):
            return start
    return None
