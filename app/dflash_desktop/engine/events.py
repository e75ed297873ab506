"""What the engine lane says: frozen, past tense, complete. tree.md defines the words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from dflash_desktop.engine.prompt import PromptReader

FinishReason = Literal["stop", "length", "context", "cancelled"]
"""stop: a stop token or string; length: `max_tokens`; context: the context is full; cancelled: somebody stopped it."""

StepReason = Literal["no_draft", "off", "fixed", "best", "plain_faster", "probe", "no_room"]
"""Why a step had the size it had; see dflash_reason in dflash.h."""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes by part, on the session's device. On a CPU the weights are mostly the mapped file itself."""

    target_weights_bytes: int
    draft_weights_bytes: int
    kv_cache_bytes: int
    recurrent_bytes: int
    draft_kv_bytes: int
    compute_bytes: int

    @property
    def total_bytes(self) -> int:
        return (
            self.target_weights_bytes
            + self.draft_weights_bytes
            + self.kv_cache_bytes
            + self.recurrent_bytes
            + self.draft_kv_bytes
            + self.compute_bytes
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


@dataclass(frozen=True, slots=True)
class JobQueued:
    """The job waits; `n_ahead` jobs come first."""

    job_id: int
    n_ahead: int


@dataclass(frozen=True, slots=True)
class LoadProgress:
    job_id: int
    part: Literal["target", "draft"]
    n_done_bytes: int
    n_total_bytes: int


@dataclass(frozen=True, slots=True)
class PairLoaded:
    job_id: int
    pair: PairInfo
    load_s: float
    reader: PromptReader | None = None  # template and tokenizer of the target, for whoever counts or renders prompts


@dataclass(frozen=True, slots=True)
class PairUnloaded:
    job_id: int


@dataclass(frozen=True, slots=True)
class PromptReady:
    """The prompt is rendered and tokenised; prefill begins. `n_reused_tokens` of it were still in the KV cache."""

    job_id: int
    n_prompt_tokens: int
    n_reused_tokens: int
    context_tokens: int
    max_tokens: int  # the limit in force


@dataclass(frozen=True, slots=True)
class PrefillProgress:
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
    expected_committed: float
    elapsed_s: float  # since the request was accepted
    tree: DraftTree | None  # None when nothing was drafted


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


@dataclass(frozen=True, slots=True)
class JobFailed:
    """The job ended without a result. `message` is for the person: what happened, why, what to do.

    kind: bad_request (the caller can fix it: too long a prompt, a template that refuses, a file that cannot run),
    no_pair (nothing is loaded), out_of_memory, device, bug (logged with its traceback).
    `text` is what a reply had said so far, so that nothing is lost.
    """

    job_id: int
    message: str
    kind: Literal["bad_request", "context_exceeded", "no_pair", "out_of_memory", "device", "bug"]
    text: str = ""


@dataclass(frozen=True, slots=True)
class JobCancelled:
    """A load or a queued job was cancelled before it had a result. A running reply ends in GenerationDone instead."""

    job_id: int


Event = (
    JobQueued
    | LoadProgress
    | PairLoaded
    | PairUnloaded
    | PromptReady
    | PrefillProgress
    | StepDone
    | GenerationDone
    | JobFailed
    | JobCancelled
)
