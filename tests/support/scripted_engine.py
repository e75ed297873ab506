"""A stand-in for the lane: fits the server's EngineLane, speaks from its own thread, says what a script tells it to.

Its tokenizer cuts text into pieces of a fixed number of characters; its template is a plain ChatML with tools and
thinking. `pace` slows prefill and steps down where a test needs time to act.
"""

from __future__ import annotations

import itertools
import json
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.events import (
    Event,
    GenerationDone,
    JobCancelled,
    JobFailed,
    JobQueued,
    LoadProgress,
    MemoryUse,
    PairInfo,
    PairLoaded,
    PairUnloaded,
    PrefillProgress,
    PromptReady,
    StepDone,
)
from dflash_desktop.engine.pflash.options import PromptCompressed
from dflash_desktop.engine.prompt import PromptReader, RenderedPrompt
from dflash_desktop.engine.requests import (
    ChatPrompt,
    CompressPrompt,
    Generate,
    Job,
    LoadPair,
    Prompt,
    RawPrompt,
    TokenPrompt,
)

Script = Callable[[str], str] | str
"""The reply: a text, or a function of the prompt's text."""


@dataclass
class Pace:
    """Seconds per prefill chunk, per step and per load, and how the reply is cut."""

    prefill_s: float = 0.0
    load_s: float = 0.0
    step_s: float = 0.0
    n_prefill_chunks: int = 2
    chars_per_step: int = 5


class ScriptedReader:
    """Every token is up to four characters; ids are handed out as texts appear."""

    def __init__(self, *, has_thinking: bool = True, is_thinking_default: bool = False) -> None:
        self._texts: list[str] = []
        self._ids: dict[str, int] = {}
        self._lock = threading.Lock()
        self._is_thinking_default = is_thinking_default
        self.has_thinking = has_thinking

    def render(self, prompt: Prompt) -> RenderedPrompt:
        if isinstance(prompt, TokenPrompt):
            return RenderedPrompt(self.detokenize(prompt.token_ids).decode(), prompt.token_ids)
        text = prompt.text if isinstance(prompt, RawPrompt) else self._chat(prompt)
        return RenderedPrompt(text, self.tokenize(text, has_control_tokens=True))

    def tokenize(self, text: str, *, has_control_tokens: bool) -> tuple[int, ...]:
        del has_control_tokens
        return tuple(self._id(text[at : at + 4]) for at in range(0, len(text), 4))

    def detokenize(self, token_ids: Sequence[int]) -> bytes:
        return "".join(self._texts[token] for token in token_ids if token < len(self._texts)).encode()

    def _id(self, text: str) -> int:
        with self._lock:
            if text not in self._ids:
                self._ids[text] = len(self._texts)
                self._texts.append(text)
            return self._ids[text]

    def _chat(self, prompt: ChatPrompt) -> str:
        if any(message["role"] == "system" for message in prompt.messages[1:]):
            raise AppError("System message must be at the beginning.")
        parts = []
        if prompt.tools:
            listed = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in prompt.tools)
            parts.append(f"<tools>\n{listed}\n</tools>\n<tool_call>\n<function=NAME>\n")
        for message in prompt.messages:
            text = message["content"]
            if message.get("reasoning_content"):
                text = f"<think>\n{message['reasoning_content']}\n</think>\n\n{text}"
            for call in message.get("tool_calls", ()):
                function = call["function"]
                text += f"\n<tool_call>\n<function={function['name']}>\n"
                for key, value in function["arguments"].items():
                    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                    text += f"<parameter={key}>\n{shown}\n</parameter>\n"
                text += "</function>\n</tool_call>"
            parts.append(f"<|im_start|>{message['role']}\n{text}<|im_end|>\n")
        rendered = "".join(parts)
        if prompt.continue_last:
            return rendered.removesuffix("<|im_end|>\n")
        rendered += "<|im_start|>assistant\n"
        if self.has_thinking:
            thinks = prompt.template_kwargs.get("enable_thinking", self._is_thinking_default)
            rendered += "<think>\n" if thinks else "<think>\n\n</think>\n\n"
        return rendered


