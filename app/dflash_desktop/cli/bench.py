"""`dflash-desktop bench`: plain and speculative decoding side by side, on the same prompts, in one run."""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dflash_desktop.base.errors import BadInput
from dflash_desktop.cli import console
from dflash_desktop.cli.lane import EngineLane, generate, ignore_event
from dflash_desktop.cli.profile import print_profile, profile
from dflash_desktop.cli.prompts import KINDS, read_prompts
from dflash_desktop.cli.sweep import Answer, Explored, print_sweeps, run_sweep, settings
from dflash_desktop.engine import metrics
from dflash_desktop.engine.requests import ChatPrompt, DraftOptions, Generate, Prompt, RawPrompt

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

    from dflash_desktop.engine.events import GenerationDone, PairInfo, StepDone

WARM_UP_TOKENS = 8  # enough to touch every page of the weights


@dataclass(frozen=True, slots=True)
class Trial:
    """One prompt, answered both ways; `drafted` is None where there is no draft."""

    prompt: str
    plain: GenerationDone
    drafted: GenerationDone | None

    @property
    def is_identical(self) -> bool:
        """Whether the draft changed nothing of the text; False without one."""
        return self.drafted is not None and self.drafted.token_ids == self.plain.token_ids

    @property
    def speed_up(self) -> float | None:
        """Tokens per second with the draft over without; None where either is too short to time."""
        plain = metrics.decode_tps(self.plain)
        drafted = metrics.decode_tps(self.drafted) if self.drafted is not None else None
        return drafted / plain if plain and drafted else None


def bench(lane: EngineLane, pair: PairInfo, arguments: argparse.Namespace) -> int:
    """Run every prompt both ways and print what came out; return the exit code."""
    plain = DraftOptions("off")
    drafting = DraftOptions(arguments.draft_mode, arguments.tree_budget, arguments.block_size or 0)
    modes = [plain] if pair.draft is None else [plain, drafting]
    prompts = read_prompts(arguments.prompts)
    for mode in modes:
        _run(lane, pair, prompts[0], draft=mode, max_tokens=WARM_UP_TOKENS)
    if arguments.sweep:
        return _sweep(lane, pair, arguments)
    if arguments.profile:
        return _profile(lane, pair, prompts[0], arguments)
    trials = []
    for number, prompt in enumerate(prompts):
        if sys.stderr.isatty():
            console.note(f"{number + 1} of {len(prompts)}: {prompt[:70]}")
        # The order alternates, so that a machine that warms up or slows down favours neither.
        order = modes if number % 2 == 0 else modes[::-1]
        done = {mode: _run(lane, pair, prompt, draft=mode, max_tokens=arguments.max_tokens) for mode in order}
        trials.append(Trial(prompt, done[plain], done[drafting] if pair.draft is not None else None))
    result = summary(pair, trials, arguments)
    if arguments.json:
        console.write_json(result)
    else:
        console.write(report(result))
    return 0


def _sweep(lane: EngineLane, pair: PairInfo, arguments: argparse.Namespace) -> int:
    """Every fixed setting and the tuner, kind by kind; return the exit code."""
    if pair.draft is None:
        raise BadInput("--sweep compares draft settings, and no draft is loaded. Name one with --draft FILE.")

    def answer(prompt: str, draft: DraftOptions) -> Answer:
        explored = Explored()
        done = _run(lane, pair, prompt, draft=draft, max_tokens=arguments.max_tokens, watch=explored.watch)
        return Answer(done, explored.seconds)

    chosen = settings(arguments.block_size or 0, arguments.budgets)
    kinds = {kind: KINDS[kind] for kind in arguments.kinds} or {"prompts": read_prompts(arguments.prompts)}
    sweeps = {}
    for kind, prompts in kinds.items():
        if sys.stderr.isatty():
            console.note(f"{kind}: {len(prompts)} prompts, {len(chosen)} settings")
        sweeps[kind] = run_sweep(prompts, chosen, answer, arguments.rounds)
    print_sweeps(sweeps, has_json=arguments.json)
    return 0


