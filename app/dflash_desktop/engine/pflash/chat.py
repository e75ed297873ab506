"""Which texts of a conversation may be shortened, which never are, and what the question is.

Never touched: system and developer messages, the latest user turn's own words, short turns, the assistant's words, and
everything as soon as tools are in play. Droppable: the long texts that people paste.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dflash_desktop.engine.pflash.segments import Segment, cut
from dflash_desktop.engine.prompt import content_text

SHORT_TOKENS = 256
"""Turns up to this length stay whole, and so do a person's own words before and after what was pasted."""
ATTACHED = "attached"
"""Set in a part of a message that was pasted or attached: the other parts are the person's own words, wherever they
stand. Without it, the last of several parts is."""
FRAME = "frame"
"""The value of ATTACHED for what stands around an attachment: it stays, and asks nothing."""
EARLIER_QUESTIONS = 3
"""Earlier questions still count, each half as much as the one after it."""


@dataclass(frozen=True, slots=True)
class Region:
    """A message with something droppable in it."""

    message: int  # index
    text: str
    units: tuple[Segment, ...]
    n_tokens: tuple[int, ...]  # of the target, per unit
    is_pinned: tuple[bool, ...]

    @property
    def n_droppable(self) -> int:
        """Tokens of the units that may be left out."""
        return sum(n for n, pinned in zip(self.n_tokens, self.is_pinned, strict=True) if not pinned)


@dataclass(frozen=True, slots=True)
class ChatPlan:
    """What could be shortened, and for which question. `why_not`: a sentence when nothing may."""

    regions: tuple[Region, ...] = ()
    questions: tuple[tuple[str, float], ...] = ()  # text and weight, oldest first
    why_not: str = ""
    asks_anew: bool = True  # the last message asks something

    @property
    def n_droppable(self) -> int:
        """Tokens of the target that may be left out."""
        return sum(region.n_droppable for region in self.regions)

    @property
    def texts(self) -> list[str]:
        """Everything that is rated, unit by unit."""
        return [region.text[unit.start : unit.end] for region in self.regions for unit in region.units]

    @property
    def n_text(self) -> int:
        """Target tokens of everything that is rated."""
        return sum(sum(region.n_tokens) for region in self.regions)


def plan_chat(
    messages: Sequence[Mapping[str, Any]],
    *,
    has_tools: bool,
    count: Callable[[str], int],
    whole: Collection[int] = (),
) -> ChatPlan:
    """`count`: tokens of a text in the target. `whole`: messages that nothing may be left out of."""
    if has_tools or any(
        message.get("role") in ("tool", "function") or message.get("tool_calls") for message in messages
    ):
        return ChatPlan(why_not="Requests with tools, and histories with their results, are never shortened.")
    user_turns = [i for i, message in enumerate(messages) if message.get("role") == "user"]
    if not user_turns:
        return ChatPlan(why_not="There is no question.")
    regions: list[Region] = []
    own_words: dict[int, str] = {}
    for i in user_turns:
        region, words = _user_turn(i, messages[i].get("content"), count)
        own_words[i] = words
        if region is not None and region.n_droppable and i not in whole:
            regions.append(region)
    latest = user_turns[-1]
    asked = [own_words[i] for i in user_turns if own_words[i].strip()][-EARLIER_QUESTIONS - 1 :]
    asks_anew = bool(own_words[latest].strip())
    if not asks_anew:  # nobody knows what matters of it; but what was shortened before stays so
        regions = [region for region in regions if region.message != latest]
        if not regions or not asked:
            return ChatPlan(why_not="The last message holds no question of its own, only what was pasted.")
    questions = tuple((text, 0.5 ** (len(asked) - 1 - k)) for k, text in enumerate(asked))
    if not regions:
        return ChatPlan(questions=questions, why_not="Nothing in it is long enough to be shortened.")
    return ChatPlan(tuple(regions), questions, asks_anew=asks_anew)


def _user_turn(index: int, content: Any, count: Callable[[str], int]) -> tuple[Region | None, str]:
    """The droppable region of a user's message, if it has one, and the person's own words."""
    text = content_text(content)
    if count(text) <= SHORT_TOKENS:
        return None, text
    units: list[Segment] = []
    pinned: list[bool] = []
    asks: list[bool] = []
    for start, end, stays, is_own in _stretches(content, len(text)):
        n_before = len(units)
        for unit in cut(text[start:end]):
            header = unit.header + n_before if unit.header is not None else None
            units.append(replace(unit, start=unit.start + start, end=unit.end + start, header=header))
            pinned.append(stays)
            asks.append(is_own)
    n_tokens = [count(text[unit.start : unit.end]) for unit in units]
    if not any(pinned):
        _pin_ends(text, units, n_tokens, pinned)
        asks = pinned
    words = "".join(text[unit.start : unit.end] for unit, is_own in zip(units, asks, strict=True) if is_own)
    return Region(index, text, tuple(units), tuple(n_tokens), tuple(pinned)), words


def _stretches(content: Any, n_chars: int) -> list[tuple[int, int, bool, bool]]:
    """Start and end of each part in the message's text, whether it stays, and whether it is the person's own words."""
    parts = content if isinstance(content, (list, tuple)) else ()
    if len(parts) < 2:
        return [(0, n_chars, False, False)]
    attached = [part.get(ATTACHED, False) if isinstance(part, Mapping) else False for part in parts]
    if not any(attached):
        attached = [i < len(parts) - 1 for i in range(len(parts))]
    found = []
    start = 0
    for i, mark in enumerate(attached):
        end = start + len(content_text(parts[i : i + 1])) + 1  # parts are joined by a line's end
        end = min(end, n_chars)
        if end > start:
            found.append((start, end, not mark or mark == FRAME, not mark))
        start = end
    return found


def _pin_ends(text: str, units: Sequence[Segment], n_tokens: Sequence[int], pinned: list[bool]) -> None:
    """People ask after what they paste, or announce it before: "Summarise this:"."""
    if units[-1].kind == "prose" and n_tokens[-1] <= SHORT_TOKENS:
        pinned[-1] = True
    is_announced = text[units[0].start : units[0].end].rstrip().endswith((":", "?", "：", "？"))
    if units[0].kind == "prose" and n_tokens[0] <= SHORT_TOKENS and (is_announced or not pinned[-1]):
        pinned[0] = True
