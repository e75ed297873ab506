"""The lane over the real library: load a pair, ask for a reply, wait for its end."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.events import Event, GenerationDone, PairInfo, PairLoaded
from dflash_desktop.engine.loaded import PairLoader
from dflash_desktop.engine.requests import (
    ChatPrompt,
    DraftMode,
    DraftOptions,
    Generate,
    LoadOptions,
    LoadPair,
    Prompt,
    Sampling,
)
from support.native_library import load_library
from support.scripted_session import Listener

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def running_engine() -> Iterator[Engine]:
    engine = Engine(PairLoader(load_library()))
    engine.start()
    try:
        yield engine
    finally:
        engine.close()


def try_load(
    engine: Engine,
    target: Path,
    draft: Path | None = None,
    options: LoadOptions | None = None,
    listener: Listener | None = None,
) -> Event:
    listener = listener or Listener()
    engine.submit(LoadPair(target, draft, options or LoadOptions(), listener))
    return listener.wait_for_end(timeout_s=60)


def load_files(engine: Engine, target: Path, draft: Path | None = None, *, context: int = 512) -> PairInfo:
    """Load with one thread: the models are tiny, and threads that wait for each other are slow on a busy machine."""
    loaded = try_load(engine, target, draft, LoadOptions(context_tokens=context, n_threads=1))
    assert isinstance(loaded, PairLoaded), loaded
    return loaded.pair


def try_ask(
    engine: Engine,
    prompt: Prompt | str,
    *,
    mode: DraftMode = "auto",
    max_tokens: int = 0,
    budget: int = 0,
    temperature: float = 0.0,
    seed: int = 0,
    stop: tuple[str, ...] = (),
    reuse_prefix: bool = True,
) -> tuple[Event, Listener]:
    """One reply; a string is a user's message."""
    listener = Listener()
    engine.submit(
        Generate(
            ChatPrompt([{"role": "user", "content": prompt}]) if isinstance(prompt, str) else prompt,
            listener,
            sampling=Sampling(temperature=temperature, seed=seed),
            draft=DraftOptions(mode=mode, tree_budget=budget),
            max_tokens=max_tokens,
            stop=stop,
            reuse_prefix=reuse_prefix,
        )
    )
    return listener.wait_for_end(timeout_s=60), listener


def ask_for(
    engine: Engine,
    prompt: Prompt | str,
    *,
    mode: DraftMode = "auto",
    max_tokens: int = 0,
    budget: int = 0,
    temperature: float = 0.0,
    seed: int = 0,
    stop: tuple[str, ...] = (),
    reuse_prefix: bool = True,
) -> GenerationDone:
    done, _ = try_ask(
        engine,
        prompt,
        mode=mode,
        max_tokens=max_tokens,
        budget=budget,
        temperature=temperature,
        seed=seed,
        stop=stop,
        reuse_prefix=reuse_prefix,
    )
    assert isinstance(done, GenerationDone), done
    return done
