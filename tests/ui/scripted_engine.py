"""An engine that says what a script tells it, from a real lane thread and with the real events."""

from __future__ import annotations

import math
import queue
import random
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dflash_desktop.engine.devices import Device
from dflash_desktop.engine.events import (
    DraftTree,
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
    StepReason,
)
from dflash_desktop.engine.requests import Generate, Job, LoadPair, UnloadPair


@dataclass
class Script:
    """What the engine does. Seconds are real ones: the lane sleeps that long."""

    text: str = "Hello, world."
    step_s: float = 0.0
    keeps_rate: bool = False  # a late step does not delay those after it
    prefill_chunks: int = 3
    prefill_s: float = 0.0  # per chunk
    n_prompt_tokens: int = 90
    load_chunks: int = 4
    load_s: float = 0.0  # per chunk
    load_failure: str = ""
    refuses_draft: str = ""
    failure: str = ""  # ends the reply after `failure_after` steps
    failure_kind: str = "device"
    failure_after: int = 0
    reason: StepReason = "best"
    has_trees: bool = True
    max_committed: int = 6
    wait_for: threading.Event | None = None  # the reply waits for it before its first step
    load_gate: threading.Event | None = None  # a load waits for it before its end
    prefill_gate: threading.Event | None = None  # prefill waits for it before its last chunk
    reader: Any = None  # template and tokenizer of the pair, for the server


FAKE_DEVICES = (
    Device(0, "CPU", "CPU", "cpu", "CPU", "Scripted processor, 2 cores", 24 * 2**30, 21 * 2**30),
    Device(1, "Vulkan0", "0000:00:02.0", "gpu", "Vulkan", "llvmpipe (LLVM 15.0.6)", 23 * 2**30, 20 * 2**30),
)

MEMORY = MemoryUse(98_362_432, 14_834_464, 188_743_680, 0, 12_582_912, 41_943_040)


