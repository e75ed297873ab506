"""`dflash-desktop chat`: one answer, or a conversation in the terminal."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

from dflash_desktop.base.errors import BadInput
from dflash_desktop.cli import console
from dflash_desktop.cli.lane import EngineLane, generate, ignore_event
from dflash_desktop.engine import metrics
from dflash_desktop.engine.events import LoadProgress
from dflash_desktop.engine.loops import is_looping
from dflash_desktop.engine.requests import ChatPrompt, DraftOptions, Generate, Prompt, RawPrompt, Sampling

if TYPE_CHECKING:
    import argparse

    from dflash_desktop.engine.events import Event, GenerationDone, PairInfo, StepDone

HELP = "Ctrl-C stops a reply, /clear forgets the conversation, Ctrl-D or /exit leaves."


def check(arguments: argparse.Namespace) -> None:
    """Refuse, before anything is loaded, what makes no sense together."""
    for flag in ("raw", "json"):
        if getattr(arguments, flag) and arguments.prompt is None:
            raise BadInput(f"--{flag} needs a --prompt.")
    if arguments.raw and arguments.system is not None:
        raise BadInput("--raw leaves out the template, so there is no place for a --system message.")
    if arguments.prompt == "" and arguments.raw:
        raise BadInput("A --raw prompt cannot be empty.")


def chat(lane: EngineLane, pair: PairInfo, arguments: argparse.Namespace) -> int:
    """Answer the prompt or hold a conversation; return the exit code."""
    if not arguments.raw and not pair.can_template:
        raise BadInput(f"{pair.target.name} has no chat template. Use --raw with a --prompt to continue a text.")
    if arguments.prompt is not None:
        return _answer(lane, arguments)
    return _converse(lane, pair, arguments)


def watch_load(event: Event) -> None:
    """Show how far a load is, on a terminal only."""
    if isinstance(event, LoadProgress) and sys.stderr.isatty() and event.n_total_bytes:
        percent = 100 * event.n_done_bytes // event.n_total_bytes
        is_last = event.n_done_bytes >= event.n_total_bytes
        sys.stderr.write(f"\rLoading the {event.part}: {percent} %" + ("\r\x1b[K" if is_last else ""))
        sys.stderr.flush()


def figures(done: GenerationDone) -> dict[str, Any]:
    """One reply as --json prints it."""
    return {
        "text": done.text,
        "token_ids": list(done.token_ids),
        "prompt_tokens": done.n_prompt_tokens,
        "steps": done.n_steps,
        "drafted": done.n_drafted,
        "accepted": done.n_accepted,
        "committed": done.n_committed,
        "acceptance_length": metrics.acceptance_length(done),
        "ttft_s": done.ttft_s,
        "prefill_tps": metrics.prefill_tps(done),
        "decode_tps": metrics.decode_tps(done),
        "finish_reason": done.finish_reason,
    }


def _request(prompt: Prompt, arguments: argparse.Namespace) -> Generate:
    return Generate(
        prompt,
        subscriber=ignore_event,
        sampling=Sampling(temperature=arguments.temperature, seed=arguments.seed),
        draft=DraftOptions(
            mode=arguments.draft_mode, tree_budget=arguments.tree_budget, block_size=arguments.block_size or 0
        ),
        max_tokens=arguments.max_tokens or 0,
    )


def _opening(arguments: argparse.Namespace) -> list[dict[str, str]]:
    return [{"role": "system", "content": arguments.system}] if arguments.system is not None else []


def _answer(lane: EngineLane, arguments: argparse.Namespace) -> int:
    prompt: Prompt = (
        RawPrompt(arguments.prompt)
        if arguments.raw
        else ChatPrompt([*_opening(arguments), {"role": "user", "content": arguments.prompt}])
    )
    if arguments.json:
        done = generate(lane, _request(prompt, arguments))
        console.write_json(figures(done))
    else:
        done = generate(lane, _request(prompt, arguments), _show)
        console.write("\n")
        _note_loop(done)
    return console.INTERRUPTED if done.finish_reason == "cancelled" else 0


def _converse(lane: EngineLane, pair: PairInfo, arguments: argparse.Namespace) -> int:
    is_typed = sys.stdin.isatty()
    if is_typed:
        with contextlib.suppress(ImportError):  # Windows has none; its console edits lines itself
            import readline  # noqa: F401  line editing and history for input()
        console.note(f"{pair.target_name}, {_draft_words(pair, arguments)}. {HELP}")
    messages = _opening(arguments)
    while True:
        line = _read_line(is_typed=is_typed)
        if line is None or line.strip() == "/exit":
            return 0
        if line.strip() == "/clear":
            messages = _opening(arguments)
            console.note("The conversation is forgotten.")
            continue
        if not line.strip():
            continue
        messages.append({"role": "user", "content": line})
        try:
            done = generate(lane, _request(ChatPrompt(list(messages)), arguments), _show)
        except BadInput as error:  # such as a context that is full: the person can go on
            messages.pop()
            console.complain(str(error))
            continue
        console.write("\n")
        _note_loop(done)
        messages.append({"role": "assistant", "content": done.text})
        if is_typed:
            console.note(_summary(done, pair, arguments))


def _read_line(*, is_typed: bool) -> str | None:
    """The next line, or None at the end of the input."""
    if not is_typed:
        line = sys.stdin.readline()
        return line.rstrip("\n") if line else None
    while True:
        try:
            return input("> ")
        except EOFError:
            console.note("")
            return None
        except KeyboardInterrupt:
            console.note(f"\n{HELP}")


def _show(step: StepDone) -> None:
    if step.text:
        console.write(step.text)


def _note_loop(done: GenerationDone) -> None:
    if is_looping(done.text):
        console.note("The reply repeats itself: a higher --temperature or another model may help.")


def _draft_words(pair: PairInfo, arguments: argparse.Namespace) -> str:
    if pair.draft is None:
        return "without a draft"
    return f"draft: {arguments.draft_mode}"


def _summary(done: GenerationDone, pair: PairInfo, arguments: argparse.Namespace) -> str:
    parts = [f"{done.n_committed} tokens"]
    for form, figure in (
        ("{:.1f} tok/s", metrics.decode_tps(done)),
        ("first after {:.2f} s", metrics.ttft(done)),
        ("acceptance length {:.2f}", metrics.acceptance_length(done) if pair.draft is not None else None),
    ):
        if figure is not None:
            parts.append(form.format(figure))
    if pair.draft is not None:
        if arguments.draft_mode == "auto" and done.n_plain_steps > done.n_steps // 2:
            parts.append("mostly without the draft, which is slower here")
    reasons = {"length": "stopped at --max-tokens", "context": "the context is full", "cancelled": "stopped by you"}
    if done.finish_reason in reasons:
        parts.append(reasons[done.finish_reason])
    return f"[{', '.join(parts)}]"
