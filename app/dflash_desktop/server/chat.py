"""A request for a reply, whatever the dialect it came in: the one form that generation understands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dflash_desktop.engine.requests import RawPrompt, Sampling, TokenPrompt
from dflash_desktop.server.pflash import PflashAsk

ToolMode = Literal["auto", "none", "required"]
FormatKind = Literal["text", "json_object", "json_schema"]

_TINY_TOKENS = 256  # replies up to this length count as short in the waiting line


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """`name` with "required" forces that one."""

    mode: ToolMode = "auto"
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ResponseFormat:
    """`schema` is None unless the kind is json_schema."""

    kind: FormatKind = "text"
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Thinking:
    """None means: not asked, the template's own default. `budget_tokens` is a soft limit on thoughts."""

    is_on: bool | None = None
    effort: str | None = None
    budget_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class SamplingAsk:
    """What the client said; None where it said nothing."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repeat_penalty: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None

    def over(self, default: Sampling) -> Sampling:
        """The values in force: silly ones are clamped, missing ones come from `default`."""

        def pick(value: float | None, fallback: float, low: float, high: float) -> float:
            return fallback if value is None else min(max(value, low), high)

        return Sampling(
            temperature=pick(self.temperature, default.temperature, 0.0, 5.0),
            top_k=int(pick(self.top_k, default.top_k, 0, 1_000_000)),
            top_p=pick(self.top_p, default.top_p, 0.0, 1.0) or default.top_p,
            min_p=pick(self.min_p, default.min_p, 0.0, 1.0),
            repeat_penalty=pick(self.repeat_penalty, default.repeat_penalty, 0.1, 5.0),
            frequency_penalty=pick(self.frequency_penalty, default.frequency_penalty, -2.0, 2.0),
            presence_penalty=pick(self.presence_penalty, default.presence_penalty, -2.0, 2.0),
            penalty_window=default.penalty_window,
            seed=default.seed if self.seed is None else self.seed & 0x7FFF_FFFF,
        )


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """Everything generation needs. `messages` are normalised (messages.py); `raw` replaces them if set."""

    model_asked: str
    messages: Sequence[Mapping[str, Any]] = ()
    raw: RawPrompt | TokenPrompt | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    tool_choice: ToolChoice = ToolChoice()
    is_parallel: bool = True  # several calls in one reply
    sampling: SamplingAsk = SamplingAsk()
    max_tokens: int = 0  # 0: the room left in the context
    stop: tuple[str, ...] = ()
    response_format: ResponseFormat = ResponseFormat()
    thinking: Thinking = Thinking()
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    continue_last: bool = False
    is_stream: bool = False
    want_logprobs: bool = False
    n_top_logprobs: int = 0
    pflash: PflashAsk | None = None  # what the request says about shortening its prompt; None: nothing
    idle_unload_s: float | None = None  # the client wants the model gone after so many idle seconds; below 0: never
    notes: tuple[str, ...] = ()  # what was ignored or read in a way of our own

    @property
    def offered_tools(self) -> Sequence[Mapping[str, Any]]:
        return () if self.tool_choice.mode == "none" else self.tools

    @property
    def is_short(self) -> bool:
        """A title, a tag, a warm-up: a reply that cannot take long."""
        return 0 < self.max_tokens <= _TINY_TOKENS and not self.offered_tools