def pair_info(*, context_tokens: int = 4096, has_tools: bool = True, has_thinking: bool = True) -> PairInfo:
    return PairInfo(
        target=Path("models") / "Qwen3.5-27B-Q4_K_M.gguf",
        target_name="Qwen3.5 27B",
        target_architecture="qwen35",
        target_quantization="Q4_K_M",
        draft=Path("models") / "draft.gguf",
        draft_name="Qwen3.5 27B DFlash",
        block_size=16,
        device_name="CPU",
        device_description="scripted",
        context_tokens=context_tokens,
        trained_context_tokens=262144,
        n_vocab=1_000_000,
        memory=MemoryUse(1, 1, 1, 1, 1, 1),
        can_template=True,
        has_tools=has_tools,
        has_thinking=has_thinking,
        can_constrain=True,
    )


@dataclass
class ScriptedEngine:
    """Start with `start`, end with `close`. `jobs` is what was asked, `idle` is set while nothing runs or waits."""

    script: Script = "Hello from the script."
    pace: Pace = field(default_factory=Pace)
    reader: ScriptedReader = field(default_factory=ScriptedReader)
    failure: JobFailed | None = None
    pair: PairInfo = field(default_factory=pair_info)
    n_loads: int = 0
    n_steps: int = 0  # of all replies so far
    load_failure: Callable[[LoadPair], JobFailed | None] | None = None
    is_loaded: bool = True

    def __post_init__(self) -> None:
        self.jobs: list[Generate] = []
        self.loads: list[LoadPair] = []
        self.prompts: list[str] = []
        self.finished: list[Event] = []
        self.idle = threading.Event()
        self.idle.set()
        self._numbers = itertools.count(1)
        self._queue: queue.SimpleQueue[tuple[int, Job] | None] = queue.SimpleQueue()
        self._cancelled: set[int] = set()
        self._n_open = 0
        self._lock = threading.Lock()
        self._last_prompt: tuple[int, ...] = ()
        self._thread = threading.Thread(target=self._run, name="scripted-lane")

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._cancelled.update(range(10_000))
        self._queue.put(None)
        self._thread.join()

    def submit(self, job: Job) -> int:
        with self._lock:
            self._n_open += 1
            self.idle.clear()
            job_id = next(self._numbers)
        self._queue.put((job_id, job))
        return job_id

    def cancel(self, job_id: int) -> None:
        self._cancelled.add(job_id)

    def loaded_event(self) -> PairLoaded:
        return PairLoaded(0, self.pair, 1.5, cast("PromptReader", self.reader))

    def _run(self) -> None:
        while (entry := self._queue.get()) is not None:
            job_id, job = entry
            job.subscriber(JobQueued(job_id, 0))
            if isinstance(job, Generate):
                last = self._generate(job_id, job)
            elif isinstance(job, LoadPair):
                last = self._load(job_id, job)
            elif isinstance(job, CompressPrompt):
                last = PromptCompressed(job_id, None, "This engine is scripted and has no scorer.")
            else:
                self.is_loaded = False
                last = PairUnloaded(job_id)
            self.finished.append(last)
            with self._lock:
                self._n_open -= 1
                if not self._n_open:
                    self.idle.set()
            job.subscriber(last)

    def _load(self, job_id: int, job: LoadPair) -> Event:
        """Of another target's file name comes another pair; `load_failure` refuses what it says."""
        self.loads.append(job)
        job.subscriber(LoadProgress(job_id, "target", 1, 2))
        time.sleep(self.pace.load_s)
        self.n_loads += 1
        failed = self.load_failure(job) if self.load_failure is not None else None
        if failed is not None:
            self.is_loaded = False
            return JobFailed(job_id, failed.message, failed.kind)
        context_tokens = job.options.context_tokens or self.pair.context_tokens
        pair = replace(self.pair, context_tokens=context_tokens, options=job.options)
        if job.target != pair.target:
            pair = replace(pair, target=job.target, draft=job.draft, target_name=job.target.stem)
        self.pair = pair
        self.is_loaded = True
        return self.loaded_event()

    def _generate(self, job_id: int, job: Generate) -> Event:
        if job_id in self._cancelled:
            return JobCancelled(job_id)
        if not self.is_loaded or (job.for_pair is not None and job.for_pair is not self.pair):
            return JobFailed(job_id, "Another model is loaded.", "no_pair")
        started = time.perf_counter()
        self.jobs.append(job)
        rendered = self.reader.render(job.prompt)
        self.prompts.append(rendered.text)
        if self.failure is not None:
            return JobFailed(job_id, self.failure.message, self.failure.kind)
        n_prompt = len(rendered.token_ids)
        n_reused = _n_shared(rendered.token_ids, self._last_prompt)
        n_reused = n_reused if n_reused < n_prompt else n_prompt - 1
        limit = min(job.max_tokens or self.pair.context_tokens, self.pair.context_tokens - n_prompt)
        job.subscriber(PromptReady(job_id, n_prompt, n_reused, self.pair.context_tokens, limit))
        for chunk in range(self.pace.n_prefill_chunks):
            if job_id in self._cancelled:
                return self._done(job_id, started, "", (), "cancelled", None, n_prompt, n_reused, 0)
            time.sleep(self.pace.prefill_s)
            n_done = n_prompt * (chunk + 1) // self.pace.n_prefill_chunks
            job.subscriber(PrefillProgress(job_id, n_done, n_prompt, time.perf_counter() - started))
        text = self.script(rendered.text) if callable(self.script) else self.script
        stop_at, stop_string = min(
            ((at, each) for each in job.stop if (at := text.find(each)) >= 0), default=(len(text), None)
        )
        text = text[:stop_at]
        said, n_steps = "", 0
        ids: list[int] = []
        reason = "stop"
        tokens = [text[at : at + 4] for at in range(0, len(text), 4)]
        size = max(1, self.pace.chars_per_step // 4)
        for first in range(0, len(tokens), size):
            if job_id in self._cancelled:
                reason = "cancelled"
                break
            step = tokens[first : first + size][: limit - len(ids)]
            if not step:
                reason = "length"
                break
            time.sleep(self.pace.step_s)
            ids += [self.reader._id(token) for token in step]
            said += "".join(step)
            n_steps += 1
            self.n_steps += 1
            job.subscriber(_step(job_id, n_steps - 1, step, ids, n_prompt, job, time.perf_counter() - started))
        self._last_prompt = (*rendered.token_ids, *ids)
        return self._done(job_id, started, said, tuple(ids), reason, stop_string, n_prompt, n_reused, n_steps)

    def _done(
        self,
        job_id: int,
        started: float,
        text: str,
        ids: tuple[int, ...],
        reason: Any,
        stop_string: str | None,
        n_prompt: int,
        n_reused: int,
        n_steps: int,
    ) -> GenerationDone:
        took = time.perf_counter() - started
        return GenerationDone(
            job_id=job_id,
            text=text,
            token_ids=ids,
            finish_reason=reason,
            stop_string=stop_string if reason == "stop" else None,
            n_prompt_tokens=n_prompt,
            n_reused_tokens=n_reused,
            n_steps=n_steps,
            n_drafted=n_steps * 4,
            n_accepted=max(0, len(ids) - n_steps),
            n_committed=len(ids),
            queue_s=0.0,
            ttft_s=took / 2,
            prefill_s=took / 2,
            decode_s=took / 2,
            n_plain_steps=0,
            draft_s=0.0,
            verify_s=0.0,
        )


def _n_shared(a: Sequence[int], b: Sequence[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _step(
    job_id: int, index: int, step: list[str], ids: list[int], n_prompt: int, job: Generate, elapsed_s: float
) -> StepDone:
    return StepDone(
        job_id=job_id,
        step_index=index,
        text="".join(step),
        token_ids=tuple(ids[-len(step) :]),
        logprobs=tuple(-0.25 for _ in step) if job.want_logprobs else (),
        n_drafted=4,
        n_accepted=len(step) - 1,
        n_committed=len(step),
        n_reply_tokens=len(ids),
        n_context_tokens=n_prompt + len(ids),
        reason="fixed",
        draft_us=1,
        verify_us=1,
        commit_us=1,
        host_us=1,
        expected_committed=1.0,
        elapsed_s=elapsed_s,
        tree=None,
        top_logprobs=tuple(((token, -0.25), (0, -2.0))[: job.n_top_logprobs] for token in ids[-len(step) :]),
    )