def _profile(lane: EngineLane, pair: PairInfo, prompt: str, arguments: argparse.Namespace) -> int:
    """What steps of every size take, on one prompt; return the exit code."""

    def run(draft: DraftOptions, max_tokens: int, watch: Callable[[StepDone], None]) -> object:
        return _run(lane, pair, prompt, draft=draft, max_tokens=max_tokens, watch=watch, ignore_stop=True)

    print_profile(profile(pair, run), has_json=arguments.json)
    return 0


def summary(pair: PairInfo, trials: list[Trial], arguments: argparse.Namespace) -> dict[str, Any]:
    """Medians over the prompts; the acceptance length is over all steps together."""
    drafted = [trial.drafted for trial in trials if trial.drafted is not None]
    n_steps = sum(done.n_steps for done in drafted)
    return {
        "target": pair.target_name,
        "draft": pair.draft_name,
        "draft_mode": arguments.draft_mode if drafted else None,
        "device": pair.device_name,
        "device_description": pair.device_description,
        "max_tokens": arguments.max_tokens,
        "plain_tps": _median(metrics.decode_tps(trial.plain) for trial in trials),
        "draft_tps": _median(metrics.decode_tps(done) for done in drafted),
        "speed_up": _median(trial.speed_up for trial in trials),
        "acceptance_length": sum(done.n_committed for done in drafted) / n_steps if n_steps else None,
        "is_identical": all(trial.is_identical for trial in trials) if drafted else None,
        "n_identical": sum(trial.is_identical for trial in trials),
        "prompts": [
            {
                "prompt": trial.prompt,
                "tokens": trial.plain.n_committed,
                "plain_tps": metrics.decode_tps(trial.plain),
                "draft_tps": metrics.decode_tps(trial.drafted) if trial.drafted else None,
                "speed_up": trial.speed_up,
                "acceptance_length": metrics.acceptance_length(trial.drafted) if trial.drafted else None,
                "is_identical": trial.is_identical if trial.drafted else None,
            }
            for trial in trials
        ],
    }


def report(result: dict[str, Any]) -> str:
    """The summary as a person reads it."""
    rows = [("tokens", "plain tok/s", "draft tok/s", "speed-up", "AL", "same text", "prompt")]
    for trial in result["prompts"]:
        same = {True: "yes", False: "NO", None: "-"}[trial["is_identical"]]
        rows.append(
            (
                str(trial["tokens"]),
                _number(trial["plain_tps"], 1),
                _number(trial["draft_tps"], 1),
                _number(trial["speed_up"], 2),
                _number(trial["acceptance_length"], 2),
                same,
                trial["prompt"][:60],
            )
        )
    lines = [
        f"Target: {result['target']}. Device: {result['device']} ({result['device_description']}).",
        console.table(rows),
    ]
    plain = _number(result["plain_tps"], 1)
    if result["draft"] is None:
        lines.append(f"Median {plain} tok/s. No draft was loaded, so there is nothing to compare with.")
    else:
        verdict = "drafting pays" if (result["speed_up"] or 0) > 1 else "drafting does not pay here"
        lines.append(
            f"Draft: {result['draft']} ({result['draft_mode']}). Medians: plain {plain} tok/s, "
            f"with the draft {_number(result['draft_tps'], 1)} tok/s, "
            f"speed-up {_number(result['speed_up'], 2)}: {verdict}. "
            f"Acceptance length {_number(result['acceptance_length'], 2)}. "
            f"Same text in {result['n_identical']} of {len(result['prompts'])}."
        )
    return "\n".join(lines) + "\n"


def _run(
    lane: EngineLane,
    pair: PairInfo,
    prompt: str,
    *,
    draft: DraftOptions,
    max_tokens: int,
    watch: Callable[[StepDone], None] = ignore_event,
    ignore_stop: bool = False,
) -> GenerationDone:
    shaped: Prompt = ChatPrompt([{"role": "user", "content": prompt}]) if pair.can_template else RawPrompt(prompt)
    request = Generate(
        shaped, ignore_event, draft=draft, max_tokens=max_tokens, ignore_stop=ignore_stop, reuse_prefix=False
    )  # greedy, and each run prefills the whole prompt
    done = generate(lane, request, watch)
    if done.finish_reason == "cancelled":
        raise KeyboardInterrupt
    return done


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
