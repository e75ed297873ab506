"""Shortens a conversation: what is droppable is rated, chosen within the budget, and put back together.

A conversation is shortened once and then only appended to: what an earlier request with the same beginning kept is kept
again word for word, so that the KV cache holds. Only messages that are new are rated anew; passages of older ones that
were left out, and that a new question asks for, come back in front of it.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from dflash_desktop.binding.native import Progress
from dflash_desktop.engine.pflash.chat import ChatPlan, Region
from dflash_desktop.engine.pflash.clauses import clauses
from dflash_desktop.engine.pflash.rating import NEUTRAL, Rater, Usual, question_tokens, rate
from dflash_desktop.engine.pflash.selection import Curve, Unit, join, select
from dflash_desktop.engine.prompt import content_text
from dflash_desktop.engine.tokens import Tokenizer

T = TypeVar("T")

MOST_VIEWS = 64
NOTHING: Mapping[int, float] = {}
RECALLED = "From the text above, left out before:"
RECALL_SHARE = 0.05
"""Of the droppable tokens: how much of what was left out may come back for a new question."""
GOLDEN_RATIO = (5**0.5 - 1) / 2
"""Its multiples, without what is before the point, lie evenly between 0 and 1 wherever one stops."""


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
    ratio: float = 0.0  # what the curve says
    question: str = ""  # what was asked of the text: the latest one


@dataclass(slots=True)
class Views:
    """What was chosen before, by the key of a conversation's beginning and the curve. Outlives the scorer."""

    shortened: OrderedDict[str, Shortened] = field(default_factory=OrderedDict)  # of the beginning's last message
    recalled: OrderedDict[str, str] = field(default_factory=OrderedDict)  # what was put in front of that message
    scores: OrderedDict[str, list[float]] = field(default_factory=OrderedDict)  # of its units, for another ratio


class Compressor:
    """Shortens conversations with one scorer. Used on one thread."""

    def __init__(
        self,
        scorer: Rater,
        tokenizer: Tokenizer,
        tail: str,
        views: Views,
        encode: Callable[[str], list[int]] | None = None,
    ) -> None:
        """`tokenizer` is the scorer's, `tail` the control tokens that end its prompts.

        `encode`: the tokenizer's, where somebody remembers what it said.
        """
        self._scorer = scorer
        self._tokenizer = tokenizer
        self._encode = encode or tokenizer.encode
        self._usual = Usual()
        self._tail = tail
        self._views = views

    def compress(
        self,
        messages: Sequence[Mapping[str, Any]],
        plan: ChatPlan,
        curve: Curve,
        chosen: Mapping[int, float] = NOTHING,
    ) -> Generator[Progress, None, Compression]:
        """Rate, choose, join; a turn of the generator per piece rated. `plan` is plan_chat's of the same messages.

        `chosen`: keep ratios by message, in place of the curve's.
        """
        work = _Work(messages, plan, curve, chosen, self._views)
        scores = (yield from self._rate(plan)) if work.needs_scores() else {}
        return work.finish(scores)

    def _rate(self, plan: ChatPlan) -> Generator[Progress, None, dict[int, list[float]]]:
        regions = plan.regions
        question = question_tokens(self._tokenizer, plan.questions, self._tail)
        neutral = question_tokens(self._tokenizer, [(NEUTRAL, 1.0)], self._tail)
        latest = plan.questions[-1:]  # earlier ones are no clauses of it
        parts = [
            question_tokens(self._tokenizer, [(clause, weight)], self._tail)
            for text, weight in latest
            for clause in clauses(text)
        ]
        flat = yield from rate(self._scorer, self._encode, plan.texts, question, neutral, self._usual, parts)
        scores: dict[int, list[float]] = {}
        at = 0
        for region in regions:
            scores[region.message] = flat[at : at + len(region.units)]
            at += len(region.units)
        return scores


def compress_again(
    messages: Sequence[Mapping[str, Any]], plan: ChatPlan, curve: Curve, chosen: Mapping[int, float], views: Views
) -> Compression | None:
    """What Compressor.compress would give, where nothing has to be rated for it; else None."""
    work = _Work(messages, plan, curve, chosen, views)
    return None if work.needs_scores() else work.finish({})


