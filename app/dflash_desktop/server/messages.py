"""Conversations as clients send them, made into what chat templates accept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dflash_desktop.server.bodies import is_too_deep
from dflash_desktop.server.errors import ApiError

IMAGE_OMITTED = "[image omitted: this model reads text only]"
LATE_SYSTEM = "<system>\n"  # begins a user's turn that a late system message was moved into
_FILE_OMITTED = "[file omitted: this model reads text only]"
_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_TEXT_PARTS = frozenset({"text", "input_text", "output_text", "summary_text", "reasoning_text"})
_IMAGE_PARTS = frozenset({"image_url", "input_image", "image", "video_url", "input_audio", "audio"})
_FILE_PARTS = frozenset({"file", "input_file", "document"})
_TEXT_SOURCES = frozenset({"text", "content"})  # of Anthropic's documents: what stands in them can be read
_THOUGHTS = re.compile(r"^\s*<think>(.*?)</think>\s*", re.DOTALL)


@dataclass(slots=True)
class Conversation:
    """Normalised messages, and what had to be changed on the way."""

    messages: list[dict[str, Any]]
    continue_last: bool = False
    notes: list[str] = field(default_factory=list)


def normalise(raw: object, *, param: str = "messages") -> Conversation:
    """Check and convert OpenAI-shaped messages; raise ApiError naming the member that is wrong."""
    if not isinstance(raw, Sequence) or isinstance(raw, str) or not raw:
        raise ApiError(f"{param} must be a list with at least one message.", param=param)
    notes: list[str] = []
    last_user = max((i for i, each in enumerate(raw) if _role_of(each) == "user"), default=-1)
    messages = [_message(each, f"{param}[{i}]", notes, is_last_user=i == last_user) for i, each in enumerate(raw)]
    return arrange(messages, notes)


def arrange(messages: list[dict[str, Any]], notes: list[str]) -> Conversation:
    """Order of turns that templates accept: one system message in front, at least one user turn."""
    leading: list[str] = []
    at = 0
    while at < len(messages) and messages[at]["role"] == "system":
        leading.append(messages[at]["content"])
        at += 1
    turns: list[dict[str, Any]] = []
    late: list[str] = []
    for message in messages[at:]:
        if message["role"] == "system":
            late.append(_marked(message["content"]))
            notes.append("a late system message was moved into a user turn")
            continue
        if late and message["role"] == "user":
            message = {**message, "content": "\n\n".join([*late, message["content"]])}
        elif late:  # in a turn of its own, right here: a later place would change with each request
            turns.append({"role": "user", "content": "\n\n".join(late)})
        late = []
        turns.append(message)
    if late:
        turns.append({"role": "user", "content": "\n\n".join(late)})
    if not any(turn["role"] == "user" for turn in turns):
        turns.insert(0, {"role": "user", "content": ""})
        notes.append("an empty user turn was added: there was none")
    continue_last = False
    last = turns[-1]
    if last["role"] == "assistant" and "tool_calls" not in last:
        if last["content"] or last.get("reasoning_content"):
            continue_last = True
        else:
            turns.pop()
    system = "\n\n".join(text for text in leading if text)
    head = [{"role": "system", "content": system}] if system else []
    return Conversation(head + turns, continue_last, list(dict.fromkeys(notes)))


def _marked(text: str) -> str:
    return f"{LATE_SYSTEM}{text}\n</system>"


def _role_of(message: object) -> str | None:
    return message.get("role") if isinstance(message, Mapping) else None


def _message(raw: object, param: str, notes: list[str], *, is_last_user: bool) -> dict[str, Any]:
    if not isinstance(raw, Mapping):
        raise ApiError(f"{param} must be an object with role and content.", param=param)
    named = raw.get("role")
    role = _ROLES.get(named) if isinstance(named, str) else None
    if role is None:
        names = ", ".join(_ROLES)
        raise ApiError(f"{param}.role must be one of: {names}.", param=f"{param}.role")
    text = content_text(raw.get("content"), f"{param}.content", notes, refuses_images=is_last_user)
    message: dict[str, Any] = {"role": role, "content": text}
    if role == "assistant":
        reasoning = raw.get("reasoning_content") or raw.get("reasoning")
        match = _THOUGHTS.match(text)
        if match is not None:
            reasoning = reasoning or match.group(1).strip()
            message["content"] = text[match.end() :]
        if isinstance(reasoning, str) and reasoning:
            message["reasoning_content"] = reasoning
        calls = _tool_calls(raw, param)
        if calls:
            message["tool_calls"] = calls
    elif role == "tool":
        call_id = raw.get("tool_call_id")
        if isinstance(call_id, str):
            message["tool_call_id"] = call_id
        if isinstance(raw.get("name"), str):
            message["name"] = raw["name"]
    return message


def content_text(content: object, param: str, notes: list[str], *, refuses_images: bool = False) -> str:
    """Text of a string, null, or list of parts (joined by a line break)."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        raise ApiError(f"{param} must be a string or a list of parts.", param=param)
    texts: list[str] = []
    for i, part in enumerate(content):
        if isinstance(part, str):
            texts.append(part)
            continue
        if not isinstance(part, Mapping):
            raise ApiError(f"{param}[{i}] must be an object with a type.", param=f"{param}[{i}]")
        kind = part.get("type") if isinstance(part.get("type"), str) else None
        text = part.get("text", part.get("refusal"))
        source = part.get("source")
        if kind == "search_result":
            texts.append(_titled(part, content_text(part.get("content"), f"{param}[{i}].content", notes)))
        elif kind == "document" and isinstance(source, Mapping) and source.get("type") in _TEXT_SOURCES:
            held = source.get("data") if source["type"] == "text" else source.get("content")
            texts.append(_titled(part, content_text(held, f"{param}[{i}].source", notes)))
        elif kind in _IMAGE_PARTS | _FILE_PARTS:
            is_file = kind in _FILE_PARTS
            if refuses_images:
                what = "a file has to come as text" if is_file else "images and sound cannot be used"
                raise ApiError(
                    f"This model reads text only: {what}.", code="unsupported_content", param=f"{param}[{i}]"
                )
            texts.append(_FILE_OMITTED if is_file else IMAGE_OMITTED)
            notes.append(f"{'a file' if is_file else 'an image'} was replaced by a note: this model reads text only")
        elif isinstance(text, str):
            texts.append(text)
            if kind not in _TEXT_PARTS and kind not in {None, "refusal"}:
                notes.append(f"a content part of type {str(kind)[:40]!r} was read as text")
        elif kind in _TEXT_PARTS:
            raise ApiError(f"{param}[{i}].text must be a string.", param=f"{param}[{i}].text")
        else:
            notes.append(f"a content part of type {str(kind)[:40]!r} was skipped")
    return "\n".join(texts)


