"""What a reply consists of, whatever the dialect: pieces in the order in which they become certain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dflash_desktop.engine.events import PrefixCacheUse
from dflash_desktop.server.pflash import PflashFacts

ReplyFinish = Literal["stop", "stop_string", "length", "context", "tool_calls", "cancelled"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """The request is in line; `n_ahead` come first."""

    n_ahead: int


@dataclass(frozen=True, slots=True)
class PromptRead:
    """Prefill begins; `n_reused_tokens` of the prompt need not be read again."""

    n_prompt_tokens: int
    n_reused_tokens: int


@dataclass(frozen=True, slots=True)
class Prefilled:
    n_done_tokens: int
    n_total_tokens: int
    n_reused_tokens: int
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class Beat:
    """Nothing happened for a while: time for the dialect's heartbeat."""


@dataclass(frozen=True, slots=True)
class ReasoningPiece:
    text: str


@dataclass(frozen=True, slots=True)
class TextPiece:
    text: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A tool call begins. `call_id` has no dialect prefix."""

    index: int
    call_id: str
    name: str


@dataclass(frozen=True, slots=True)
class CallArguments:
    """The next part of the arguments' JSON text; never revised."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The arguments are complete: their joined text is one JSON object."""

    index: int


@dataclass(frozen=True, slots=True)
class CallBroken:
    """The model began a call that cannot be read. `raw` is for the inspector, never for the reply."""

    reason: str
    raw: str


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    token_bytes: bytes
    logprob: float
    top: tuple[tuple[bytes, float], ...] = ()  # the likeliest at this place, best first


@dataclass(frozen=True, slots=True)
class Logprobs:
    """Of the tokens that came with the pieces since the last one."""

    tokens: tuple[TokenLogprob, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts and times of a whole request; the engine's own numbers."""

    n_prompt_tokens: int = 0
    n_reused_tokens: int = 0
    n_reply_tokens: int = 0
    n_reasoning_tokens: int = 0
    n_steps: int = 0
    n_drafted: int = 0
    n_accepted: int = 0
    queue_s: float = 0.0
    ttft_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    pflash: PflashFacts | None = None  # None: switched off
    n_restored_tokens: int = 0  # of n_reused_tokens, what came back from the prefix cache
    prefix_cache: PrefixCacheUse | None = None  # None: no reply was begun

    @property
    def n_asked_tokens(self) -> int:
        """Of the prompt as the client sent it: what its own idea of the context rests on."""
        return self.pflash.n_before_tokens if self.pflash is not None else self.n_prompt_tokens

    @property
    def acceptance_length(self) -> float:
        return self.n_reply_tokens / self.n_steps if self.n_steps else 0.0

    @property
    def decode_tps(self) -> float:
        """Tokens after the first, over the time they took."""
        return (self.n_reply_tokens - 1) / self.decode_s if self.decode_s > 0 and self.n_reply_tokens > 1 else 0.0

    @property
    def prefill_tps(self) -> float:
        n_tokens = self.n_prompt_tokens - self.n_reused_tokens
        return n_tokens / self.prefill_s if self.prefill_s > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Finished:
    reason: ReplyFinish
    stop_string: str | None
    usage: Usage


Fragment = ReasoningPiece | TextPiece | CallStarted | CallArguments | CallEnded | CallBroken
"""What the parsers make of the model's text."""

Piece = Waiting | PromptRead | Prefilled | Beat | Fragment | Logprobs | Finished


@dataclass(slots=True)
class Call:
    """A tool call being collected."""

    call_id: str
    name: str
    arguments: str = ""
    is_complete: bool = False


@dataclass(slots=True)
class Reply:
    """The pieces of one reply, collected: what a non-stream answer and the inspector are made of."""

    reasoning: str = ""
    text: str = ""
    calls: list[Call] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    broken: list[CallBroken] = field(default_factory=list)
    finish: Finished | None = None

    def add(self, piece: Piece) -> None:
        match piece:
            case ReasoningPiece():
                self.reasoning += piece.text
            case TextPiece():
                self.text += piece.text
            case CallStarted():
                self.calls.append(Call(piece.call_id, piece.name))
            case CallArguments():
                self.calls[piece.index].arguments += piece.text
            case CallEnded():
                self.calls[piece.index].is_complete = True
            case CallBroken():
                self.broken.append(piece)
            case Logprobs():
                self.logprobs.extend(piece.tokens)
            case Finished():
                self.finish = piece

    @property
    def usage(self) -> Usage:
        return self.finish.usage if self.finish is not None else Usage()
