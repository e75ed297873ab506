"""What the person chose about PFlash for a pair, and what that means to the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast, get_args

from dflash_desktop.engine.pflash.options import DEFAULT_CURVE, DEFAULT_THRESHOLD, PflashMode, PflashOptions
from dflash_desktop.engine.pflash.selection import Curve
from dflash_desktop.settings.pair_memory import PairLoad

SCORER_FAMILIES = ("llama", "qwen3", "qwen35")
"""Architectures that have been tried as scorers."""


@dataclass(frozen=True, slots=True)
class PflashChoice:
    """Off, because it leaves text out. `scorer` None: the model that comes with the program."""

    mode: PflashMode = "off"
    scorer: Path | None = None
    curve: str = DEFAULT_CURVE
    threshold_tokens: int = DEFAULT_THRESHOLD
    device: str | None = None  # None: the target's
    keep_loaded: bool = False
    asks_first: bool = True  # shows what would be kept before a message is sent

    def options(self, built_in: Path | None, chosen: Sequence[tuple[int, float]] = ()) -> PflashOptions:
        """For the engine. `chosen`: keep ratios by message."""
        return PflashOptions(
            mode=self.mode,
            scorer=self.scorer or built_in,
            curve=self.curve,
            threshold_tokens=self.threshold_tokens,
            device=self.device,
            keep_loaded=self.keep_loaded,
            chosen=tuple(chosen),
        )

    def ratio(self, n_tokens: int) -> float:
        """The keep ratio for a text of that length."""
        return parsed_curve(self.curve).ratio(n_tokens)


def parsed_curve(text: str) -> Curve:
    """The curve; the usual one for a text that is none."""
    try:
        return Curve.parse(text)
    except ValueError:
        return Curve.parse(DEFAULT_CURVE)


def choice_from(load: PairLoad) -> PflashChoice:
    """As it was remembered. What no version of ours has written becomes the default."""
    usual = PflashChoice()
    mode = cast(PflashMode, load.pflash_mode) if load.pflash_mode in get_args(PflashMode) else "off"
    return PflashChoice(
        mode=mode,
        scorer=Path(load.pflash_scorer) if load.pflash_scorer else None,
        curve=load.pflash_curve if _is_curve(load.pflash_curve) else usual.curve,
        threshold_tokens=load.pflash_threshold_tokens or usual.threshold_tokens,
        device=load.pflash_device or None,
        keep_loaded=load.pflash_keeps_scorer,
        asks_first=load.pflash_asks_first,
    )


def with_choice(load: PairLoad, choice: PflashChoice) -> PairLoad:
    """`load` with this choice in it."""
    return replace(
        load,
        pflash_mode=choice.mode,
        pflash_scorer=str(choice.scorer) if choice.scorer is not None else "",
        pflash_curve=choice.curve,
        pflash_threshold_tokens=choice.threshold_tokens,
        pflash_device=choice.device or "",
        pflash_keeps_scorer=choice.keep_loaded,
        pflash_asks_first=choice.asks_first,
    )


def _is_curve(text: str) -> bool:
    try:
        Curve.parse(text)
    except ValueError:
        return False
    return True
