"""The DFlash authors' own code (package `dflash`, on torch) over a checkpoint in their layout."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ZlabBlock:
    """What z-lab's draft does after a context: final hidden rows and the greedily drafted tokens."""

    hidden: Array  # block x D
    tokens: list[int]  # block - 1
    margins: list[float]  # DFlash only: how far the best logit is above the next


class ZlabDraft:
    """A checkpoint folder (config.json and model.safetensors), computed in F32."""

    def __init__(self, folder: Path, embeddings: Array, head: Array) -> None:
        import torch
        from dflash.model import DFlash2DraftModel, DFlashDraftModel
        from safetensors.torch import load_file
        from transformers import Qwen3Config

        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.is_second = config["architectures"] == ["DFlash2DraftModel"]
        self.model = (DFlash2DraftModel if self.is_second else DFlashDraftModel)(Qwen3Config(**config)).float().eval()
        weights = {name: data.float() for name, data in load_file(folder / "model.safetensors").items()}
        for name in ("predecessor_codebook", "successor_codebook"):
            if f"candidate_selector.{name}" in weights:
                weights[f"candidate_selector.{name}.weight"] = weights.pop(f"candidate_selector.{name}")
        self.model.load_state_dict(weights)
        self.torch = torch
        self.embeddings = torch.tensor(embeddings, dtype=torch.float32)
        weight = torch.tensor(head, dtype=torch.float32)
        self.head = lambda hidden: hidden @ weight.T

    def draft(self, features: Sequence[Array], root: int) -> ZlabBlock:
        """`features`: the residual streams after the layers of config.json, n x D each, before `root`."""
        torch, model = self.torch, self.model
        n, block = len(features[0]), model.block_size
        tokens = torch.tensor([[root] + [model.mask_token_id] * (block - 1)])
        scale = float(model.config.dflash_config.get("input_embedding_scale", 1.0))
        with torch.inference_mode():
            hidden = model(
                position_ids=torch.arange(n + block)[None],
                noise_embedding=self.embeddings[tokens] * scale,
                target_hidden=torch.tensor(np.concatenate(features, axis=1), dtype=torch.float32)[None],
            )
            drafted = hidden[:, 1:]
            if self.is_second:
                path = model.propose(drafted, tokens[:, 0], self.head, 0.0)[0][0].tolist()
                return ZlabBlock(hidden[0].numpy(), path, [])
            logits = model.compute_logits(drafted, self.head)[0]
            best = logits.topk(2).values
            return ZlabBlock(hidden[0].numpy(), logits.argmax(-1).tolist(), (best[:, 0] - best[:, 1]).tolist())
