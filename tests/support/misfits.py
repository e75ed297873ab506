"""Drafts of the right shape that predict nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from native.oracles import model_files
from support.fixtures import QWEN35_MINI_DRAFT

if TYPE_CHECKING:
    from pathlib import Path


def misfit_draft(path: Path) -> Path:
    """A copy of the hybrid pair's draft whose first layer was trained for something else: random numbers."""
    random = np.random.RandomState(4)
    weights = model_files.read(QWEN35_MINI_DRAFT).tensors
    changed = {}
    for name in ("blk.0.attn_output", "blk.1.attn_output", "blk.0.ffn_down", "blk.1.ffn_down"):
        trained = weights[f"{name}.weight"].floats()
        changed[f"{name}.weight"] = (random.standard_normal(trained.shape) * trained.std() * 4).astype(np.float32)
    return model_files.copy(QWEN35_MINI_DRAFT, path, weights=changed)
