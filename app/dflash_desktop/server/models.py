"""The loaded pair as clients see it: its id, the names it answers to, its sizes. No path leaves this file."""

from __future__ import annotations

import re
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
from dflash_desktop.server.errors import not_loaded, unknown_model
from dflash_desktop.server.ports import PromptReader

_PARAMS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*([bm])(?![a-z0-9])", re.IGNORECASE)
_BITS = {
    "F32": 32.0, "F16": 16.0, "BF16": 16.0, "Q8_0": 8.5, "Q6_K": 6.56, "Q5_K_M": 5.69, "Q5_K_S": 5.54, "Q5_0": 5.54,
    "Q5_1": 6.0, "Q4_K_M": 4.85, "Q4_K_S": 4.58, "Q4_0": 4.55, "Q4_1": 5.0, "IQ4_XS": 4.25, "IQ4_NL": 4.5,
    "Q3_K_M": 3.89, "Q3_K_S": 3.44, "Q2_K": 3.0,
}  # fmt: skip
_ALWAYS = frozenset({"", "default", "local-model", "local"})


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
    n_vocab: int
    names: frozenset[str]  # lower case

    @property
    def bits_per_weight(self) -> float:
        known = _BITS.get(self.quantization.upper())
        if known is not None or not self.n_params:
            return known or 0.0
        return round(self.size_bytes * 8 / self.n_params, 2)

    @property
    def max_output_tokens(self) -> int:
        return max(1, self.context_tokens // 2)


def served_model(pair: PairInfo, load_s: float) -> ServedModel:
    name = model_id(pair.target_name, has_draft=pair.draft is not None)
    n_params, params_text = _params(pair.target_name) or _params(pair.target.stem) or (0, "")
    try:
        size_bytes = pair.target.stat().st_size
    except OSError:
        size_bytes = pair.memory.target_weights_bytes
    names = {name, pair.target.name, pair.target.stem, pair.target_name, pair.target.parent.name}
    return ServedModel(
        model_id=name,
        display_name=pair.target_name + (" (DFlash)" if pair.draft is not None else ""),
        architecture=pair.target_architecture,
        quantization=pair.target_quantization,
        draft_id=model_id(pair.draft_name or "draft", has_draft=False) if pair.draft is not None else None,
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
        n_vocab=pair.n_vocab,
        names=frozenset(each.lower() for each in names if each),
    )


def model_id(name: str, *, has_draft: bool) -> str:
    """Lower case, stable, and free of the parts that make clients switch to another request form."""
    text = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._") or "model"
    text = re.sub(r"o(?=[134])", "o-", text)  # Roo takes anything with o1, o3, o4 for a reasoning model
    text = text.replace("gpt-5", "gpt.5").replace("deepseek-reasoner", "deepseek.reasoner")
    return f"{text}-dflash" if has_draft and "dflash" not in text else text


def _params(name: str) -> tuple[int, str] | None:
    match = _PARAMS.search(name.replace("_", " ").replace("-", " "))
    if match is None:
        return None
    scale = 1_000_000_000 if match.group(2).lower() == "b" else 1_000_000
    return int(float(match.group(1)) * scale), f"{match.group(1)}{match.group(2).upper()}"


class ModelState:
    """What is loaded, as the engine's events told. Written by the lane's thread, read by the server's."""

    def __init__(self) -> None:
        self.served: ServedModel | None = None
        self.pair: PairInfo | None = None
        self.reader: PromptReader | None = None
        self.is_loading = False
        self.progress = 0.0
        self._parts: dict[str, float] = {}

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
                self.pair, self.reader = event.pair, event.reader
                self.served = served_model(event.pair, event.load_s)
                self.is_loading = False
            case PairUnloaded():
                self.served = self.reader = self.pair = None
                self.is_loading = False
            case JobFailed() | JobCancelled():
                if self.is_loading:  # the old pair was freed before the first piece of the new one came
                    self.served = self.reader = self.pair = None
                self.is_loading = False
            case _:
                pass

    def require(self) -> ServedModel:
        """The loaded model; raise ApiError when there is none."""
        served = self.served
        if served is None:
            raise not_loaded(is_loading=self.is_loading)
        return served

    def require_reader(self) -> PromptReader:
        """Template and tokenizer of the loaded target; raise ApiError when there are none."""
        reader = self.reader
        if reader is None:
            raise not_loaded(is_loading=self.is_loading)
        return reader

    def resolve(self, asked: str, *, takes_any_name: bool) -> ServedModel:
        """The loaded model if `asked` means it (client-apis.md 4.1); raise ApiError otherwise."""
        served = self.require()
        if takes_any_name or answers_to(served, asked):
            return served
        raise unknown_model(asked, (served.model_id,))


def answers_to(served: ServedModel, asked: str) -> bool:
    name = asked.strip().lower().removesuffix(":latest")
    return name in _ALWAYS or name in served.names or name.rpartition("/")[2] in served.names
