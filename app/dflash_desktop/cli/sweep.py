"""`dflash-desktop bench --sweep`: fixed draft settings side by side, and what the tuner makes of the same prompts."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from dflash_desktop.cli import console
from dflash_desktop.engine import metrics
from dflash_desktop.engine.requests import DraftOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dflash_desktop.engine.events import GenerationDone, StepDone

PLAIN, AUTO = "plain", "auto"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table."""

    name: str
    draft: DraftOptions


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply, and how much of its time went into measuring and trying instead of the best known choice."""

    done: GenerationDone
    explored_s: float = 0.0


@dataclass(slots=True)
class Explored:
    """Adds up what exploring cost: the steps that try a size or a draft, beyond the same tokens decoded plainly."""

    seconds: float = 0.0

    def watch(self, step: StepDone) -> None:
        """Count one step."""
        if step.reason in ("probe", "measure") and step.plain_us > 0:
            spent_us = step.draft_us + step.verify_us + step.commit_us + step.host_us
            self.seconds += max(0.0, spent_us - step.n_committed * step.plain_us) / 1e6


@dataclass(frozen=True, slots=True)
class Row:
    """A setting's figures over all prompts of a kind; times per step, in milliseconds."""

    name: str
    decode_tps: float | None  # tokens over seconds of all prompts together; median of the rounds
    speed_up: float | None  # the same over plain decoding's of the same round; median of the rounds
    acceptance_length: float | None  # over all steps
    drafted_per_step: float | None
    draft_ms: float | None
    verify_ms: float | None
    explored_share: float | None  # of the decoding time; fixed settings explore nothing
    n_identical: int  # replies equal to plain decoding's
    n_replies: int


@dataclass(frozen=True, slots=True)
class Sweep:
    """What one kind of prompts gave."""

    rows: list[Row]
    best_fixed: str
    auto_of_best: float | None  # the tuner's speed over the best fixed setting's; median of the rounds
    auto_of_plain: float | None


@dataclass(slots=True)
class _Rounds:
    """The answers of one setting, round by round."""

    answers: list[list[Answer]] = field(default_factory=list)

    def rates(self) -> list[float | None]:
        """Tokens per second of each round, all prompts together."""
        return [_rate([answer.done for answer in answers]) for answers in self.answers]


def settings(block_size: int, budgets: Sequence[int]) -> list[Setting]:
    """Plain decoding first: the others are compared with it."""
    return [
        Setting(PLAIN, DraftOptions("off")),
        Setting("chain", DraftOptions("chain", block_size=block_size)),
        *(Setting(f"tree {budget}", DraftOptions("tree", budget, block_size)) for budget in budgets),
        Setting(AUTO, DraftOptions("auto", block_size=block_size)),
    ]


def run_sweep(
    prompts: Sequence[str],
    chosen: Sequence[Setting],
    reply: Callable[[str, DraftOptions], Answer],
    n_rounds: int = 1,
) -> Sweep:
    """Answer every prompt under every setting, in turn, so that a machine that drifts favours none.

    `reply` answers one prompt. The order turns by one setting per prompt and round.
    """
    done = {setting.name: _Rounds() for setting in chosen}
    for number in range(n_rounds):
        for rounds in done.values():
            rounds.answers.append([])
        for index, prompt in enumerate(prompts):
            first = (number + index) % len(chosen)
            for setting in [*chosen[first:], *chosen[:first]]:
                done[setting.name].answers[-1].append(reply(prompt, setting.draft))
    return _sweep(done)


def _sweep(done: Mapping[str, _Rounds]) -> Sweep:
    rates = {name: rounds.rates() for name, rounds in done.items()}
    rows = [_row(name, rounds, done[PLAIN], rates[name], rates[PLAIN]) for name, rounds in done.items()]
    best = max((row for row in rows if row.name != AUTO), key=lambda row: row.decode_tps or 0.0).name
    return Sweep(rows, best, _ratio(rates[AUTO], rates[best]), _ratio(rates[AUTO], rates[PLAIN]))


def _row(
    name: str, rounds: _Rounds, plain: _Rounds, rates: Sequence[float | None], plain_rates: Sequence[float | None]
) -> Row:
    answers = [answer for answers in rounds.answers for answer in answers]
    replies = [answer.done for answer in answers]
    others = [answer.done for answers in plain.answers for answer in answers]
    n_steps = sum(reply.n_steps for reply in replies)
    seconds = sum(reply.decode_s for reply in replies)
    return Row(
        name=name,
        decode_tps=_median(rates),
        speed_up=_ratio(rates, plain_rates),
        acceptance_length=sum(reply.n_committed for reply in replies) / n_steps if n_steps else None,
        drafted_per_step=sum(reply.n_drafted for reply in replies) / n_steps if n_steps else None,
        draft_ms=1e3 * sum(reply.draft_s for reply in replies) / n_steps if n_steps else None,
        verify_ms=1e3 * sum(reply.verify_s for reply in replies) / n_steps if n_steps else None,
        explored_share=sum(answer.explored_s for answer in answers) / seconds if seconds > metrics.SHORTEST_S else None,
        n_identical=sum(reply.token_ids == other.token_ids for reply, other in zip(replies, others, strict=True)),
        n_replies=len(replies),
    )


def _rate(replies: Sequence[GenerationDone]) -> float | None:
    """Tokens after the first step of each reply, over the seconds that they took."""
    seconds = sum(reply.decode_s for reply in replies)
    n_tokens = sum(reply.n_committed - reply.n_first_committed for reply in replies)
    return n_tokens / seconds if n_tokens > 0 and seconds > metrics.SHORTEST_S else None


def _ratio(rates: Sequence[float | None], bases: Sequence[float | None]) -> float | None:
    return _median([rate / base if rate and base else None for rate, base in zip(rates, bases, strict=True)])


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def print_sweeps(sweeps: Mapping[str, Sweep], *, has_json: bool) -> None:
    """The tables, one per kind of prompts, with the best fixed setting and the tuner's below."""
    if has_json:
        console.write_json({kind: asdict(sweep) for kind, sweep in sweeps.items()})
        return
    for kind, sweep in sweeps.items():
        console.write(f"{kind}\n{_table(sweep)}\n{_verdict(sweep)}\n\n")


def _table(sweep: Sweep) -> str:
    rows = [("setting", "tok/s", "speed-up", "AL", "drafted/step", "draft ms", "verify ms", "explored", "same text")]
    rows += [
        (
            row.name,
            _number(row.decode_tps, 1),
            _number(row.speed_up, 3),
            _number(row.acceptance_length, 2),
            _number(row.drafted_per_step, 1),
            _number(row.draft_ms, 2),
            _number(row.verify_ms, 2),
            f"{100 * row.explored_share:.1f} %" if row.name == AUTO and row.explored_share is not None else "-",
            f"{row.n_identical} of {row.n_replies}",
        )
        for row in sweep.rows
    ]
    return console.table(rows)


def _verdict(sweep: Sweep) -> str:
    return (
        f"Best fixed setting: {sweep.best_fixed}. Auto reaches {_number(sweep.auto_of_best, 3)} of it "
        f"and {_number(sweep.auto_of_plain, 3)} of plain decoding."
    )


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
