"""The facts of a reply: measured by the engine, shown under it, kept with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast, get_args

from PySide6.QtCore import QCoreApplication

from dflash_desktop.engine import metrics
from dflash_desktop.engine.events import FinishReason, GenerationDone, StepReason
from dflash_desktop.ui.chats.shortening_facts import ShorteningFacts, shortening_from
from dflash_desktop.ui.kit import numbers

translate = QCoreApplication.translate
LEAST_SPEED_UP = 0.05
"""A measured speed-up below this is no measurement."""


@dataclass(frozen=True, slots=True)
class AskedWith:
    """What a reply was asked for with."""

    seed: int = 0
    model_name: str = ""
    draft_name: str = ""
    device_name: str = ""
    draft_mode: str = ""
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    max_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ReplyFacts:
    """None: not measured, which is shown as a dash."""

    finish_reason: FinishReason
    n_tokens: int
    decode_tps: float | None
    ttft_s: float | None
    acceptance_length: float | None
    is_drafted: bool  # in most of its steps: a probe now and then does not count
    reason: StepReason | None  # why most steps had the size they had
    asked: AskedWith
    speed_up: float | None = None  # measured against plain decoding
    n_prompt_tokens: int = 0
    prefill_tps: float | None = None
    shortening: ShorteningFacts | None = None  # None: nothing was asked of PFlash
    is_looping: bool = False  # it ended in a loop

    def draft_words(self) -> str:
        if self.is_drafted:
            return translate("facts", "draft on")
        match self.reason:
            case "no_draft":
                return translate("facts", "no draft")
            case "plain_faster":
                return translate("facts", "draft off: plain is faster here")
            case _:
                return translate("facts", "draft off")

    def finish_words(self) -> str:
        words = {
            "stop": translate("facts", "finished"),
            "length": translate("facts", "token limit reached"),
            "context": translate("facts", "context is full"),
            "cancelled": translate("facts", "stopped by you"),
        }
        return words[self.finish_reason]

    def line(self) -> str:
        """The facts in one line, the most interesting first."""
        parts = [
            translate("facts", "{0} tok/s").format(numbers.rate(self.decode_tps)),
            translate("facts", "first token {0}").format(numbers.seconds(self.ttft_s)),
        ]
        if self.is_drafted and self.acceptance_length is not None:
            parts.append(translate("facts", "AL {0}").format(numbers.decimal(self.acceptance_length, 2)))
        if self.is_drafted and self.speed_up is not None:
            parts.append(translate("facts", "{0} times plain").format(numbers.decimal(self.speed_up, 2)))
        parts += [self.draft_words(), numbers.tokens(self.n_tokens), self.finish_words()]
        if self.shortening is not None and (words := self.shortening.words()):
            parts.append(words)
        return "  ·  ".join(parts)

    def details(self) -> str:
        """All of it, a line for each thing: what a tooltip shows and an export keeps."""
        asked = self.asked
        lines = [
            translate("facts", "Model: {0}").format(asked.model_name or numbers.DASH),
            translate("facts", "Draft: {0}").format(asked.draft_name or numbers.DASH),
            translate("facts", "Device: {0}").format(asked.device_name or numbers.DASH),
            translate("facts", "Prompt: {0}, read at {1} tok/s").format(
                numbers.tokens(self.n_prompt_tokens), numbers.rate(self.prefill_tps)
            ),
            translate("facts", "Temperature {0}, top-p {1}, top-k {2}, seed {3}").format(
                numbers.decimal(asked.temperature, 2), numbers.decimal(asked.top_p, 2), asked.top_k, asked.seed
            ),
        ]
        if self.is_drafted:
            lines.append(translate("facts", "AL: tokens gained per step of the target"))
        if self.shortening is not None:
            lines += self.shortening.details()
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """For the store and exports."""
        return asdict(self)


def facts_of(
    done: GenerationDone,
    *,
    reason: StepReason | None,
    asked: AskedWith,
    speed_up: float | None = None,
    shortening: ShorteningFacts | None = None,
    is_looping: bool = False,
) -> ReplyFacts:
    """What is worth telling of a finished reply. `reason`: why most of its steps had the size they had."""
    return ReplyFacts(
        finish_reason=done.finish_reason,
        n_tokens=done.n_committed,
        decode_tps=metrics.decode_tps(done),
        ttft_s=metrics.ttft(done),
        acceptance_length=metrics.acceptance_length(done),
        is_drafted=done.n_plain_steps * 2 < done.n_steps,
        reason=reason,
        asked=asked,
        speed_up=speed_up if speed_up is not None and speed_up > LEAST_SPEED_UP else None,
        n_prompt_tokens=done.n_prompt_tokens,
        prefill_tps=metrics.prefill_tps(done),
        shortening=shortening,
        is_looping=is_looping,
    )


def facts_from(stored: Mapping[str, Any]) -> ReplyFacts | None:
    """Facts as they were stored; None where there are none, or a hand has made nonsense of them."""
    if not stored or stored.get("finish_reason") not in get_args(FinishReason):
        return None
    asked = stored.get("asked")
    reason = stored.get("reason")
    return ReplyFacts(
        finish_reason=cast("FinishReason", stored["finish_reason"]),
        n_tokens=_whole(stored.get("n_tokens")),
        decode_tps=_number(stored.get("decode_tps")),
        ttft_s=_number(stored.get("ttft_s")),
        acceptance_length=_number(stored.get("acceptance_length")),
        is_drafted=bool(stored.get("is_drafted")),
        reason=cast("StepReason", reason) if isinstance(reason, str) else None,
        asked=_asked_from(asked if isinstance(asked, Mapping) else {}),
        speed_up=_number(stored.get("speed_up")),
        n_prompt_tokens=_whole(stored.get("n_prompt_tokens")),
        prefill_tps=_number(stored.get("prefill_tps")),
        shortening=shortening_from(stored.get("shortening")),
        is_looping=stored.get("is_looping") is True,
    )


def _asked_from(stored: Mapping[str, Any]) -> AskedWith:
    defaults = asdict(AskedWith())
    return AskedWith(**{name: stored[name] for name in defaults if isinstance(stored.get(name), type(defaults[name]))})


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
