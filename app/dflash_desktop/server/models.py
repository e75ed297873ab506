"""The loaded pair as clients see it: its id, the names it answers to, its sizes. No path leaves this file."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

from dflash_desktop.engine.events import (
    Event,
    JobCancelled,
    JobFailed,
    LoadProgress,
    PairInfo,
    PairLoaded,
    PairUnloaded,
)
from dflash_desktop.server.constraint import GrammarRefused, Grammars
from dflash_desktop.server.errors import not_loaded, unknown_model
from dflash_desktop.server.naming import answer_names, bits_per_weight, folded, means_any, model_id, params_of, title_of
from dflash_desktop.server.ports import PromptReader

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """What every listing and every answer says about the loaded pair."""

    model_id: str
    display_name: str
    architecture: str
    quantization: str
    draft_id: str | None
    context_tokens: int
    trained_context_tokens: int
    size_bytes: int
    n_params: int  # 0: unknown
    params_text: str
    loaded_at_s: int
    load_s: float
    file_name: str
    has_tools: bool
    has_thinking: bool
    can_template: bool
    can_constrain: bool
    n_vocab: int
    names: frozenset[str]  # lower case

    @property
    def bits_per_weight(self) -> float:
        return bits_per_weight(self.quantization, self.size_bytes, self.n_params)

    @property
    def max_output_tokens(self) -> int:
        return max(1, self.context_tokens // 2)


def served_id(pair: PairInfo) -> str:
    """The id under which a loaded pair is served."""
    return model_id(title_of(pair.target_name, pair.target))


def served_model(pair: PairInfo, load_s: float) -> ServedModel:
    title, own_id = title_of(pair.target_name, pair.target), served_id(pair)
    n_params, params_text = params_of(pair.target_name, pair.target.stem)
    try:
        size_bytes = pair.target.stat().st_size
    except OSError:
        size_bytes = pair.memory.target_weights_bytes
    return ServedModel(
        model_id=own_id,
        display_name=title + (" (DFlash)" if pair.draft is not None else ""),
        architecture=pair.target_architecture,
        quantization=pair.target_quantization,
        draft_id=model_id(pair.draft_name or "draft") if pair.draft is not None else None,
        context_tokens=pair.context_tokens,
        trained_context_tokens=pair.trained_context_tokens,
        size_bytes=size_bytes,
        n_params=n_params,
        params_text=params_text,
        loaded_at_s=int(time.time()),
        load_s=load_s,
        file_name=pair.target.name,
        has_tools=pair.has_tools,
        has_thinking=pair.has_thinking,
        can_template=pair.can_template,
        can_constrain=pair.can_constrain,
        n_vocab=pair.n_vocab,
        names=answer_names(own_id, pair.target_name, pair.target, pair.target_quantization),
    )


class LoadedModel:
    """A loaded pair with everything that requests need of it. The same object means the same load."""

    def __init__(self, pair: PairInfo, reader: PromptReader | None, load_s: float) -> None:
        self.pair = pair
        self._reader = reader
        self.served = served_model(pair, load_s)
        self._grammars: Grammars | None = None
        self._has_looked = False
        self._lock = threading.Lock()

    @property
    def reader(self) -> PromptReader:
        """Template and tokenizer; raise ApiError when whoever loaded the pair gave none."""
        if self._reader is None:
            raise not_loaded(is_loading=False)
        return self._reader

    def grammars(self) -> Grammars | None:
        """What makes grammars for this model; None where the engine cannot hold a reply to one. Any thread."""
        vocabulary = getattr(self._reader, "tokenizer", None)
        if vocabulary is None or not self.pair.can_constrain:
            return None
        with self._lock:
            if not self._has_looked:
                self._has_looked = True
                try:
                    self._grammars = Grammars(vocabulary, self.pair.stop_tokens)
                except GrammarRefused as refused:
                    log.warning("replies of this model cannot be held to a format: %s", refused)
            return self._grammars


class ModelState:
    """What is loaded, as the engine's events told. Written by the lane's thread, read by the server's."""

    def __init__(self) -> None:
        self.loaded: LoadedModel | None = None
        self.last: PairInfo | None = None  # the last pair that was loaded, also when it is not any more
        self.is_loading = False
        self.progress = 0.0
        self._parts: dict[str, float] = {}

    @property
    def served(self) -> ServedModel | None:
        loaded = self.loaded
        return loaded.served if loaded is not None else None

    @property
    def pair(self) -> PairInfo | None:
        loaded = self.loaded
        return loaded.pair if loaded is not None else None

    def expect_load(self) -> None:
        """A load is about to be asked for: whoever asks meanwhile is told so."""
        self.is_loading = True
        self._parts = {}
        self.progress = 0.0

    def on_engine_event(self, event: Event) -> None:
        """Hand in the events of every load and unload."""
        match event:
            case LoadProgress():
                if not self.is_loading:
                    self._parts = {}
                self.is_loading = True
                self._parts[event.part] = event.n_done_bytes / max(1, event.n_total_bytes)
                # The target comes first and is by far the larger file.
                self.progress = min(1.0, 0.9 * self._parts.get("target", 0) + 0.1 * self._parts.get("draft", 0))
            case PairLoaded():
                self.loaded = LoadedModel(event.pair, event.reader, event.load_s)
                self.last = event.pair
                self.is_loading = False
            case PairUnloaded():
                self.loaded = None
                self.is_loading = False
            case JobFailed() | JobCancelled():
                if self.is_loading:  # the old pair was freed before the first piece of the new one came
                    self.loaded = None
                self.is_loading = False
            case _:
                pass

    def require_loaded(self) -> LoadedModel:
        """The loaded pair; raise ApiError when there is none."""
        loaded = self.loaded
        if loaded is None:
            raise not_loaded(is_loading=self.is_loading)
        return loaded

    def require(self) -> ServedModel:
        return self.require_loaded().served

    def require_reader(self) -> PromptReader:
        return self.require_loaded().reader

    def resolve(self, asked: str, *, takes_any_name: bool) -> LoadedModel:
        """The loaded model if `asked` means it; raise ApiError otherwise."""
        loaded = self.require_loaded()
        if takes_any_name or answers_to(loaded.served, asked):
            return loaded
        raise unknown_model(asked, (loaded.served.model_id,))


def answers_to(served: ServedModel, asked: str) -> bool:
    name = folded(asked)
    return means_any(asked) or name in served.names or name.rpartition("/")[2] in served.names
