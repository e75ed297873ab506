"""What a request says about PFlash, and what is said about a request that was shortened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from dflash_desktop.engine.pflash.compress import Compression

PflashMode = Literal["off", "auto", "always"]
DEFAULT_CURVE = "16384:0.3,32768:0.27,65536:0.25,131072:0.2"
DEFAULT_THRESHOLD = 16384


@dataclass(frozen=True, slots=True)
class PflashOptions:
    """Lossy, so off unless somebody switches it on.

    auto: from `threshold_tokens` droppable tokens on, and for a prompt that does not fit the context; always: whenever
    something is droppable. `curve`: a keep ratio or TOKENS:RATIO points (see selection.Curve). `device` None: the
    target's. `chosen`: the keep ratio that a person chose for a message, by its index; 1 for one that stays whole, and
    any other holds below the threshold too. `recalls`: what was left out is rated again for each new question.
    """

    mode: PflashMode = "off"
    scorer: Path | None = None
    curve: str = DEFAULT_CURVE
    threshold_tokens: int = DEFAULT_THRESHOLD
    device: str | None = None
    keep_loaded: bool = False
    chosen: tuple[tuple[int, float], ...] = ()
    recalls: bool = True

    @property
    def whole(self) -> frozenset[int]:
        """The messages that stay whole because a person said so."""
        return frozenset(index for index, ratio in self.chosen if ratio >= 1)


@dataclass(frozen=True, slots=True)
class ScoreProgress:
    """The scorer reads the prompt. Tokens are its own."""

    job_id: int
    n_done_tokens: int
    n_total_tokens: int
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class PromptCompressed:
    """PFlash has looked at the prompt. `compression` None: it goes in whole, and `why_not` says why."""

    job_id: int
    compression: Compression | None
    why_not: str = ""
    scorer_name: str = ""
    load_s: float = 0.0
    score_s: float = 0.0
