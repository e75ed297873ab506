"""What PFlash did to the prompt of a reply, and what that brought: measured, kept with the reply's facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QCoreApplication

from dflash_desktop.engine import metrics
from dflash_desktop.engine.events import GenerationDone
from dflash_desktop.engine.pflash.compress import Compression
from dflash_desktop.engine.pflash.options import PromptCompressed
from dflash_desktop.ui.kit import numbers

translate = QCoreApplication.translate
LEAST_SAVED_S = 0.5
"""Less than this, estimated as it is, is nothing to speak of."""


@dataclass(frozen=True, slots=True)
class ShorteningFacts:
    """`why_whole`: the engine's sentence when the prompt went in whole although PFlash is on; the rest is 0 then."""

    n_before: int = 0  # tokens of the prompt if nothing had been left out, about
    n_after: int = 0
    n_recalled: int = 0
    rated_s: float = 0.0  # loading the scorer and reading with it; 0: chosen for an earlier reply
    saved_s: float | None = None  # estimated from the measured prefill, rated_s taken off; None: nobody knows
    scorer_name: str = ""
    why_whole: str = ""
    has_failed: bool = False  # it should have been shortened, and could not be

    def words(self) -> str:
        """For the line under the reply; empty where there is nothing to tell."""
        if self.why_whole:
            return translate("facts", "prompt sent whole: {0}").format(self.why_whole) if self.has_failed else ""
        before, after = numbers.count(self.n_before), numbers.tokens(self.n_after)
        if not self.rated_s:
            return translate("facts", "prompt shortened before: about {0} → {1}").format(before, after)
        rated = numbers.seconds(self.rated_s)
        if self.saved_s is None or abs(self.saved_s) < LEAST_SAVED_S:
            words = translate("facts", "prompt shortened: about {0} → {1}, chosen in {2}")
            return words.format(before, after, rated)
        saved = numbers.seconds(abs(self.saved_s))
        if self.saved_s > 0:
            words = translate("facts", "prompt shortened: about {0} → {1}, chosen in {2}, about {3} saved")
        else:
            words = translate("facts", "prompt shortened: about {0} → {1}, chosen in {2}, which took about {3} longer")
        return words.format(before, after, rated, saved)

    def details(self) -> list[str]:
        """Lines for the tooltip."""
        if self.why_whole:
            return [translate("facts", "PFlash: {0}").format(self.why_whole)]
        lines = [translate("facts", "PFlash's scorer: {0}").format(self.scorer_name or numbers.DASH)]
        if self.n_recalled:
            words = translate("facts", "Left out before, brought back for this question: {0}")
            lines.append(words.format(numbers.tokens(self.n_recalled)))
        return lines


def shortening_of(event: PromptCompressed | None, done: GenerationDone, *, rated_s: float) -> ShorteningFacts | None:
    """None: nothing was asked of PFlash. `rated_s`: what a preview of the same prompt has taken already."""
    if event is None:
        return None
    found = event.compression
    if found is None:
        return ShorteningFacts(why_whole=event.why_not, has_failed=bool(event.scorer_name))
    n_left_out = found.n_droppable - found.n_kept - found.n_recalled
    rated_s += event.load_s + event.score_s
    return ShorteningFacts(
        n_before=max(done.n_prompt_tokens + n_left_out, 0),
        n_after=done.n_prompt_tokens,
        n_recalled=found.n_recalled,
        rated_s=rated_s,
        saved_s=_saved_s(found, done, rated_s),
        scorer_name=event.scorer_name,
    )


def _saved_s(found: Compression, done: GenerationDone, rated_s: float) -> float | None:
    """What the target would have read longer, at the pace at which it read the rest, less the time of choosing.

    Only of the latest message: what was left out of older ones would have been in the KV cache by now.
    """
    tps = metrics.prefill_tps(done)
    latest = max((i for i, message in enumerate(found.messages) if message.get("role") == "user"), default=-1)
    n_left_out = sum(
        unit.n_tokens for view in found.shortened if view.message == latest for unit in view.units if not unit.is_kept
    )
    if not tps or not rated_s or not n_left_out:
        return None
    return n_left_out / tps - rated_s


def shortening_from(stored: Any) -> ShorteningFacts | None:
    """As it was stored; None for anything else."""
    if not isinstance(stored, Mapping):
        return None
    saved_s = stored.get("saved_s")
    return ShorteningFacts(
        n_before=_whole(stored.get("n_before")),
        n_after=_whole(stored.get("n_after")),
        n_recalled=_whole(stored.get("n_recalled")),
        rated_s=_number(stored.get("rated_s")) or 0.0,
        saved_s=_number(saved_s),
        scorer_name=str(stored.get("scorer_name", "")),
        why_whole=str(stored.get("why_whole", "")),
        has_failed=stored.get("has_failed") is True,
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