class ScriptedEngine:
    """Fits bridge.EngineLike."""

    def __init__(self, script: Script | None = None, *, seed: int = 7) -> None:
        self.script = script or Script()
        self.jobs: list[Job] = []
        self._random = random.Random(seed)
        self._queue: queue.Queue[tuple[int, Job] | None] = queue.Queue()
        self._cancelled: set[int] = set()
        self._next_id = 1
        self._lock = threading.Lock()
        self._lane = threading.Thread(target=self._run, name="scripted-lane")
        self._lane.start()
        self._has_pair = False

    def submit(self, job: Job) -> int:
        with self._lock:
            job_id = self._next_id
            self._next_id += 1
        self.jobs.append(job)
        job.subscriber(JobQueued(job_id, self._queue.qsize()))
        self._queue.put((job_id, job))
        return job_id

    def cancel(self, job_id: int) -> None:
        self._cancelled.add(job_id)

    def close(self) -> None:
        self._cancelled.update(range(self._next_id))
        self._queue.put(None)
        self._lane.join()

    def generations(self) -> list[Generate]:
        return [job for job in self.jobs if isinstance(job, Generate)]

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            job_id, job = item
            match job:
                case LoadPair():
                    self._load(job_id, job)
                case UnloadPair():
                    self._has_pair = False
                    job.subscriber(PairUnloaded(job_id))
                case Generate():
                    self._generate(job_id, job)

    def _wait(self, gate: threading.Event | None, job_id: int) -> None:
        while gate is not None and not gate.wait(0.005) and job_id not in self._cancelled:
            pass

    def _load(self, job_id: int, job: LoadPair) -> None:
        script = self.script
        if script.refuses_draft and job.draft is not None:
            job.subscriber(JobFailed(job_id, script.refuses_draft, "bad_request"))
            return
        self._has_pair = False
        total = 98_362_432
        for chunk in range(script.load_chunks + 1):
            if job_id in self._cancelled:
                job.subscriber(JobCancelled(job_id))
                return
            job.subscriber(LoadProgress(job_id, "target", total * chunk // max(1, script.load_chunks), total))
            time.sleep(script.load_s)
        self._wait(script.load_gate, job_id)
        if script.load_failure:
            job.subscriber(JobFailed(job_id, script.load_failure, "bad_request"))
            return
        self._has_pair = True
        loaded = pair_info(job.target, job.draft)
        if job.options.context_tokens:
            loaded = replace(loaded, context_tokens=job.options.context_tokens)
        job.subscriber(PairLoaded(job_id, loaded, 0.4, script.reader))

    def _generate(self, job_id: int, job: Generate) -> None:
        script, tell = self.script, job.subscriber
        begin = time.monotonic()
        if not self._has_pair:
            tell(JobFailed(job_id, "No model is loaded.", "no_pair"))
            return
        n_prompt = script.n_prompt_tokens
        if script.failure and script.failure_after == 0:
            tell(JobFailed(job_id, script.failure, script.failure_kind))  # type: ignore[arg-type]
            return
        tell(PromptReady(job_id, n_prompt, 0, 8192, job.max_tokens or 8192 - n_prompt))
        for chunk in range(1, script.prefill_chunks + 1):
            time.sleep(script.prefill_s)
            if chunk == script.prefill_chunks:
                self._wait(script.prefill_gate, job_id)
            if job_id in self._cancelled:
                tell(self._done(job_id, _Reply(), n_prompt, "cancelled"))
                return
            n_done = n_prompt * chunk // script.prefill_chunks
            tell(PrefillProgress(job_id, n_done, n_prompt, time.monotonic() - begin))
        self._wait(script.wait_for, job_id)
        self._decode(job_id, job, begin)

    def _decode(self, job_id: int, job: Generate, begin: float) -> None:
        script, tell = self.script, job.subscriber
        reply = _Reply(prefill_s=time.monotonic() - begin)
        whole = _pieces(script.text)
        pieces = whole[: job.max_tokens or len(whole)]
        is_drafting = job.draft.mode != "off" and script.reason != "plain_faster"
        position = 0
        due = time.monotonic()
        while position < len(pieces):
            due += script.step_s
            time.sleep(max(0.0, due - time.monotonic()) if script.keeps_rate else script.step_s)
            if job_id in self._cancelled:
                tell(self._done(job_id, reply, script.n_prompt_tokens, "cancelled"))
                return
            if script.failure and reply.n_steps == script.failure_after:
                tell(JobFailed(job_id, script.failure, script.failure_kind, reply.text))  # type: ignore[arg-type]
                return
            wish = 1 + min(script.max_committed - 1, int(self._random.expovariate(0.55))) if is_drafting else 1
            n_committed = min(wish, len(pieces) - position)
            tree = self._tree(n_committed - 1) if is_drafting and script.has_trees else None
            elapsed = time.monotonic() - begin
            text = "".join(pieces[position : position + n_committed])
            position += n_committed
            reply.add(text, n_committed, len(tree.tokens) - 1 if tree else 0, elapsed)
            tell(
                StepDone(
                    job_id=job_id,
                    step_index=reply.n_steps - 1,
                    text=text,
                    token_ids=tuple(range(n_committed)),
                    logprobs=(),
                    n_drafted=len(tree.tokens) - 1 if tree else 0,
                    n_accepted=n_committed - 1,
                    n_committed=n_committed,
                    n_reply_tokens=position,
                    n_context_tokens=script.n_prompt_tokens + position,
                    reason=script.reason if job.draft.mode != "off" else "off",
                    draft_us=900,
                    verify_us=5200,
                    commit_us=80,
                    host_us=120,
                    expected_committed=2.4,
                    elapsed_s=elapsed,
                    tree=tree,
                    expected_us=6300.0,
                    plain_us=5100.0,
                    speed_up=1.83 if tree else 0.0,
                )
            )
        tell(self._done(job_id, reply, script.n_prompt_tokens, "stop" if len(pieces) == len(whole) else "length"))

    def _tree(self, n_accepted: int) -> DraftTree:
        """A plausible best-first tree of 7 levels whose likeliest path is accepted for `n_accepted` nodes."""
        tokens, parents, logprobs = [1], [-1], [0.0]
        spine = [0]
        for depth in range(7):
            share = max(0.12, 0.93 - 0.1 * depth - self._random.random() * 0.2)
            parent = spine[-1]
            spine.append(self._node(tokens, parents, logprobs, parent, share))
            if depth < 4:
                for other in range(self._random.randint(0, 2 if depth < 2 else 1)):
                    side = self._node(tokens, parents, logprobs, parent, (1 - share) * (0.6 - 0.2 * other))
                    if self._random.random() < 0.5:
                        self._node(tokens, parents, logprobs, side, 0.6)
        return DraftTree(tuple(tokens), tuple(parents), tuple(logprobs), tuple(spine[: n_accepted + 1]))

    def _node(self, tokens: list[int], parents: list[int], logprobs: list[float], parent: int, share: float) -> int:
        tokens.append(self._random.randrange(49152))
        parents.append(parent)
        logprobs.append(logprobs[parent] + math.log(max(0.01, share)))
        return len(tokens) - 1

    def _done(self, job_id: int, reply: _Reply, n_prompt: int, why: str) -> GenerationDone:
        return GenerationDone(
            job_id=job_id,
            text=reply.text,
            token_ids=tuple(range(reply.n_committed)),
            finish_reason=why,  # type: ignore[arg-type]
            stop_string=None,
            n_prompt_tokens=n_prompt,
            n_reused_tokens=0,
            n_steps=reply.n_steps,
            n_drafted=reply.n_drafted,
            n_accepted=max(0, reply.n_committed - reply.n_steps),
            n_committed=reply.n_committed,
            queue_s=0.0,
            ttft_s=reply.ttft_s,
            prefill_s=reply.prefill_s,
            decode_s=max(0.0, reply.last_s - reply.ttft_s),
            n_plain_steps=0 if reply.n_drafted else reply.n_steps,
            draft_s=0.0,
            verify_s=0.0,
            n_first_committed=reply.n_first_committed,
        )


@dataclass
class _Reply:
    prefill_s: float = 0.0
    texts: list[str] = field(default_factory=list)
    n_steps: int = 0
    n_committed: int = 0
    n_drafted: int = 0
    n_first_committed: int = 0
    ttft_s: float = 0.0
    last_s: float = 0.0

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def add(self, text: str, n_committed: int, n_drafted: int, elapsed_s: float) -> None:
        self.texts.append(text)
        self.n_first_committed = self.n_first_committed or n_committed
        self.n_steps += 1
        self.n_committed += n_committed
        self.n_drafted += n_drafted
        self.ttft_s = self.ttft_s or elapsed_s
        self.last_s = elapsed_s


def pair_info(target: Path, draft: Path | None) -> PairInfo:
    return PairInfo(
        target=target,
        target_name="SmolLM2-135M-Instruct",
        target_architecture="llama",
        target_quantization="Q4_1",
        draft=draft,
        draft_name="SmolLM2 DFlash" if draft else None,
        block_size=8 if draft else 0,
        device_name="CPU",
        device_description="Scripted processor, 2 cores",
        context_tokens=8192,
        trained_context_tokens=8192,
        n_vocab=49152,
        memory=MEMORY,
        can_template=True,
        has_tools=False,
        has_thinking=False,
    )


def _pieces(text: str) -> list[str]:
    """Roughly tokens: words with their space, cut at six letters."""
    pieces: list[str] = []
    word = ""
    for char in text:
        if word and (char in " \n" or len(word) >= 6):
            pieces.append(word)
            word = ""
        word += char
    return [*pieces, word] if word else pieces
