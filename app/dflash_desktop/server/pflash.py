"""PFlash in requests and answers: what a request may say about it, and what is told of its prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from dflash_desktop.engine.pflash.options import PflashMode, PflashOptions
from dflash_desktop.engine.pflash.selection import Curve
from dflash_desktop.server.errors import ApiError

_MODES: tuple[PflashMode, ...] = get_args(PflashMode)
_MEMBERS = ("mode", "keep", "threshold")
_MOST_CURVE_CHARS = 1000  # of points: some fifty

PFLASH_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"enum": list(_MODES)},
        {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        {"const": False},
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "mode": {"enum": list(_MODES)},
                "keep": {
                    "anyOf": [
                        {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                        {"type": "string", "pattern": r"^\d{1,7}:0\.[1-9]\d{0,3}$"},
                    ]
                },
                "threshold": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
            },
        },
        {"type": "null"},
    ]
}
"""Of the member `pflash`, for the OpenAPI document."""


@dataclass(frozen=True, slots=True)
class PflashAsk:
    """What a request says; None where it leaves it to the server. Scorer and device are the server's alone."""

    mode: PflashMode | None = None
    curve: str | None = None
    threshold_tokens: int | None = None

    def over(self, default: PflashOptions) -> PflashOptions:
        """The options in force. Whoever names a share wants it used, also where the server has PFlash off."""
        usual: PflashMode = default.mode if default.mode != "off" else "always"
        return replace(
            default,
            mode=self.mode or usual,
            curve=self.curve or default.curve,
            threshold_tokens=default.threshold_tokens if self.threshold_tokens is None else self.threshold_tokens,
        )


def pflash_ask(value: object) -> PflashAsk | None:
    """The member `pflash` of a body: off, auto, always, the share to keep, or an object; raise ApiError otherwise."""
    if value is None:
        return None
    if value is False:
        return PflashAsk("off")
    if isinstance(value, str):
        return PflashAsk(_mode(value, "pflash"))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return PflashAsk("always", _curve(value, "pflash"))
    if isinstance(value, Mapping):
        return _from_object(value)
    raise ApiError(
        "pflash must be off, auto, always, the share to keep (above 0 to 1), or an object of mode, keep and threshold.",
        param="pflash",
    )


def _from_object(value: Mapping[Any, Any]) -> PflashAsk:
    unknown = [str(key)[:40] for key in value if key not in _MEMBERS]
    if unknown:
        raise ApiError(
            f"pflash holds {unknown[0]!r}; it may hold {', '.join(_MEMBERS)}. Who runs the server chooses the scorer.",
            param="pflash",
        )
    mode, keep, threshold = (value.get(name) for name in _MEMBERS)
    is_count = isinstance(threshold, int) and not isinstance(threshold, bool) and 0 <= threshold < 1 << 31
    if threshold is not None and not is_count:
        raise ApiError("pflash.threshold must be a number of tokens.", param="pflash.threshold")
    return PflashAsk(
        mode=None if mode is None else _mode(mode, "pflash.mode"),
        curve=None if keep is None else _curve(keep, "pflash.keep"),
        threshold_tokens=threshold,
    )


def _mode(value: object, param: str) -> PflashMode:
    for mode in _MODES:
        if mode == value:
            return mode
    raise ApiError(f"{param} must be {', '.join(_MODES[:-1])} or {_MODES[-1]}.", param=param)


def _curve(value: object, param: str) -> str:
    is_share = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_share and not (isinstance(value, str) and len(value) <= _MOST_CURVE_CHARS):
        raise ApiError(f"{param} must be a share above 0 to 1, or points such as 16384:0.3,65536:0.25.", param=param)
    try:
        Curve.parse(str(value))
    except ValueError as error:
        raise ApiError(f"{param}: {error}.", param=param) from None
    return str(value)


@dataclass(frozen=True, slots=True)
class PflashFacts:
    """What became of a request's prompt. Tokens are the target's; in a proxy, the scorer's."""

    n_before_tokens: int
    n_after_tokens: int
    n_droppable_tokens: int = 0  # could have been left out
    n_kept_tokens: int = 0  # of them
    n_recalled_tokens: int = 0  # came back in front of the question
    scorer_name: str = ""
    load_s: float = 0.0
    score_s: float = 0.0
    why_not: str = ""  # the prompt went in whole, and why

    @property
    def is_shortened(self) -> bool:
        return not self.why_not

    @property
    def has_failed(self) -> bool:
        """The scorer was tried and could not do it."""
        return bool(self.why_not and self.scorer_name)

    @property
    def kept_ratio(self) -> float:
        """Of the whole prompt."""
        return self.n_after_tokens / self.n_before_tokens if self.n_before_tokens else 1.0

    def words(self) -> str:
        """For a log."""
        if not self.is_shortened:
            return f"in whole: {self.why_not}"
        return f"{self.n_before_tokens} tokens shortened to {self.n_after_tokens} in {self.load_s + self.score_s:.1f} s"

    def json(self) -> dict[str, Any]:
        """The member `pflash` of an answer's usage."""
        facts: dict[str, Any] = {
            "applied": self.is_shortened,
            "tokens_before": self.n_before_tokens,
            "tokens_after": self.n_after_tokens,
            "kept_ratio": round(self.kept_ratio, 4),
        }
        if self.scorer_name:
            facts["scorer"] = self.scorer_name
        if not self.is_shortened:
            return {**facts, "reason": self.why_not}
        return {
            **facts,
            "droppable_tokens": self.n_droppable_tokens,
            "kept_tokens": self.n_kept_tokens,
            "recalled_tokens": self.n_recalled_tokens,
            "load_ms": round(self.load_s * 1000, 3),
            "score_ms": round(self.score_s * 1000, 3),
        }


def pflash_settings(options: PflashOptions) -> dict[str, Any]:
    """What the server does unless a request says otherwise, for /props. No path."""
    return {
        "mode": options.mode,
        "keep": options.curve,
        "threshold": options.threshold_tokens,
        "scorer": options.scorer.stem if options.scorer is not None else None,
        "device": options.device,
        "residency": "keep" if options.keep_loaded else "on-demand",
    }
