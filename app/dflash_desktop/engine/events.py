"""What the engine lane says: frozen, past tense, complete. app/README.md defines the words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from dflash_desktop.base.causes import Cause
from dflash_desktop.engine.pflash.options import PromptCompressed, ScoreProgress
from dflash_desktop.engine.requests import LoadOptions

if TYPE_CHECKING:
    from pathlib import Path

    from dflash_desktop.engine.prompt import PromptReader

FinishReason = Literal["stop", "length", "context", "cancelled"]
"""stop: a stop token or string; length: `max_tokens`; context: the context is full; cancelled: somebody stopped it."""

StepReason = Literal["no_draft", "off", "fixed", "best", "plain_faster", "probe", "no_room", "measure"]
"""Why a step had the size it had; see dflash_reason in dflash.h."""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes by part. On a CPU the weights are mostly the mapped file itself.

    All on the session's device, but for a draft's parts when it is on a device of its own.
    """

    target_weights_bytes: int
    draft_weights_bytes: int
    kv_cache_bytes: int
    recurrent_bytes: int
    draft_kv_bytes: int
    compute_bytes: int
    draft_compute_bytes: int = 0  # of a draft on a device of its own

    @property
    def total_bytes(self) -> int:
        """All parts together, also where the draft's are on another device."""
        return (
            self.target_weights_bytes
            + self.draft_weights_bytes
            + self.kv_cache_bytes
            + self.recurrent_bytes
            + self.draft_kv_bytes
            + self.compute_bytes
            + self.draft_compute_bytes
        )


@dataclass(frozen=True, slots=True)
class PrefixCacheUse:
    """What the prefix cache holds in the computer's memory, and has done since the pair was loaded (see dflash.h)."""

    most_bytes: int = 0  # 0: off
    used_bytes: int = 0
    n_restores: int = 0  # prompts that got rows back
    n_restored_tokens: int = 0  # of these prompts, what was not read again
    n_saved_tokens: int = 0
    n_evicted_tokens: int = 0
    save_s: float = 0.0
    restore_s: float = 0.0


ContextChoice = Literal["asked", "default", "fitted", "reduced"]
"""asked: the request's number; default: the engine's; fitted: the largest that fits, as was asked for; reduced: less
than the default, because no more fits into the device's memory."""

LEAST_ACCEPTANCE_LENGTH = 1.2
"""A draft below it does not match its target: it was made for another one, or its file is damaged."""


@dataclass(frozen=True, slots=True)
class DraftProbe:
    """What the draft did on a fixed prompt when the pair was loaded."""

    acceptance_length: float
    n_steps: int
    is_remembered: bool = False  # from an earlier load of the same files on the same device

    @property
    def is_match(self) -> bool:
        """Whether the draft was made for this target, as far as the probe can tell."""
        return self.acceptance_length >= LEAST_ACCEPTANCE_LENGTH


def beyond_training(context_tokens: int, trained_tokens: int) -> str:
    """What a person should know who asks for a longer context than the model knows; it is not refused."""
    return (
        f"A context of {context_tokens} tokens is more than the {trained_tokens} that the model was trained for: "
        "replies may lose their sense beyond that."
    )


