"""`dflash-desktop bench --sweep`: every tree budget side by side, and what the tuner makes of the same prompts."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from dflash_desktop.cli import console
from dflash_desktop.engine import metrics
from dflash_desktop.engine.requests import DraftOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dflash_desktop.engine.events import GenerationDone

BUDGETS = (1, 2, 4, 8, 16, 22, 32, 48, 63)


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table."""

    name: str
    draft: DraftOptions


@dataclass(frozen=True, slots=True)
class Row:
    """A setting's figures over all prompts; times per step, in milliseconds."""

    name: str
    decode_tps: float | None  # median over the prompts
    speed_up: float | None  # against plain decoding, median of the prompts' ratios
    acceptance_length: float | None  # over all steps
    drafted_per_step: float | None
    draft_ms: float | None
    verify_ms: float | None
    n_identical: int  # replies equal to plain decoding's


def settings(block_size: int) -> list[Setting]:
    """Plain decoding first: the others are compared with it."""
    return [
        Setting("plain", DraftOptions("off")),
        Setting("chain", DraftOptions("chain", block_size=block_size)),
        *(Setting(f"tree {budget}", DraftOptions("tree", budget, block_size)) for budget in BUDGETS),
        Setting("auto", DraftOptions("auto", block_size=block_size)),
    ]


def run_sweep(
    prompts: Sequence[str], block_size: int, reply: Callable[[str, DraftOptions], GenerationDone]
) -> list[Row]:
    """Answer every prompt under every setting, prompt by prompt, so that a machine that drifts favours none.

    `reply` answers one prompt. The order turns by one setting per prompt.
    """
    chosen = settings(block_size)
    done: dict[str, list[GenerationDone]] = {setting.name: [] for setting in chosen}
    for number, prompt in enumerate(prompts):
        first = number % len(chosen)
        for setting in chosen[first:] + chosen[:first]:
            done[setting.name].append(reply(prompt, setting.draft))
    plain = done["plain"]
    return [_row(setting.name, done[setting.name], plain) for setting in chosen]


def _row(name: str, replies: Sequence[GenerationDone], plain: Sequence[GenerationDone]) -> Row:
    n_steps = sum(reply.n_steps for reply in replies)
    ratios = [
        tps / base
        for reply, other in zip(replies, plain, strict=True)
        if (tps := metrics.decode_tps(reply)) and (base := metrics.decode_tps(other))
    ]
    speeds = [tps for reply in replies if (tps := metrics.decode_tps(reply)) is not None]
    return Row(
        name=name,
        decode_tps=statistics.median(speeds) if speeds else None,
        speed_up=statistics.median(ratios) if ratios else None,
        acceptance_length=sum(reply.n_committed for reply in replies) / n_steps if n_steps else None,
        drafted_per_step=sum(reply.n_drafted for reply in replies) / n_steps if n_steps else None,
        draft_ms=1e3 * sum(reply.draft_s for reply in replies) / n_steps if n_steps else None,
        verify_ms=1e3 * sum(reply.verify_s for reply in replies) / n_steps if n_steps else None,
        n_identical=sum(reply.token_ids == other.token_ids for reply, other in zip(replies, plain, strict=True)),
    )


def print_sweep(rows: Sequence[Row], n_prompts: int, *, has_json: bool) -> None:
    """The table, with the best fixed setting and the tuner's named below."""
    best = max((row for row in rows if row.name != "auto"), key=lambda row: row.decode_tps or 0.0)
    auto = rows[-1]
    if has_json:
        console.write_json({"rows": [asdict(row) for row in rows], "best_fixed": best.name})
        return
    table = [("setting", "tok/s", "speed-up", "AL", "drafted/step", "draft ms", "verify ms", "same text")]
    table += [
        (
            row.name,
            _number(row.decode_tps, 1),
            _number(row.speed_up, 2),
            _number(row.acceptance_length, 2),
            _number(row.drafted_per_step, 1),
            _number(row.draft_ms, 2),
            _number(row.verify_ms, 2),
            f"{row.n_identical} of {n_prompts}",
        )
        for row in rows
    ]
    share = (auto.decode_tps or 0.0) / best.decode_tps if best.decode_tps else 0.0
    console.write(console.table(table) + f"\nBest fixed setting: {best.name}. Auto reaches {share:.2f} of it.\n")


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
