"""Which texts of a conversation may be shortened, which never are, and what the question is.

Never touched: system and developer messages, the latest user turn's own words, short turns, the assistant's words, and
everything as soon as tools are in play. Droppable: the long texts that people paste.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dflash_desktop.engine.pflash.segments import Segment, cut
from dflash_desktop.engine.prompt import content_text

SHORT_TOKENS = 256
"""Turns up to this length stay whole, and so do a person's own words before and after what was pasted."""
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
        return sum(n for n, pinned in zip(self.n_tokens, self.is_pinned, strict=True) if not pinned)


@dataclass(frozen=True, slots=True)
class ChatPlan:
    """What could be shortened, and for which question. `why_not`: a sentence when nothing may."""

    regions: tuple[Region, ...] = ()
    questions: tuple[tuple[str, float], ...] = ()  # text and weight, oldest first
    why_not: str = ""

    @property
    def n_droppable(self) -> int:
        return sum(region.n_droppable for region in self.regions)

    @property
    def n_text(self) -> int:
        """Target tokens of everything that is rated."""
        return sum(sum(region.n_tokens) for region in self.regions)


def plan_chat(messages: Sequence[Mapping[str, Any]], *, has_tools: bool, count: Callable[[str], int]) -> ChatPlan:
    """`count`: tokens of a text in the target."""
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
        if region is not None and region.n_droppable:
            regions.append(region)
    latest = user_turns[-1]
    asked = [own_words[i] for i in user_turns if own_words[i].strip()][-EARLIER_QUESTIONS - 1 :]
    if not own_words[latest].strip():
        return ChatPlan(why_not="The last message holds no question of its own, only what was pasted.")
    questions = tuple((text, 0.5 ** (len(asked) - 1 - k)) for k, text in enumerate(asked))
    if not regions:
        return ChatPlan(questions=questions, why_not="Nothing in it is long enough to be shortened.")
    return ChatPlan(tuple(regions), questions)


def _user_turn(index: int, content: Any, count: Callable[[str], int]) -> tuple[Region | None, str]:
    """The droppable region of a user's message, if it has one, and the person's own words."""
    text = content_text(content)
    if count(text) <= SHORT_TOKENS:
        return None, text
    # Attachments come as parts of their own, the person's words as the last one.
    has_parts = isinstance(content, (list, tuple)) and len(content) > 1
    own_start = len(text) - len(content_text(content[-1:])) if has_parts else len(text)
    own = [Segment(unit.start + own_start, unit.end + own_start, unit.kind) for unit in cut(text[own_start:])]
    units = [*cut(text[:own_start]), *own]
    n_tokens = [count(text[unit.start : unit.end]) for unit in units]
    pinned = [unit.start >= own_start for unit in units]
    if not own:
        _pin_ends(text, units, n_tokens, pinned)
    words = "".join(text[unit.start : unit.end] for unit, is_own in zip(units, pinned, strict=True) if is_own)
    return Region(index, text, tuple(units), tuple(n_tokens), tuple(pinned)), words


def _pin_ends(text: str, units: Sequence[Segment], n_tokens: Sequence[int], pinned: list[bool]) -> None:
    """People ask after what they paste, or announce it before: "Summarise this:"."""
    if units[-1].kind == "prose" and n_tokens[-1] <= SHORT_TOKENS:
        pinned[-1] = True
    is_announced = text[units[0].start : units[0].end].rstrip().endswith((":", "?", "：", "？"))
    if units[0].kind == "prose" and n_tokens[0] <= SHORT_TOKENS and (is_announced or not pinned[-1]):
        pinned[0] = True
