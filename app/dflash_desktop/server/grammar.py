"""What a reply has to look like, as a grammar: JSON by a schema, or calls of the offered tools.

The grammars are in llguidance's form of Lark. A forced call follows the tool's declaration: its parameters in the
declared order, the required ones present, each value of its type.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dflash_desktop.server.chat import ChatRequest, ResponseFormat
from dflash_desktop.server.parsing.reasoning import CLOSE_TAG, OPEN_TAG
from dflash_desktop.server.parsing.tags import (
    CALL_CLOSE,
    CALL_OPEN,
    FUNCTION_CLOSE,
    FUNCTION_OPEN,
    PARAMETER_CLOSE,
    PARAMETER_OPEN,
)

# White space only where it helps reading: allowed anywhere and in any amount, a small model writes nothing else.
_JSON_OPTIONS = {
    "whitespace_flexible": False,
    "key_separator": ": ?",
    "item_separator": r",( |\n[ \t]{0,12})?",
    "lenient": True,  # words of a schema that the library does not know are left to the check of the whole answer
}
_MAX_PARAMETERS = 512  # a declaration with more of them is only checked

Thoughts = Literal["none", "opened", "may_open"]


def reply_grammar(request: ChatRequest, *, writes_blocks: bool) -> str | None:
    """The grammar of what follows the thoughts; None when anything goes. `writes_blocks`: calls are function blocks."""
    tools = request.offered_tools
    calls = None
    if tools:
        named = request.tool_choice.name
        chosen = [tool for tool in tools if named is None or tool["function"]["name"] == named]
        calls = _Calls(chosen, writes_blocks=writes_blocks, is_parallel=request.is_parallel)
    if calls is not None and request.tool_choice.mode == "required":
        return _grammar("calls", calls.rules)
    if request.response_format.kind == "text":
        return None
    rules = [f"json: {_json(schema_of(request.response_format))}"]
    if calls is None:
        return _grammar("json", rules)
    return _grammar("json | calls", [*rules, *calls.rules])  # who may call tools may do that instead of answering


def with_thoughts(grammar: str, thoughts: Thoughts) -> str:
    """The same after thoughts that the prompt has opened, or that the model may open itself."""
    head, _, rules = grammar.partition("start: ")
    before = "thoughts" if thoughts == "opened" else f"(space {_text(OPEN_TAG)} thoughts)?"
    return f"{head}start: {before} {rules}\n{_lazy('thoughts', CLOSE_TAG)}"


def schema_of(response_format: ResponseFormat) -> Mapping[str, Any]:
    return response_format.schema if response_format.schema is not None else {"type": "object"}


def _grammar(start: str, rules: Sequence[str]) -> str:
    return "\n".join(["%llguidance {}", f"start: space ({start})", r"space: /\s{0,4}/", *rules])


def _lazy(name: str, end: str) -> str:
    """A rule for any text up to and with the first `end`."""
    return f"{name}[suffix={json.dumps(end)}]: /(?s:.*)/"


def _json(schema: object) -> str:
    """A schema as a terminal."""
    if schema is True:
        schema = {}
    rooted = {**schema, "x-guidance": _JSON_OPTIONS} if isinstance(schema, Mapping) else schema
    return f"%json {json.dumps(rooted, ensure_ascii=False)}"


class _Calls:
    """Rules for calls of some tools; the rule `calls` is the whole."""

    def __init__(self, tools: Sequence[Mapping[str, Any]], *, writes_blocks: bool, is_parallel: bool) -> None:
        self.rules: list[str] = []
        names = []
        for i, tool in enumerate(tools):
            names.append(f"tool{i}")
            function = tool["function"]
            add = self._add_block if writes_blocks else self._add_json
            add(names[-1], str(function["name"]), function.get("parameters") or {})
        more = r" (/\n{0,2}/ call)*" if is_parallel else ""
        self.rules.append(f"calls: call{more}")
        self.rules.append(f"call: {_text(CALL_OPEN + chr(10))} ({' | '.join(names)}) {_text(chr(10) + CALL_CLOSE)}")

    def _add_json(self, rule: str, name: str, parameters: Mapping[str, Any]) -> None:
        head = f'{{"name": {json.dumps(name, ensure_ascii=False)}, "arguments": '
        self.rules.append(f'{rule}: {_text(head)} {_json(_object(parameters))} "}}"')

    def _add_block(self, rule: str, name: str, parameters: Mapping[str, Any]) -> None:
        properties = parameters.get("properties")
        parts = []
        if isinstance(properties, Mapping) and properties:
            required = parameters.get("required")
            wanted = required if isinstance(required, list) else []
            for i, (key, schema) in enumerate(list(properties.items())[:_MAX_PARAMETERS]):
                parts.append(f"{rule}p{i}" + ("" if key in wanted else "?"))
                self._add_parameter(f"{rule}p{i}", str(key), schema, parameters)
        elif parameters.get("additionalProperties", True) is not False:
            parts.append(f"{rule}any*")
            self.rules.append(f'{rule}any: {_text(PARAMETER_OPEN)} /[A-Za-z0-9_.\\-]{{1,64}}/ ">\\n" {rule}value')
            self.rules.append(_lazy(f"{rule}value", f"\n{PARAMETER_CLOSE}\n"))
        body = " ".join([_text(f"{FUNCTION_OPEN}{name}>\n"), *parts, _text(FUNCTION_CLOSE)])
        self.rules.append(f"{rule}: {body}")

    def _add_parameter(self, rule: str, key: str, schema: object, root: Mapping[str, Any]) -> None:
        open_tag, end = _text(f"{PARAMETER_OPEN}{key}>\n"), f"\n{PARAMETER_CLOSE}\n"
        words = _words(schema)
        if words:
            self.rules.append(f"{rule}: {open_tag} ({' | '.join(map(_text, words))}) {_text(end)}")
        elif isinstance(schema, Mapping) and schema.get("type") in _JSON_TYPES:
            shared = {key: root[key] for key in ("$defs", "definitions") if key in root}
            self.rules.append(f"{rule}: {open_tag} {_json({**shared, **schema})} {_text(end)}")
        else:  # a text stands bare, and of a value that may be one nothing can be said
            self.rules.append(f"{rule}: {open_tag} {rule}v")
            self.rules.append(_lazy(f"{rule}v", end))


_JSON_TYPES = ("integer", "number", "boolean", "object", "array", "null")


def _words(schema: object) -> list[str]:
    """The texts among which a parameter must choose; empty when it need not."""
    if not isinstance(schema, Mapping) or schema.get("type", "string") != "string":
        return []
    listed = schema.get("enum", [schema["const"]] if "const" in schema else [])
    is_words = isinstance(listed, list) and listed and all(isinstance(each, str) and each for each in listed)
    return list(listed) if is_words else []


def _object(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Arguments are an object, whatever the declaration forgot to say."""
    return parameters if "type" in parameters or "$ref" in parameters else {**parameters, "type": "object"}


def _text(text: str) -> str:
    """A literal. JSON's notation of a string is the grammar's too."""
    return json.dumps(text, ensure_ascii=False)
