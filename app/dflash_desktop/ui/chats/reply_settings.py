"""How replies are asked for: what the panel beside the chat shows, and a chat keeps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReplySettings:
    system_prompt: str = ""
    temperature: float = 0.3
    top_p: float = 0.95
    top_k: int = 40
    seed: int = -1  # -1: another one for each reply
    max_tokens: int = 0  # 0: the room left in the context
    thinking: str = "auto"  # auto: as the model does it; on, off: where its template has a switch
