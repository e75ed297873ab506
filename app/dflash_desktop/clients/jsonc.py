"""JSON with comments, changed in place: what is not ours keeps its bytes, comments and order included."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
_MAX_DEPTH = 200

Path = Sequence[str]


class BadJson(Exception):
    """The text cannot be read; nothing may be written."""


@dataclass(slots=True)
class Node:
    """A value and where it stands. `members` of an object, `items` of a list, in order."""

    start: int
    end: int
    kind: str  # object, list, scalar
    members: list[tuple[str, int, Node]] = field(default_factory=list)  # key, start of the key, value
    items: list[Node] = field(default_factory=list)

    def member(self, key: str) -> Node | None:
        """The value of a key; the last one wins, as in every reader."""
        return next((value for name, _, value in reversed(self.members) if name == key), None)


def parse(text: str) -> Node:
    """The root value; raise BadJson."""
    node, at = _value(text, _skip(text, 0), 0)
    if _skip(text, at) != len(text):
        raise BadJson(f"unexpected text at character {at}")
    return node


def value_of(text: str, node: Node) -> Any:
    """A node as plain data."""
    if node.kind == "object":
        return {key: value_of(text, value) for key, _, value in node.members}
    if node.kind == "list":
        return [value_of(text, item) for item in node.items]
    return json.loads(text[node.start : node.end])


def find(root: Node, path: Path) -> Node | None:
    node: Node | None = root
    for key in path:
        node = node.member(key) if node is not None and node.kind == "object" else None
    return node


def set_value(text: str, path: Path, value: object) -> str:
    """`text` with `value` at `path`; objects on the way are made. Raise BadJson where a non-object is in the way."""
    text = text if text.strip() else "{}\n"
    node = parse(text)
    if node.kind != "object":
        raise BadJson("the file is no object")
    for depth, key in enumerate(path):
        found = node.member(key)
        if found is None:
            for later in reversed(path[depth + 1 :]):
                value = {later: value}
            return _insert(text, node, json.dumps(key, ensure_ascii=False), value)
        if depth == len(path) - 1:
            return text[: found.start] + _dump(text, found.start, value) + text[found.end :]
        if found.kind != "object":
            raise BadJson(f"{key} is no object")
        node = found
    return text


def remove(text: str, path: Path) -> str:
    """`text` without the member at `path`."""
    parent = find(parse(text), path[:-1])
    if parent is None or parent.kind != "object":
        return text
    at = next((i for i, (key, _, _) in enumerate(parent.members) if key == path[-1]), None)
    if at is None:
        return text
    spans = [(start, value.end) for _, start, value in parent.members]
    return _cut(text, parent, spans, at)


def append_item(text: str, path: Path, value: object) -> str:
    """`text` with `value` as the last item of the list at `path`, which is made if need be."""
    text = text if text.strip() else "{}\n"
    node = find(parse(text), path) if path else parse(text)
    if node is None:
        return set_value(text, path, [value])
    if node.kind != "list":
        raise BadJson(f"{'.'.join(path) or 'the file'} is no list")
    return _insert(text, node, None, value)


def remove_item(text: str, path: Path, index: int) -> str:
    node = find(parse(text), path) if path else parse(text)
    if node is None or node.kind != "list" or not 0 <= index < len(node.items):
        return text
    return _cut(text, node, [(item.start, item.end) for item in node.items], index)


def set_item(text: str, path: Path, index: int, value: object) -> str:
    node = find(parse(text), path) if path else parse(text)
    if node is None or node.kind != "list":
        raise BadJson(f"{'.'.join(path)} is no list")
    item = node.items[index]
    return text[: item.start] + _dump(text, item.start, value) + text[item.end :]


def _insert(text: str, parent: Node, key: str | None, value: object) -> str:
    """A new last member or item, indented like its neighbours."""
    children = [start for _, start, _ in parent.members] or [item.start for item in parent.items]
    end_of_last = max([value.end for _, _, value in parent.members] + [item.end for item in parent.items], default=0)
    outer = _indent_at(text, parent.start)
    newline = "\r\n" if "\r\n" in text else "\n"
    if children:
        is_inline = "\n" not in text[parent.start : children[-1]]
        indent = None if is_inline else _indent_at(text, children[-1])
    else:
        is_inline = False
        indent = outer + _unit(text)
    gap = " " if is_inline or indent is None else newline + indent
    written = _dump_with(value, indent if indent is not None else outer, newline, _unit(text))
    new = f"{key}: {written}" if key is not None else written
    if not children:
        inside = text[parent.start + 1 : parent.end - 1]
        kept = inside.rstrip() if inside.strip() else ""
        body = f"{kept}{gap}{new}{newline}{outer}"
        return text[: parent.start + 1] + body + text[parent.end - 1 :]
    after = _skip(text, end_of_last)
    has_comma = text[after : after + 1] == ","
    at = after + 1 if has_comma else end_of_last
    if not has_comma:
        return f"{text[:at]},{gap}{new}{text[at:]}"
    # A comment may stand behind the last comma on its line; it stays there.
    line_end = re.compile(r"[ \t]*(?://[^\n]*|/\*[^\n]*?\*/)?").match(text, at)
    at = line_end.end() if line_end is not None else at
    return f"{text[:at]}{gap}{new}{text[at:]}"


def _cut(text: str, parent: Node, spans: list[tuple[int, int]], index: int) -> str:
    start, end = spans[index]
    after = _skip(text, end)
    if text[after : after + 1] == ",":
        end = after + 1
    elif index > 0:  # the last one: the comma before it goes too
        comma = text.index(",", _end_of_value(spans, index - 1))
        return text[:comma] + text[comma + 1 : start].rstrip() + text[end:]
    line_start = len(text[:start].rstrip(" \t"))
    is_whole_line = text[line_start - 1 : line_start] == "\n"
    rest = text[end:]
    if is_whole_line:
        trimmed = rest.lstrip(" \t")
        if trimmed.startswith(("\n", "\r\n")):
            return text[:line_start] + trimmed[trimmed.index("\n") + 1 :]
    elif len(spans) == 1:
        return text[: parent.start + 1] + rest.lstrip()
    return text[:start] + rest.lstrip(" \t")


def _end_of_value(spans: list[tuple[int, int]], index: int) -> int:
    return spans[index][1]


def _dump(text: str, at: int, value: object) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    return _dump_with(value, _indent_at(text, at), newline, _unit(text))


def _dump_with(value: object, indent: str, newline: str, unit: str) -> str:
    written = json.dumps(value, ensure_ascii=False, indent=unit)
    return written.replace("\n", newline + indent)


def _indent_at(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    match = re.search(r"\n([ \t]+)\S", text)
    return match.group(1) if match is not None else "  "


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match is not None else at


def _value(text: str, at: int, depth: int) -> tuple[Node, int]:
    if depth > _MAX_DEPTH:
        raise BadJson("nested too deep")
    char = text[at : at + 1]
    if char in ("{", "["):
        return _container(text, at, depth, "object" if char == "{" else "list")
    match = (_STRING if char == '"' else _SCALAR).match(text, at)
    if match is None:
        raise BadJson(f"no value at character {at}")
    try:
        json.loads(match.group())
    except ValueError as error:
        raise BadJson(f"no value at character {at}: {error}") from error
    return Node(at, match.end(), "scalar"), match.end()


def _container(text: str, start: int, depth: int, kind: str) -> tuple[Node, int]:
    node = Node(start, start, kind)
    closer = "}" if kind == "object" else "]"
    at = _skip(text, start + 1)
    while text[at : at + 1] != closer:
        if kind == "object":
            match = _STRING.match(text, at)
            if match is None:
                raise BadJson(f"no key at character {at}")
            key_start = at
            key = str(json.loads(match.group()))
            at = _skip(text, match.end())
            if text[at : at + 1] != ":":
                raise BadJson(f"no colon at character {at}")
            value, at = _value(text, _skip(text, at + 1), depth + 1)
            node.members.append((key, key_start, value))
        else:
            value, at = _value(text, at, depth + 1)
            node.items.append(value)
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != closer:
            raise BadJson(f"no comma at character {at}")
    node.end = at + 1
    return node, at + 1