def _titled(part: Mapping[str, Any], text: str) -> str:
    """A document or a search result, under its name."""
    names = [part.get("title"), part.get("source"), part.get("context")]
    head = " - ".join(name for name in names if isinstance(name, str) and name)
    return f"{head}\n{text}" if head else text


def _tool_calls(raw: Mapping[str, Any], param: str) -> list[dict[str, Any]]:
    listed = raw.get("tool_calls")
    if listed is None and isinstance(raw.get("function_call"), Mapping):
        listed = [{"function": raw["function_call"]}]
    if listed is None:
        return []
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise ApiError(f"{param}.tool_calls must be a list.", param=f"{param}.tool_calls")
    calls = []
    for i, each in enumerate(listed):
        function = each.get("function") if isinstance(each, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            where = f"{param}.tool_calls[{i}]"
            raise ApiError(f"{where} must hold function.name.", param=where)
        calls.append(tool_call(function["name"], function.get("arguments"), each.get("id")))
    return calls


def tool_call(name: str, arguments: object, call_id: object = None) -> dict[str, Any]:
    """One call as templates want it: the arguments as a mapping."""
    call: dict[str, Any] = {
        "type": "function",
        "function": {"name": name, "arguments": arguments_mapping(arguments)},
    }
    if isinstance(call_id, str):
        call["id"] = call_id
    return call


def arguments_mapping(arguments: object) -> dict[str, Any]:
    if isinstance(arguments, Mapping):
        return dict(arguments)
    if arguments is None or arguments == "":
        return {}
    if isinstance(arguments, str):
        try:
            value = json.loads(arguments)
        except (ValueError, RecursionError):
            return {"_raw": arguments}
        return value if isinstance(value, dict) and not is_too_deep(value) else {"_raw": arguments}
    return {"_raw": json.dumps(arguments, ensure_ascii=False)}


def function_tools(raw: Iterable[object], notes: list[str], *, param: str = "tools") -> list[dict[str, Any]]:
    """OpenAI tool definitions, cleaned: unknown kinds are skipped with a note, never refused."""
    tools = []
    for i, each in enumerate(raw):
        if not isinstance(each, Mapping):
            raise ApiError(f"{param}[{i}] must be an object.", param=f"{param}[{i}]")
        if each.get("type", "function") != "function":
            notes.append(f"a tool of type {str(each.get('type'))[:40]!r} was skipped")
            continue
        function = each.get("function")
        if function is None and "name" in each:  # flat, as Responses has it
            function = each
        if not isinstance(function, Mapping):
            raise ApiError(f"{param}[{i}].function must be an object.", param=f"{param}[{i}].function")
        tools.append(function_tool(function, f"{param}[{i}].function"))
    return tools


def legacy_tools(functions: Sequence[object]) -> list[dict[str, Any]]:
    """What `functions` held before there were tools."""
    for i, each in enumerate(functions):
        if not isinstance(each, Mapping):
            raise ApiError(f"functions[{i}] must be an object.", param=f"functions[{i}]")
    return [function_tool(each, f"functions[{i}]") for i, each in enumerate(functions) if isinstance(each, Mapping)]


def function_tool(function: Mapping[str, Any], param: str, *, schema_key: str = "parameters") -> dict[str, Any]:
    name = function.get("name")
    if not isinstance(name, str) or not name or len(name) > 128:
        raise ApiError(f"{param}.name must be a text of 1 to 128 characters.", param=f"{param}.name")
    parameters = function.get(schema_key)
    if parameters is not None and not isinstance(parameters, Mapping):
        raise ApiError(f"{param}.{schema_key} must be a JSON schema.", param=f"{param}.{schema_key}")
    cleaned: dict[str, Any] = {"name": name}
    if isinstance(function.get("description"), str):
        cleaned["description"] = function["description"]
    cleaned["parameters"] = dict(parameters) if parameters else {"type": "object", "properties": {}}
    return {"type": "function", "function": cleaned}
