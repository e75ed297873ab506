"""How models are called towards clients: ids that no client misreads, the names they answer to, their size in words."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.pairs import built_in_pairs

_PARAMS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*([bm])(?![a-z0-9])", re.IGNORECASE)
_BITS = {
    "F32": 32.0, "F16": 16.0, "BF16": 16.0, "Q8_0": 8.5, "Q6_K": 6.56, "Q5_K_M": 5.69, "Q5_K_S": 5.54, "Q5_0": 5.54,
    "Q5_1": 6.0, "Q4_K_M": 4.85, "Q4_K_S": 4.58, "Q4_0": 4.55, "Q4_1": 5.0, "IQ4_XS": 4.25, "IQ4_NL": 4.5,
    "Q3_K_M": 3.89, "Q3_K_S": 3.44, "Q2_K": 3.0,
}  # fmt: skip
_ALWAYS = frozenset({"", "default", "local-model", "local"})  # whatever is loaded


def title_of(name: str, target: Path) -> str:
    """What people call a target: the name in its file, except where we know a better one for that file."""
    return _built_in_titles().get(target.name, name)


@cache
def _built_in_titles() -> dict[str, str]:
    try:
        return {pair.target.name: pair.name for pair in built_in_pairs()}
    except AppError:
        return {}


def model_id(name: str) -> str:
    """Of a target's name: lower case, stable, free of the parts that make clients switch to another request form."""
    text = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._") or "model"
    text = re.sub(r"o(?=[134])", "o-", text)  # Roo takes anything with o1, o3, o4 for a reasoning model
    return text.replace("gpt-5", "gpt.5").replace("deepseek-reasoner", "deepseek.reasoner")


def answer_names(own_id: str, name: str, target: Path, quantization: str) -> frozenset[str]:
    """Everything that a client may call the model: its id with and without additions, its file, its folder."""
    names = {own_id, f"{own_id}-dflash", name, target.name, target.stem, target.parent.name}
    if quantization:
        names.add(f"{own_id}-{quantization}")
    return frozenset(each.lower() for each in names if each)


def means_any(asked: str) -> bool:
    """Whether a name stands for whatever is loaded."""
    return folded(asked) in _ALWAYS


def folded(asked: str) -> str:
    return asked.strip().lower().removesuffix(":latest")


def params_of(*names: str) -> tuple[int, str]:
    """The number of parameters that a name tells, and how it tells it; (0, "") when none does."""
    for name in names:
        match = _PARAMS.search(name.replace("_", " ").replace("-", " "))
        if match is not None:
            scale = 1_000_000_000 if match.group(2).lower() == "b" else 1_000_000
            return int(float(match.group(1)) * scale), f"{match.group(1)}{match.group(2).upper()}"
    return 0, ""


def bits_per_weight(quantization: str, size_bytes: int, n_params: int) -> float:
    known = _BITS.get(quantization.upper())
    if known is not None or not n_params:
        return known or 0.0
    return round(size_bytes * 8 / n_params, 2)
