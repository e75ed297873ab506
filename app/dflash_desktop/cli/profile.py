"""`dflash-desktop bench --profile`: where the time of a step goes on this device, by the rows that it verifies."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from dflash_desktop.base.sizes import memory_text
from dflash_desktop.cli import console
from dflash_desktop.engine.requests import DraftOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dflash_desktop.engine.events import PairInfo, StepDone

ROWS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
"""Of a verify, root included: where kernels of GPUs change, and a curve for CPUs."""

TOKENS = 48
"""That a reply has beyond its largest tree: what its steps are taken from."""


@dataclass(frozen=True, slots=True)
class Line:
    """Medians over the steps of one size, in microseconds."""

    n_rows: int
    n_steps: int
    step_us: float
    draft_us: float
    verify_us: float
    commit_us: float
    host_us: float  # tree, sampling, bookkeeping
    over_plain: float  # this step's time over that of a step of one row


@dataclass(frozen=True, slots=True)
class Profile:
    """The curve, and how fast a plain step reads the weights."""

    device: str
    lines: list[Line]
    weight_bytes: int  # of the target; a plain step reads nearly all of them
    weight_bytes_per_s: float


def profile(pair: PairInfo, run: Callable[[DraftOptions, int, Callable[[StepDone], None]], object]) -> Profile:
    """Measure every size: plain steps, and with a draft trees of one node less than rows.

    `run` decodes under these options to a number of tokens, and tells of each step.
    """
    steps: dict[int, list[StepDone]] = {}
    for n_rows in ROWS if pair.draft is not None else ROWS[:1]:
        found: list[StepDone] = []
        run(DraftOptions("off") if n_rows == 1 else DraftOptions("tree", n_rows - 1), n_rows + TOKENS, found.append)
        # Near the reply's end there is no room for all nodes; a draft may have no more worth a node.
        steps[n_rows] = [step for step in found if step.n_drafted == n_rows - 1]
    lines = curve(steps)
    plain_s = lines[0].verify_us / 1e6
    weight_bytes = pair.memory.target_weights_bytes
    return Profile(pair.device_name, lines, weight_bytes, weight_bytes / plain_s if plain_s > 0 else 0.0)


def curve(steps: dict[int, list[StepDone]]) -> list[Line]:
    """A line per number of rows that had a step; that of one row comes first."""
    plain_us = _median(_step_us(step) for step in steps[1])
    lines = []
    for n_rows, of_size in steps.items():
        if of_size:
            step_us = _median(map(_step_us, of_size))
            line = Line(
                n_rows=n_rows,
                n_steps=len(of_size),
                step_us=step_us,
                draft_us=_median(step.draft_us for step in of_size),
                verify_us=_median(step.verify_us for step in of_size),
                commit_us=_median(step.commit_us for step in of_size),
                host_us=_median(step.host_us for step in of_size),
                over_plain=step_us / plain_us if plain_us > 0 else 0.0,
            )
            lines.append(line)
    return lines


def _step_us(step: StepDone) -> int:
    return step.draft_us + step.verify_us + step.commit_us + step.host_us


def _median(values: Iterable[int]) -> float:
    return float(statistics.median(values))


def print_profile(found: Profile, *, has_json: bool) -> None:
    """The curve as a table, or as JSON."""
    if has_json:
        console.write_json(asdict(found))
        return
    rows = [("rows", "step ms", "over plain", "draft ms", "verify ms", "commit ms", "host ms", "steps")]
    rows += [
        (
            str(line.n_rows),
            _ms(line.step_us),
            f"{line.over_plain:.2f}",
            _ms(line.draft_us),
            _ms(line.verify_us),
            _ms(line.commit_us),
            _ms(line.host_us),
            str(line.n_steps),
        )
        for line in found.lines
    ]
    console.write(
        f"{console.table(rows)}\n"
        f"Medians on {found.device}. A plain step reads the target's weights ({memory_text(found.weight_bytes)}) at "
        f'{found.weight_bytes_per_s / 1e9:.1f} GB/s. Drafting pays where the acceptance length is above "over plain".\n'
    )


def _ms(us: float) -> str:
    return f"{us / 1e3:.2f}"