@dataclass(frozen=True, slots=True)
class PairInfo:
    """What is loaded, with what was chosen where the request left it open."""

    target: Path
    target_name: str  # general.name, else the file's stem
    target_architecture: str
    target_quantization: str
    draft: Path | None
    draft_name: str | None
    block_size: int  # 0 without a draft
    device_name: str
    device_description: str
    context_tokens: int
    trained_context_tokens: int
    n_vocab: int
    memory: MemoryUse
    can_template: bool  # the file has a chat template
    has_tools: bool  # the template renders tool definitions
    has_thinking: bool  # the template knows enable_thinking
    context_choice: ContextChoice = "asked"
    window_tokens: int = 0  # what the target's attention looks back over; 0: all
    draft_probe: DraftProbe | None = None  # None without a draft, or where a step takes too long for it
    draft_device_name: str = ""  # "": beside the target
    most_prefix_bytes: int = 0  # the computer's memory that the prefix cache may come to take; not part of `memory`

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know about this load, in sentences."""
        found = []
        if self.draft_probe is not None and not self.draft_probe.is_match:
            found.append(
                f"This draft doesn't match this target: {self.draft_name} gains "
                f"{self.draft_probe.acceptance_length:.2f} tokens per step of {self.target_name}, where 1 is none. "
                "Replies stay right and are slower than without it. Choose the draft made for this target, or none."
            )
        if 0 < self.trained_context_tokens < self.context_tokens:
            found.append(beyond_training(self.context_tokens, self.trained_context_tokens))
        if self.context_choice == "fitted":
            found.append(f"Context: {self.context_tokens} tokens, the largest that fits on {self.device_name}.")
        if self.context_choice == "reduced":
            found.append(
                f"The context was reduced to {self.context_tokens} tokens, because no more fits into the free memory "
                f"of {self.device_name}."
            )
        return tuple(found)

    stop_tokens: tuple[int, ...] = ()
    can_constrain: bool = False  # replies may have a constraint and top logprobs
    options: LoadOptions = LoadOptions()  # as they were asked for


@dataclass(frozen=True, slots=True)
class JobQueued:
    """The job waits; `n_ahead` jobs come first."""

    job_id: int
    n_ahead: int


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """A load, of a pair or of a scorer, has moved another piece of weights.

    The first one of a pair's load may say 0 of 0 bytes: the pair that was loaded before is gone.
    """

    job_id: int
    part: Literal["target", "draft", "scorer"]
    n_done_bytes: int
    n_total_bytes: int


@dataclass(frozen=True, slots=True)
class PairLoaded:
    """The pair is ready, `load_s` seconds after its load began."""

    job_id: int
    pair: PairInfo
    load_s: float
    reader: PromptReader | None = None  # template and tokenizer of the target, for whoever counts or renders prompts


@dataclass(frozen=True, slots=True)
class PairUnloaded:
    """Nothing is loaded any more."""

    job_id: int


@dataclass(frozen=True, slots=True)
class PromptReady:
    """The prompt is rendered and tokenised; prefill begins. `n_reused_tokens` of it need not be read again."""

    job_id: int
    n_prompt_tokens: int
    n_reused_tokens: int
    context_tokens: int
    max_tokens: int  # the limit in force
    n_restored_tokens: int = 0  # of n_reused_tokens, what came back from the prefix cache
    reuse_s: float = 0.0  # spent on looking for them and on copying


@dataclass(frozen=True, slots=True)
class PrefillProgress:
    """Another chunk of the prompt is read, `elapsed_s` seconds after the request was accepted."""

    job_id: int
    n_done_tokens: int
    n_total_tokens: int
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class DraftTree:
    """The tree of one step. Row 0 is the root; parents come before children."""

    tokens: tuple[int, ...]
    parents: tuple[int, ...]  # -1 for the root
    path_logprobs: tuple[float, ...]  # the draft's, of the path up to the node
    accepted_rows: tuple[int, ...]  # root first


@dataclass(frozen=True, slots=True)
class StepDone:
    """One step: draft -> verify -> commit. `text` is what became certain: whole characters, no half stop string."""

    job_id: int
    step_index: int  # 0 for the first
    text: str
    token_ids: tuple[int, ...]  # committed in this step
    logprobs: tuple[float, ...]  # of token_ids; empty unless asked for
    n_drafted: int
    n_accepted: int
    n_committed: int
    n_reply_tokens: int  # so far
    n_context_tokens: int  # prompt + reply rows in the KV cache
    reason: StepReason
    draft_us: int
    verify_us: int
    commit_us: int
    host_us: int
    expected_committed: float  # what the tuner expected of this step; 0 where it had no say
    elapsed_s: float  # since the request was accepted
    tree: DraftTree | None  # None when nothing was verified
    top_logprobs: tuple[tuple[tuple[int, float], ...], ...] = ()  # per token the likeliest (id, log-probability)
    block_size: int = 0  # positions drafted, root included; 0: no draft pass; n_drafted 0: no node was worth its time
    expected_us: float = 0.0  # how long the tuner expected the step to take; 0 where it had no say
    plain_us: float = 0.0  # what a step without a draft takes here, as far as is known
    speed_up: float = 0.0  # what drafting has brought lately over plain decoding; 0: not known


@dataclass(frozen=True, slots=True)
class GenerationDone:
    """The reply is complete, or was cut by the person (`cancelled`, with what was said so far)."""

    job_id: int
    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    stop_string: str | None  # which of `Generate.stop` ended it
    n_prompt_tokens: int
    n_reused_tokens: int
    n_steps: int
    n_drafted: int
    n_accepted: int
    n_committed: int
    queue_s: float
    ttft_s: float  # request accepted -> first committed token; 0.0 when there was none
    prefill_s: float
    decode_s: float  # first committed token -> last
    n_plain_steps: int  # steps without a draft, of n_steps
    draft_s: float
    verify_s: float
    n_first_committed: int = 0  # tokens of the first step, which came before decode_s began
    n_restored_tokens: int = 0  # of n_reused_tokens, what came back from the prefix cache
    prefix_cache: PrefixCacheUse | None = None  # after this reply's prompt was read


@dataclass(frozen=True, slots=True)
class JobFailed:
    """The job ended without a result. `message` is for the person: what happened, why, what to do.

    kind: bad_request (the caller can fix it: too long a prompt, a template that refuses, a file that cannot run),
    no_pair (nothing is loaded), out_of_memory, device, bug (logged with its traceback).
    `text` is what a reply had said so far, so that nothing is lost.
    `cause` says the same as `message`, apart from a language; None where there is only the sentence.
    """

    job_id: int
    message: str
    kind: Literal["bad_request", "context_exceeded", "no_pair", "out_of_memory", "device", "bug"]
    text: str = ""
    cause: Cause | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class JobCancelled:
    """A load, a queued job, or one whose prompt was being shortened, was cancelled before it had a result. A running
    reply ends in GenerationDone instead."""

    job_id: int


Event = (
    JobQueued
    | LoadProgress
    | PairLoaded
    | PairUnloaded
    | ScoreProgress
    | PromptCompressed
    | PromptReady
    | PrefillProgress
    | StepDone
    | GenerationDone
    | JobFailed
    | JobCancelled
)
