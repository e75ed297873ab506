"""Where a request's body holds its conversation, in each dialect that the proxy shortens, and how it is put back.

Bodies go on to the upstream as they came but for the text that is left out, so messages are read one by one, with the
parsers of the dialects, and each one's place is remembered. A part of a message stays a part, with its other members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dflash_desktop.engine.pflash.compress import Compression, Shortened
from dflash_desktop.engine.pflash.selection import join
from dflash_desktop.engine.prompt import content_text
from dflash_desktop.server.anthropic_body import message_turns, system_turns
from dflash_desktop.server.chat import ChatRequest
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.responses_body import input_turns

MIXED = "The last message holds more than text."
_UNREAD = "The messages are none that could be read here."
_NO_CHAT = "Only conversations are shortened; this prompt came as text or tokens."
_KEPT_THERE = ("previous_response_id", "conversation", "prompt")  # of a Responses body: what the upstream remembers


@dataclass(frozen=True, slots=True)
class Readable:
    """A body as the engine reads it. `why_not`: a sentence when nothing of it may be shortened."""

    request: ChatRequest = ChatRequest("")
    member: str = "messages"  # of the body
    places: tuple[int | None, ...] = ()  # of each message of the request, in that member; None: it stands elsewhere
    why_not: str = ""

    @property
    def mixed(self) -> list[int]:
        """The user's messages that hold more than text: they are left alone."""
        messages = self.request.messages
        return [i for i, each in enumerate(messages) if each["role"] == "user" and not _is_text(each.get("content"))]

    @property
    def is_last_mixed(self) -> bool:
        """Whether what asks is one of them."""
        users = [i for i, each in enumerate(self.request.messages) if each["role"] == "user"]
        return bool(users) and users[-1] in self.mixed


def readable(path: str, body: Mapping[str, Any]) -> Readable:
    """The conversation in the body of a request for `path`, one of PATHS."""
    try:
        return _READERS[path.removeprefix("/v1")](body)
    except ApiError as error:
        return Readable(why_not=f"It could not be read here. {error.message}")


def put_back(body: Mapping[str, Any], read: Readable, found: Compression) -> dict[str, Any]:
    """The body with what is left of its conversation; all else as it was."""
    views = {view.message: view for view in found.shortened}
    held = body[read.member]
    items: list[Any] = [{"content": held}] if isinstance(held, str) else list(held)
    for i, (place, before, after) in enumerate(zip(read.places, read.request.messages, found.messages, strict=True)):
        if place is not None and after.get("content") != before.get("content"):
            items[place] = {**items[place], "content": _new_content(before["content"], after["content"], views.get(i))}
    return {**body, read.member: items[0]["content"] if isinstance(held, str) else items}


def _new_content(before: object, after: str, view: Shortened | None) -> object:
    """`after` in the form of `before`."""
    if not isinstance(before, list):
        return after
    if not _is_text(before):
        return before
    # What the engine recalls for a question stands in front of the whole message.
    front = after.removesuffix(view.kept_text if view is not None else content_text(before))
    parts = []
    start = 0
    for part in before:
        text = part["text"]
        end = start + len(text) + 1  # parts are joined by a line's end
        if view is not None and text.strip():
            own = [unit for unit in view.units if start <= unit.segment.start < end]
            text = join(view.text, own)
            if own and own[-1].is_kept and end <= len(view.text):
                text = text.removesuffix("\n")
        parts.append({**part, "text": front + text})
        front = ""
        start = end
    return parts


# ---- the dialects -------------------------------------------------------------------------------------------------


def _chat(body: Mapping[str, Any]) -> Readable:
    messages = body.get("messages")
    is_chat = isinstance(messages, list) and all(
        isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages
    )
    if not isinstance(messages, list) or not messages or not is_chat:
        return Readable(why_not=_UNREAD)
    tools = [*_listed(body.get("tools")), *_listed(body.get("functions"))]
    return Readable(_request(body, messages, tools), places=tuple(range(len(messages))))


def _completion(body: Mapping[str, Any]) -> Readable:
    del body
    return Readable(member="prompt", why_not=_NO_CHAT)


def _anthropic(body: Mapping[str, Any]) -> Readable:
    listed, system = body.get("messages"), body.get("system")
    if not isinstance(listed, list) or not listed or not isinstance(system, str | list | None):
        return Readable(why_not=_UNREAD)
    turns = system_turns(system, [])
    places: list[int | None] = [None] * len(turns)
    tools = [*_listed(body.get("tools")), *_listed(body.get("mcp_servers"))]
    for i, message in enumerate(listed):
        for turn in message_turns(message, f"messages[{i}]", [], is_last_user=False):
            turns.append(_as_it_came(turn, message))
            places.append(i)
        tools += [block for block in _listed(message.get("content")) if _is_of_a_tool(block)]
    return Readable(_request(body, turns, tools), places=tuple(places))


def _is_of_a_tool(block: Mapping[str, Any]) -> bool:
    return str(block.get("type")).endswith(("tool_use", "tool_result"))  # the upstream's own tools too


def _responses(body: Mapping[str, Any]) -> Readable:
    kept_there = [name for name in _KEPT_THERE if body.get(name)]
    if kept_there:
        return Readable(why_not=f"It goes on from what the upstream remembers ({kept_there[0]}), unseen here.")
    held, instructions = body.get("input"), body.get("instructions")
    items = [{"role": "user", "content": held}] if isinstance(held, str) else held
    if not isinstance(items, list) or not items:
        return Readable(why_not="The input is none that could be read here.")
    turns = [{"role": "system", "content": instructions}] if isinstance(instructions, str) else []
    places: list[int | None] = [None] * len(turns)
    for i, item in enumerate(items):
        notes: list[str] = []
        found = input_turns([item], notes, refuses_images=False)  # calls and their results come out as such
        if not found and item.get("type") != "reasoning":
            return Readable(why_not=f"The input holds items of type {str(item.get('type'))[:40]!r}, unknown here.")
        for turn in found:
            turns.append(_as_it_came(turn, item))
            places.append(i)
    return Readable(_request(body, turns, _listed(body.get("tools"))), "input", tuple(places))


def _request(body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], tools: Sequence[Any]) -> ChatRequest:
    is_continued = bool(messages) and messages[-1]["role"] == "assistant"
    return ChatRequest(str(body.get("model") or ""), messages, tools=tools, continue_last=is_continued)


def _as_it_came(turn: dict[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    """A user's turn with the parts of its message: what was pasted and what asks may be parts of their own."""
    return {**turn, "content": message.get("content")} if turn["role"] == "user" else turn


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_text(content: object) -> bool:
    if isinstance(content, list):
        return all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in content)
    return isinstance(content, str)


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Readable]] = {
    "/chat/completions": _chat,
    "/completions": _completion,
    "/messages": _anthropic,
    "/responses": _responses,
}
PATHS = tuple(f"{prefix}{path}" for path in _READERS for prefix in ("/v1", ""))
