"""A request on its way through PFlash: whether it may be shortened, by what, and what becomes of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from dflash_desktop.base.errors import AppError
from dflash_desktop.binding.failures import Cancelled, NativeError
from dflash_desktop.engine.events import LoadProgress
from dflash_desktop.engine.pflash.chat import ChatPlan, plan_chat
from dflash_desktop.engine.pflash.compress import compress_again
from dflash_desktop.engine.pflash.options import PflashOptions, PromptCompressed, ScoreProgress
from dflash_desktop.engine.pflash.selection import Curve
from dflash_desktop.engine.prompt import ContextExceeded
from dflash_desktop.engine.requests import ChatPrompt, Prompt

if TYPE_CHECKING:
    from dflash_desktop.engine.pflash.compress import Compression
    from dflash_desktop.engine.pflash.scorer import ScorerSlot
    from dflash_desktop.engine.prompt import PromptReader

log = logging.getLogger(__name__)

T = TypeVar("T")
ShorteningEvent = LoadProgress | ScoreProgress | PromptCompressed


def shorten(
    job_id: int,
    prompt: Prompt,
    options: PflashOptions,
    reader: PromptReader,
    slot: ScorerSlot,
    device: str,
    is_cancelled: Callable[[], bool],
    context_tokens: int | None = None,
) -> Generator[ShorteningEvent, None, Prompt]:
    """The prompt to prefill; events on the way, none at all with mode "off". `device` is the target's, and
    so is `context_tokens`, where it is known.

    A scorer that fails costs nothing but time: the prompt goes in whole, and PromptCompressed says why. Raises AppError
    for options that mean nothing.
    """
    if options.mode == "off":
        return prompt
    curve = _curve(options)
    plan, why_not = _plan(prompt, options, reader, slot, context_tokens)
    if why_not or options.scorer is None or not isinstance(prompt, ChatPrompt):
        yield PromptCompressed(job_id, None, why_not or "No scorer is chosen.")
        return prompt
    name = options.scorer.stem
    chosen = dict(options.chosen)
    known = compress_again(prompt.messages, plan, curve, chosen, slot.views(options.scorer))
    if known is not None:
        if not options.keep_loaded:
            slot.release()
        return (yield from _told(prompt, PromptCompressed(job_id, known, "", name), chosen))
    if prompt.continue_last:  # and nothing is known of it: it began with the prompt in whole
        yield PromptCompressed(job_id, None, "A reply that is continued keeps its prompt.")
        return prompt
    began = time.perf_counter()
    try:
        loading = slot.compressor(options.scorer, options.device or device, plan)
        compressor = yield from _told_loading(job_id, loading)
        loaded_at = time.perf_counter()
        running = compressor.compress(prompt.messages, plan, curve, chosen)
        compression: Compression | None = None
        while compression is None and not is_cancelled():
            try:
                progress = next(running)
            except StopIteration as done:
                compression = done.value
            else:
                elapsed = time.perf_counter() - loaded_at
                yield ScoreProgress(job_id, progress.n_done, progress.n_total, elapsed)
        if compression is None:
            return prompt
    except Cancelled:
        return prompt
    except (AppError, NativeError) as error:
        log.warning("the scorer %s failed: %s", options.scorer.name, error)
        yield PromptCompressed(job_id, None, f"The scorer failed, so the prompt goes in whole. {error}", name)
        return prompt
    finally:
        if not options.keep_loaded:
            slot.release()
    load_s, score_s = loaded_at - began, time.perf_counter() - loaded_at
    return (yield from _told(prompt, PromptCompressed(job_id, compression, "", name, load_s, score_s), chosen))


def _told(
    prompt: ChatPrompt, done: PromptCompressed, chosen: Mapping[int, float]
) -> Generator[ShorteningEvent, None, Prompt]:
    """What to prefill after that. Nothing at all of a text is left only where a person chose that."""
    found = done.compression
    if found is None or (found.n_kept + found.n_recalled == 0 and all(ratio >= 1 for ratio in chosen.values())):
        yield PromptCompressed(done.job_id, None, "No piece of the text is as small as what may stay of it.")
        return prompt
    yield done
    return replace(prompt, messages=found.messages)


def _curve(options: PflashOptions) -> Curve:
    try:
        return Curve.parse(options.curve)
    except ValueError as error:
        raise AppError(f"The keep curve of the prompt compression cannot be used: {error}.") from error


def _plan(
    prompt: Prompt, options: PflashOptions, reader: PromptReader, slot: ScorerSlot, context_tokens: int | None
) -> tuple[ChatPlan, str]:
    """What could be shortened, and why it is not, if so."""
    if not isinstance(prompt, ChatPrompt):
        return ChatPlan(), "Only conversations are shortened; this prompt came as text or tokens."
    count = slot.counter(reader)
    plan = plan_chat(prompt.messages, has_tools=bool(prompt.tools), count=count, whole=options.whole)
    if plan.why_not:
        return plan, plan.why_not
    recalls = plan.asks_anew and options.recalls
    if options.mode != "auto" or plan.n_droppable >= options.threshold_tokens:
        return replace(plan, asks_anew=recalls), ""
    regions = plan.regions
    if _fits(prompt, reader, context_tokens):
        by_choice = {index for index, ratio in options.chosen if ratio < 1}
        regions = tuple(region for region in regions if region.message in by_choice)
    if not regions:
        return plan, (
            f"{plan.n_droppable} tokens could be left out; prompts are shortened from {options.threshold_tokens} on."
        )
    return replace(plan, regions=regions, asks_anew=recalls and options.keep_loaded), ""


def _fits(prompt: ChatPrompt, reader: PromptReader, context_tokens: int | None) -> bool:
    """Whether it can go in whole. A prompt that the template refuses is not too long."""
    try:
        reader.render(prompt, context_tokens=context_tokens)
    except ContextExceeded:
        return False
    except AppError:
        pass
    return True


def _told_loading(job_id: int, loading: Generator[tuple[int, int], None, T]) -> Generator[ShorteningEvent, None, T]:
    while True:
        try:
            n_done, n_total = next(loading)
        except StopIteration as done:
            value: T = done.value
            return value
        yield LoadProgress(job_id, "scorer", n_done, n_total)
