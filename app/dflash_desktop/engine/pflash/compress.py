"""Shortens a conversation: what is droppable is rated, chosen within the budget, and put back together.

A conversation is shortened once and then only appended to: what an earlier request with the same beginning kept is kept
again word for word, so that the KV cache holds. Only messages that are new are rated anew; passages of older ones that
were left out, and that a new question asks for, come back in front of it.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from dflash_desktop.binding.native import Progress
from dflash_desktop.engine.pflash.chat import ChatPlan, Region
from dflash_desktop.engine.pflash.rating import NEUTRAL, Rater, question_tokens, rate
from dflash_desktop.engine.pflash.selection import Curve, Unit, join, select
from dflash_desktop.engine.prompt import content_text
from dflash_desktop.engine.tokens import Tokenizer

T = TypeVar("T")

MOST_VIEWS = 64
RECALLED = "From the text above, left out before:"
RECALL_SHARE = 0.05
"""Of the droppable tokens: how much of what was left out may come back for a new question."""


@dataclass(frozen=True, slots=True)
class Shortened:
    """A message that lost units."""

    message: int
    text: str  # as it was
    units: tuple[Unit, ...]
    kept_text: str


@dataclass(frozen=True, slots=True)
class Compression:
    """The conversation to prefill, and what was done to it."""

    messages: tuple[Mapping[str, Any], ...]
    shortened: tuple[Shortened, ...]
    n_droppable: int  # target tokens that could have been left out
    n_kept: int  # of them
    n_recalled: int = 0  # target tokens that came back in front of the question
    n_rated: int = 0  # target tokens rated for this request; 0: an earlier request's choice


@dataclass(slots=True)
class Views:
    """What was chosen before, by the key of a conversation's beginning. Outlives the scorer."""

    shortened: OrderedDict[str, Shortened] = field(default_factory=OrderedDict)  # of the beginning's last message
    recalled: OrderedDict[str, str] = field(default_factory=OrderedDict)  # what was put in front of that message


class Compressor:
    """Shortens conversations with one scorer. Used on one thread."""

    def __init__(self, scorer: Rater, tokenizer: Tokenizer, tail: str, views: Views) -> None:
        """`tokenizer` is the scorer's, `tail` the control tokens that end its prompts."""
        self._scorer = scorer
        self._tokenizer = tokenizer
        self._tail = tail
        self._views = views

    def compress(
        self, messages: Sequence[Mapping[str, Any]], plan: ChatPlan, curve: Curve
    ) -> Generator[Progress, None, Compression]:
        """Rate, choose, join; a turn of the generator per piece rated. `plan` is plan_chat's of the same messages."""
        views = self._views
        keys = _prefix_keys(messages)
        known = {
            region.message: views.shortened[keys[region.message]]
            for region in plan.regions
            if keys[region.message] in views.shortened
        }
        scores = yield from self._rate(plan)
        ratio = curve.ratio(plan.n_droppable)
        done: list[Shortened] = []
        n_rated = 0
        for region in plan.regions:
            if region.message not in known:
                units = _choose(region, scores[region.message], plan.questions[-1][0], int(ratio * region.n_droppable))
                view = Shortened(region.message, region.text, tuple(units), join(region.text, units))
                _keep(views.shortened, keys[region.message], view)
                n_rated += region.n_droppable
            done.append(views.shortened[keys[region.message]])
        latest = max(i for i, message in enumerate(messages) if message.get("role") == "user")
        n_recalled = 0
        if known and latest not in known and keys[latest] not in views.recalled:
            text, n_recalled = _recalled(known, done, scores, int(RECALL_SHARE * plan.n_droppable))
            _keep(views.recalled, keys[latest], text)
        out = [dict(message) for message in messages]
        for view in done:
            out[view.message]["content"] = view.kept_text
        for message, key in zip(out, keys, strict=True):
            if front := views.recalled.get(key):
                message["content"] = front + content_text(message["content"])
        return Compression(
            messages=tuple(out),
            shortened=tuple(done),
            n_droppable=plan.n_droppable,
            n_kept=sum(u.n_tokens for s in done for u in s.units if u.why not in ("dropped", "pinned")),
            n_recalled=n_recalled,
            n_rated=n_rated,
        )

    def _rate(self, plan: ChatPlan) -> Generator[Progress, None, dict[int, list[float]]]:
        regions = plan.regions
        texts = [region.text[unit.start : unit.end] for region in regions for unit in region.units]
        question = question_tokens(self._tokenizer, plan.questions, self._tail)
        neutral = question_tokens(self._tokenizer, [(NEUTRAL, 1.0)], self._tail)
        flat = yield from rate(self._scorer, self._tokenizer.encode, texts, question, neutral)
        scores: dict[int, list[float]] = {}
        at = 0
        for region in regions:
            scores[region.message] = flat[at : at + len(region.units)]
            at += len(region.units)
        return scores


def _recalled(
    known: Mapping[int, Shortened], done: Sequence[Shortened], scores: Mapping[int, list[float]], budget: int
) -> tuple[str, int]:
    """What older choices left out and the new question looks at half as much as at the best of what is there."""
    kept = [score for s in done for score, unit in zip(scores[s.message], s.units, strict=True) if unit.is_kept]
    bar = max(kept, default=0.0) / 2
    left_out = [
        (-score, view.message, i)
        for view in known.values()
        for i, (score, unit) in enumerate(zip(scores[view.message], view.units, strict=True))
        if not unit.is_kept and score >= bar
    ]
    passages: list[tuple[int, int]] = []
    n_tokens = 0
    for _, message, i in sorted(left_out):
        n = known[message].units[i].n_tokens
        if n_tokens + n <= budget:
            n_tokens += n
            passages.append((message, i))
    texts = []
    for message, i in sorted(passages):
        segment = known[message].units[i].segment
        texts.append(known[message].text[segment.start : segment.end].strip())
    return ("\n\n".join([RECALLED, *texts, ""]) if texts else ""), n_tokens


def _choose(region: Region, scores: Sequence[float], question: str, budget: int) -> list[Unit]:
    """`select` among the droppable units; pinned ones stay pinned and cost nothing, as headers too."""
    units = [
        Unit(segment, 0 if pinned else n, 0.0 if pinned else score)
        for segment, n, score, pinned in zip(region.units, region.n_tokens, scores, region.is_pinned, strict=True)
    ]
    chosen = select(region.text, units, question, budget)
    return [
        replace(unit, n_tokens=n, why="pinned" if pinned else unit.why)
        for unit, n, pinned in zip(chosen, region.n_tokens, region.is_pinned, strict=True)
    ]


def _keep(store: OrderedDict[str, T], key: str, value: T) -> None:
    store[key] = value
    while len(store) > MOST_VIEWS:
        store.popitem(last=False)


def _prefix_keys(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """One key per message: everything from the start up to it."""
    digest = hashlib.sha256()
    keys = []
    for message in messages:
        digest.update(json.dumps(message, sort_keys=True, default=str).encode())
        keys.append(digest.copy().hexdigest())
    return keys
