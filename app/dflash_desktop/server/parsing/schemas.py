"""Tool definitions as the parsers need them: which names exist, and how a written value becomes JSON."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dflash_desktop.server.parsing.json_scan import JsonScanner

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")
_MAX_REFS = 8


class ToolSchemas:
    """The functions a request offers, in the OpenAI form."""

    def __init__(self, tools: Sequence[Mapping[str, Any]]) -> None:
        self._parameters: dict[str, Mapping[str, Any]] = {}
        for tool in tools:
            function = tool.get("function")
            if isinstance(function, Mapping) and isinstance(function.get("name"), str):
                parameters = function.get("parameters")
                self._parameters[function["name"]] = parameters if isinstance(parameters, Mapping) else {}

    def __bool__(self) -> bool:
        return bool(self._parameters)

    def __contains__(self, name: object) -> bool:
        return name in self._parameters

    def kind(self, tool: str, key: str) -> str:
        """The JSON type of a parameter: its first that is not null; "any" when nothing is declared."""
        root = self._parameters.get(tool, {})
        properties = root.get("properties")
        if not isinstance(properties, Mapping) or key not in properties:
            return "any"
        return _kind(properties[key], root, _MAX_REFS)


def _kind(schema: object, root: Mapping[str, Any], n_refs: int) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    declared = schema.get("type")
    kinds = declared if isinstance(declared, list) else [declared]
    for kind in kinds:
        if isinstance(kind, str) and kind != "null":
            return kind
    if "null" in kinds:
        return "null"
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/") and n_refs > 0:
        found: object = root
        for part in reference[2:].split("/"):
            found = found.get(part) if isinstance(found, Mapping) else None
        return _kind(found, root, n_refs - 1)
    for word in ("anyOf", "oneOf", "allOf"):
        options = schema.get(word)
        if isinstance(options, list):
            found_kinds = [_kind(option, root, n_refs - 1) for option in options] if n_refs > 0 else []
            for kind in found_kinds:
                if kind not in {"null", "any"}:
                    return kind
    values = schema.get("enum") if "enum" in schema else [schema["const"]] if "const" in schema else []
    if isinstance(values, list) and values:
        if all(isinstance(value, str) for value in values if value is not None):
            return "string"
    if "properties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    return "any"


def value_json(raw: str, kind: str) -> str:
    """The JSON text of a value that the model wrote bare between tags."""
    if kind == "string":
        return json.dumps(raw, ensure_ascii=False)
    text = raw.strip()
    word = {"true": "true", "false": "false", "null": "null", "none": "null"}.get(text.lower())
    if kind in {"boolean", "null", "any", "integer", "number", "object", "array"} and word is not None:
        if kind not in {"any"} or text in {"true", "false", "null"}:
            return word
    if kind in {"integer", "number"}:
        whole = _WHOLE.fullmatch(text) if kind == "integer" else None
        if whole is not None:
            return whole.group(1)
        if _NUMBER.fullmatch(text):
            return text
    elif kind in {"object", "array", "any"} and text[:1] in {"{", "["}:
        checked = _checked_json(text)
        if checked is not None:
            return checked
    elif kind == "any" and _NUMBER.fullmatch(text):
        return text
    return json.dumps(raw, ensure_ascii=False)


def _checked_json(text: str) -> str | None:
    scanner = JsonScanner()
    n_used, out = scanner.push(text)
    if scanner.is_done and n_used == len(text):
        return out
    try:  # Python's notation, single quotes and all
        return json.dumps(ast.literal_eval(text), ensure_ascii=False, allow_nan=False)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
