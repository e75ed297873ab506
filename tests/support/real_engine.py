"""The lane over the real library: load a pair, ask for a reply, wait for its end."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, TypedDict, Unpack

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
    return listener.wait_for_end()


def load_files(engine: Engine, target: Path, draft: Path | None = None, *, context: int = 512) -> PairInfo:
    """Load with one thread: the models are tiny, and threads that wait for each other are slow on a busy machine."""
    loaded = try_load(engine, target, draft, LoadOptions(context_tokens=context, n_threads=1))
    assert isinstance(loaded, PairLoaded), loaded
    return loaded.pair


class Asked(TypedDict, total=False):
    """What a test may say of a reply; the rest is as `Generate` has it."""

    mode: DraftMode
    max_tokens: int
    budget: int
    temperature: float
    seed: int
    stop: tuple[str, ...]
    reuse_prefix: bool


def try_ask(engine: Engine, prompt: Prompt | str, **asked: Unpack[Asked]) -> tuple[Event, Listener]:
    """One reply; a string is a user's message."""
    listener = Listener()
    engine.submit(
        Generate(
            ChatPrompt([{"role": "user", "content": prompt}]) if isinstance(prompt, str) else prompt,
            listener,
            sampling=Sampling(temperature=asked.get("temperature", 0.0), seed=asked.get("seed", 0)),
            draft=DraftOptions(mode=asked.get("mode", "auto"), tree_budget=asked.get("budget", 0)),
            max_tokens=asked.get("max_tokens", 0),
            stop=asked.get("stop", ()),
            reuse_prefix=asked.get("reuse_prefix", True),
        )
    )
    return listener.wait_for_end(), listener


def ask_for(engine: Engine, prompt: Prompt | str, **asked: Unpack[Asked]) -> GenerationDone:
    """The same, of a reply that has to come to its end."""
    done, _ = try_ask(engine, prompt, **asked)
    assert isinstance(done, GenerationDone), done
    return done
