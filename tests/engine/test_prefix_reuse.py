"""Prefix reuse through the lane: agents in turn on a hybrid pair, and what loads and requests say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.events import GenerationDone, PairLoaded, PromptReady
from dflash_desktop.engine.requests import ChatPrompt, DraftMode, LoadOptions
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.real_engine import running_engine, try_ask, try_load

if TYPE_CHECKING:
    from collections.abc import Iterator

SYSTEM = "You are an agent that reads files and says what they hold, in one short sentence. " * 8


@pytest.fixture
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


def load(engine: Engine, **options: object) -> PairLoaded:
    wanted = LoadOptions(context_tokens=1024, n_threads=1, **options)  # type: ignore[arg-type]
    loaded = try_load(engine, QWEN35_MINI, QWEN35_MINI_DRAFT, wanted)
    assert isinstance(loaded, PairLoaded), loaded
    return loaded


def agent(name: str, *more: str) -> ChatPrompt:
    texts = [f"{name}: list the folder {name}. " * 6, *more]
    roles = ("user", "assistant")
    turns = [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)]
    return ChatPrompt([{"role": "system", "content": SYSTEM}, *turns])


def ask(
    engine: Engine, prompt: ChatPrompt, mode: DraftMode, *, reuse_prefix: bool = True
) -> tuple[GenerationDone, PromptReady]:
    budget = 8 if mode == "tree" else 0
    done, listener = try_ask(engine, prompt, mode=mode, budget=budget, max_tokens=12, reuse_prefix=reuse_prefix)
    assert isinstance(done, GenerationDone), done
    return done, next(event for event in listener.events if isinstance(event, PromptReady))


@pytest.mark.parametrize("mode", ["chain", "tree"])
def test_agents_in_turn_read_only_what_is_new(mode: DraftMode, engine: Engine) -> None:
    pair = load(engine).pair
    assert pair.most_prefix_bytes > 0
    first = {name: ask(engine, agent(name), mode)[0] for name in ("red", "blue")}
    for name, said in first.items():
        prompt = agent(name, said.text, "And now?")
        done, ready = ask(engine, prompt, mode)
        assert ready.n_reused_tokens >= said.n_prompt_tokens - 1
        assert 0 < ready.n_restored_tokens <= ready.n_reused_tokens
        assert (done.n_reused_tokens, done.n_restored_tokens) == (ready.n_reused_tokens, ready.n_restored_tokens)
        assert done.prefix_cache is not None
        assert done.prefix_cache.used_bytes <= done.prefix_cache.most_bytes == pair.most_prefix_bytes
    assert done.prefix_cache is not None
    assert done.prefix_cache.n_restores == 2
    cold, ready = ask(engine, prompt, mode, reuse_prefix=False)
    assert ready.n_reused_tokens == 0
    assert cold.text == done.text
    assert cold.n_steps == done.n_steps


def test_the_cache_can_be_switched_off_and_begins_empty_after_a_load(engine: Engine) -> None:
    load(engine)
    for name in ("red", "blue", "red"):
        done, ready = ask(engine, agent(name), "off")
    assert ready.n_restored_tokens > 0
    for options in ({"kv_k": "f16", "kv_v": "f16"}, {"prefix_cache_bytes": 0}):
        pair = load(engine, **options).pair
        done, ready = ask(engine, agent("red"), "off")
        assert ready.n_reused_tokens == 0
        assert done.prefix_cache is not None
        assert done.prefix_cache.n_restores == 0
    assert pair.most_prefix_bytes == 0
    ask(engine, agent("blue"), "off")
    done, ready = ask(engine, agent("red"), "off")
    assert ready.n_restored_tokens == 0
    assert done.prefix_cache is not None
    assert done.prefix_cache.used_bytes == 0
