"""What may be asked of the engine lane: frozen, complete, queued."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from dflash_desktop.engine.pflash.options import PflashOptions

if TYPE_CHECKING:
    from dflash_desktop.engine.events import Event, PairInfo

Subscriber = Callable[["Event"], None]
"""Called on the lane's thread, once per event, in order. Must return quickly and never raise."""

DraftMode = Literal["auto", "tree", "chain", "off"]
KvType = Literal["auto", "f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"]


FIT_CONTEXT = -1
"""For LoadOptions.context_tokens: the largest context that fits the device's free memory, up to the trained one."""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How a pair is loaded. `None` and 0 mean: let the engine choose, and say what it chose in `PairLoaded`."""

    device: str | None = None  # a device's name or id, as --list-devices prints it
    draft_device: str | None = None  # likewise, for a draft on another GPU than its target
    context_tokens: int = 0  # 0: as trained, at most 8192, less where memory is short; FIT_CONTEXT
    window_tokens: int = 0  # what the target's attention looks back over; 0: all. Changes what is said, unlike the rest
    kv_k: KvType = "auto"
    kv_v: KvType = "auto"
    n_threads: int = 0
    prefix_cache_bytes: int | None = None  # most of the computer's memory for other conversations' starts; 0: none


@dataclass(frozen=True, slots=True)
class LoadPair:
    """Load a target and, unless `draft` is None, its draft. Replaces the pair that is loaded."""

    target: Path
    draft: Path | None
    options: LoadOptions
    subscriber: Subscriber


@dataclass(frozen=True, slots=True)
class UnloadPair:
    """Free the loaded pair, if any."""

    subscriber: Subscriber


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen. Temperature 0 is greedy; every other value keeps the target's own distribution."""

    temperature: float = 0.0
    top_k: int = 0  # 0: off
    top_p: float = 1.0  # 1: off
    min_p: float = 0.0  # 0: off
    repeat_penalty: float = 1.0  # 1: off
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    penalty_window: int = 256  # tokens, prompt included; -1: all
    seed: int = 0


@dataclass(frozen=True, slots=True)
class DraftOptions:
    """Whether and how much to draft. Never changes what is said, only how fast."""

    mode: DraftMode = "auto"
    tree_budget: int = 0  # most nodes per step; 0: automatic
    block_size: int = 0  # 0: as trained


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A conversation, rendered with the target's own chat template.

    `messages` are OpenAI-shaped mappings: role, content (text or a list of text parts), tool_calls, tool_call_id.
    `continue_last`: the last message is the assistant's unfinished one; the reply continues it without a new header.
    """

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    continue_last: bool = False


@dataclass(frozen=True, slots=True)
class RawPrompt:
    """Text without a template. Control tokens written in it are control tokens (it is the caller's own text)."""

    text: str


@dataclass(frozen=True, slots=True)
class TokenPrompt:
    """Token ids, as they are."""

    token_ids: tuple[int, ...]


Prompt = ChatPrompt | RawPrompt | TokenPrompt


class Constraint(Protocol):
    """What a reply has to look like, token by token. Follows one reply; used on the lane's thread."""

    def n_allowed(self, token_ids: Sequence[int]) -> int:
        """How many of the tokens, from the first on, may come next. A stop token may where the reply may end."""

    def allowed_after(self, token_ids: Sequence[int]) -> bytes:
        """One bit for each token that may follow after `token_ids`: bit t % 8 of byte t // 8. AppError: none may."""

    def commit(self, token_ids: Sequence[int]) -> None:
        """The tokens joined the reply."""


@dataclass(frozen=True, slots=True)
class Generate:
    """One reply. `max_tokens` 0: the room left in the context. `stop` strings end the reply and are not part of it."""

    prompt: Prompt
    subscriber: Subscriber
    sampling: Sampling = Sampling()
    draft: DraftOptions = DraftOptions()
    max_tokens: int = 0
    stop: tuple[str, ...] = ()
    ignore_stop: bool = False
    want_logprobs: bool = False
    reuse_prefix: bool = True
    constraint: Constraint | None = None  # the draft goes on proposing; what is not allowed is chosen anew, exactly
    n_top_logprobs: int = 0  # at each place the so many likeliest tokens, at most 64; needs want_logprobs
    for_pair: PairInfo | None = (
        None  # fail with kind no_pair if another one is loaded by then: token ids are a model's own
    )

    pflash: PflashOptions = PflashOptions()


@dataclass(frozen=True, slots=True)
class CompressPrompt:
    """What PFlash would keep of a prompt, without a reply. Ends with PromptCompressed.

    Tokens are those of the loaded pair; with `counts_by_scorer` the scorer's, and no pair has to be loaded.
    """

    prompt: Prompt
    pflash: PflashOptions
    subscriber: Subscriber
    counts_by_scorer: bool = False


Job = LoadPair | UnloadPair | Generate | CompressPrompt
