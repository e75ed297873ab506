"""What the server needs of the engine, as protocols: the real lane fits them, and so does a scripted one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dflash_desktop.engine.prompt import RenderedPrompt
from dflash_desktop.engine.requests import Job, Prompt


class EngineLane(Protocol):
    """The lane. Both methods may be called from any thread and never block."""

    def submit(self, job: Job) -> int:
        """Queue `job` and return its id."""

    def cancel(self, job_id: int) -> None:
        """End a queued or running job; it takes effect within one step or prefill chunk."""


class PromptReader(Protocol):
    """Template and tokenizer of the loaded target. Any thread; never waits for the lane."""

    def render(self, prompt: Prompt) -> RenderedPrompt:
        """Raise AppError when the template refuses the conversation."""

    def tokenize(self, text: str, *, has_control_tokens: bool) -> tuple[int, ...]:
        """Token ids of `text`; control tokens are recognised in it only if asked."""

    def detokenize(self, token_ids: Sequence[int]) -> bytes:
        """The bytes that the ids spell, control tokens included."""