class _Work:
    """One conversation against what was chosen before."""

    def __init__(
        self,
        messages: Sequence[Mapping[str, Any]],
        plan: ChatPlan,
        curve: Curve,
        chosen: Mapping[int, float],
        views: Views,
    ) -> None:
        self._messages = messages
        self._plan = plan
        self._ratio = curve.ratio(plan.n_droppable)
        self._chosen = chosen
        self._views = views
        self._keys = _prefix_keys(messages)
        # What one curve chose is no answer for another one; the scores are.
        self._curve_keys = [f"{key} {curve.points}" for key in self._keys]
        found = [(region.message, _found(views.shortened, self._view_key(region.message))) for region in plan.regions]
        self._known = {message: view for message, view in found if view is not None}
        self._latest = max((i for i, message in enumerate(messages) if message.get("role") == "user"), default=-1)
        self._needs_recall = (
            plan.asks_anew
            and bool(self._known)
            and self._latest not in self._known
            and self._curve_keys[self._latest] not in views.recalled
        )

    def _view_key(self, message: int) -> str:
        ratio = self._chosen.get(message)
        return self._curve_keys[message] if ratio is None else f"{self._keys[message]} {ratio:.4f}"

    def needs_scores(self) -> bool:
        return self._needs_recall or any(
            region.message not in self._known and self._keys[region.message] not in self._views.scores
            for region in self._plan.regions
        )

    def _choose(self, region: Region, scores: Sequence[float], question: str) -> list[Unit]:
        units = [
            Unit(segment, n, score, "pinned" if pinned else "dropped")
            for segment, n, score, pinned in zip(region.units, region.n_tokens, scores, region.is_pinned, strict=True)
        ]
        chosen = self._chosen.get(region.message)
        if chosen is not None:
            return choose_anew(region.text, units, question, chosen)
        by_score = _among_droppable(region.text, units, question, self._ratio)
        return by_score if _has_kept(by_score) else _spread(region.text, units, self._ratio)

    def finish(self, scores: Mapping[int, list[float]]) -> Compression:
        """`scores`: of each message with a region, unless none are needed."""
        views, plan = self._views, self._plan
        question = plan.questions[-1][0] if plan.questions else ""
        done: list[Shortened] = []
        n_rated = 0
        for region in plan.regions:
            view = self._known.get(region.message)
            if view is None:
                key = self._keys[region.message]
                if region.message in scores:
                    _keep(views.scores, key, scores[region.message])
                    n_rated += region.n_droppable
                units = self._choose(region, views.scores[key], question)
                view = Shortened(region.message, region.text, tuple(units), join(region.text, units))
                _keep(views.shortened, self._view_key(region.message), view)
            done.append(view)
        n_recalled = 0
        if self._needs_recall:
            text, n_recalled = _recalled(self._known, done, scores, int(RECALL_SHARE * plan.n_droppable))
            _keep(views.recalled, self._curve_keys[self._latest], text)
        out = [dict(message) for message in self._messages]
        for view in done:
            out[view.message]["content"] = view.kept_text
        for message, key in zip(out, self._curve_keys, strict=True):
            if front := _found(views.recalled, key):
                message["content"] = front + content_text(message["content"])
        return Compression(
            messages=tuple(out),
            shortened=tuple(done),
            n_droppable=plan.n_droppable,
            n_kept=sum(u.n_tokens for s in done for u in s.units if u.why not in ("dropped", "pinned")),
            n_recalled=n_recalled,
            n_rated=n_rated,
            ratio=self._ratio,
            question=question,
        )


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


def choose_anew(
    text: str, units: Sequence[Unit], question: str, ratio: float, anchors: Collection[int] | None = None
) -> list[Unit]:
    """A message's units at the keep ratio that a person chose: nothing is rated, and the ratio is used up.

    `anchors`: as `anchored` found them, to save the time.
    """
    return _among_droppable(text, units, question, ratio, anchors=anchors, fills=True)


def _among_droppable(
    text: str,
    units: Sequence[Unit],
    question: str,
    ratio: float,
    *,
    anchors: Collection[int] | None = None,
    fills: bool = False,
) -> list[Unit]:
    """`select` among the droppable units; pinned ones stay pinned and cost nothing, as headers too."""
    budget = int(ratio * sum(unit.n_tokens for unit in units if unit.why != "pinned"))
    priced = [replace(unit, n_tokens=0, score=0.0) if unit.why == "pinned" else unit for unit in units]
    selected = select(text, priced, question, budget, anchors=anchors, fills=fills)
    return [before if before.why == "pinned" else unit for before, unit in zip(units, selected, strict=True)]


def _spread(text: str, units: Sequence[Unit], ratio: float) -> list[Unit]:
    """Some of everything, where no unit that fits is looked at more than for any question: it asks after the whole."""
    even = [replace(unit, score=1.0 - index * GOLDEN_RATIO % 1.0) for index, unit in enumerate(units)]
    selected = _among_droppable(text, even, "", ratio)
    return [replace(unit, why=one.why) for unit, one in zip(units, selected, strict=True)]


def _has_kept(units: Sequence[Unit]) -> bool:
    return any(unit.is_kept and unit.why != "pinned" for unit in units)


def _found(store: OrderedDict[str, T], key: str) -> T | None:
    """What is kept under `key`. Asking for it makes it the last to be forgotten."""
    if key in store:
        store.move_to_end(key)
    return store.get(key)


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
