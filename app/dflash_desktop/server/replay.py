"""Remembers how the model wrote its tool calls, so that the next turn's prompt holds them byte for byte.

A template writes a structured call in its own way: other spacing, other order, `true` for `True`. Then the prefix cache
ends there and the model reads words that it never said. Where the rendered prompt lacks the original text, the turn is
rendered again with that text as its content, and kept only if the original is then really in the prompt.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dflash_desktop.engine.prompt import RenderedPrompt
from dflash_desktop.engine.requests import ChatPrompt
from dflash_desktop.server.messages import arguments_mapping
from dflash_desktop.server.pieces import Reply
from dflash_desktop.server.ports import PromptReader

_N_KEPT = 256
_ID_LENGTH = 24  # of a call id without the dialect's prefix


@dataclass(frozen=True, slots=True)
class _Said:
    raw: str  # the answer after the thoughts, calls included, as the model wrote it
    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...]


class Replays:
    """The last few replies with calls, by the ids of their calls. Used from several threads."""

    def __init__(self) -> None:
        self._said: OrderedDict[tuple[str, ...], _Said] = OrderedDict()
        self._lock = threading.Lock()

    def remember(self, reply: Reply, raw: str) -> None:
        if not reply.calls or not all(call.is_complete for call in reply.calls):
            return
        calls = tuple((call.name, arguments_mapping(call.arguments)) for call in reply.calls)
        key = tuple(call.call_id for call in reply.calls)
        with self._lock:
            self._said[key] = _Said(raw.strip(), reply.text.strip(), calls)
            while len(self._said) > _N_KEPT:
                self._said.popitem(last=False)

    def render(self, prompt: ChatPrompt, reader: PromptReader) -> RenderedPrompt:
        """The prompt with every remembered call as it was written, as far as the template lets it through."""
        rendered = reader.render(prompt)
        found = [(i, said) for i, each in enumerate(prompt.messages) if (said := self._find(each)) is not None]
        missing = [(i, said) for i, said in found if said.raw not in rendered.text]
        if not missing:
            return rendered
        messages = list(prompt.messages)
        for i, said in missing:
            kept = {key: value for key, value in messages[i].items() if key != "tool_calls"}
            messages[i] = {**kept, "content": said.raw}
        again = reader.render(replace(prompt, messages=messages))
        return again if all(said.raw in again.text for _, said in missing) else rendered

    def _find(self, message: Mapping[str, Any]) -> _Said | None:
        calls: Sequence[Mapping[str, Any]] = message.get("tool_calls", ())
        ids = tuple(str(call.get("id", ""))[-_ID_LENGTH:] for call in calls)
        if not ids:
            return None
        with self._lock:
            said = self._said.get(ids)
        if said is None or said.text != message["content"].strip():
            return None
        sent = tuple((call["function"]["name"], call["function"]["arguments"]) for call in calls)
        return said if sent == said.calls else None  # an edited call is the client's own
