"""Why something failed, apart from the sentence about it: a code, and the names and numbers of the sentence.

Whoever shows failures in another language words them from this; the sentence stays beside it as the detail.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

CauseCode = Literal[
    "file_missing",  # file, folder
    "file_broken",  # file
    "file_unsupported",  # file, reason
    "architecture_unknown",  # file, architecture
    "experts_unsupported",  # file
    "draft_unsupported",  # file, reason
    "wrong_role",  # file, role (what it is), wanted
    "draft_mismatch",  # draft, target
    "tokenizer_unknown",  # file, tokenizer
    "template_refuses",  # reason: the template's own words
    "device_missing",  # device, present
    "no_device",
    "device_failed",  # device
    "engine_missing",
    "out_of_memory",  # device; part (see binding.abi.Part), needed_bytes and free_bytes where they are known, else 0
    "context_too_large",  # device, context_tokens, needed_bytes, free_bytes, max_context_tokens (0: none fits)
    "draft_too_large",  # device, context_tokens, needed_bytes, free_bytes
    "no_memory",  # of the computer
    "context_exceeded",  # prompt_tokens, context_tokens, is_least (1: there may be more)
    "nothing_loaded",
    "other_model_loaded",
    "disk_full",  # folder; needed_bytes, free_bytes where they are known, else 0
    "state_broken",  # file; aside: where it was put, "" where it could not be moved
    "state_unreadable",  # file
    "state_unwritable",  # file, reason: the system's words
    "bug",  # kind: the name of the exception
]


@dataclass(frozen=True, slots=True)
class Cause:
    """One failure. Which facts come with which code stands beside the code."""

    code: CauseCode
    facts: Mapping[str, str | int] = field(default_factory=dict)

    def name(self, key: str) -> str:
        """A fact that is a name."""
        return str(self.facts.get(key, ""))

    def number(self, key: str) -> int:
        """A fact that is a number; 0 where it is not known."""
        return int(self.facts.get(key, 0))
