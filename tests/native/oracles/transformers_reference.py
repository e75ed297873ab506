"""Logits that transformers computes in F32 from the seeded checkpoints: the stored references, and how to make them.

    cd tests && python -m native.oracles.transformers_reference

writes support/references/transformers.npz anew; needs the extra `oracle`.
"""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from native.oracles.checkpoints import Checkpoint, hf_config, hf_weights

if TYPE_CHECKING:
    import numpy.typing as npt

REFERENCES = Path(__file__).parents[2] / "support" / "references" / "transformers.npz"
N_TOKENS = 75  # longer than a verify, and than Llama 3's length in ROPE_FACTORS

CHECKPOINTS = {
    "qwen35-1x": Checkpoint(kind="qwen35", seed=1, h_k=2, h_v=2, n_rot=8),
    "qwen35-2x": Checkpoint(kind="qwen35", seed=2, h_k=2, h_v=4, n_rot=8),
    "qwen35-3x": Checkpoint(kind="qwen35", seed=3, h_k=2, h_v=6, n_rot=8, is_tied=False),
    "qwen3": Checkpoint(kind="qwen3", seed=4, n_layers=3),
    "llama": Checkpoint(kind="llama", seed=5, n_layers=3, head_dim=16, n_rot=16, is_tied=False),
    "llama-rope-factors": Checkpoint(kind="llama", seed=6, n_layers=3, head_dim=16, n_rot=16, has_rope_factors=True),
}


def token_ids(spec: Checkpoint) -> list[int]:
    return [int(i) for i in np.random.RandomState(spec.seed + 100).randint(0, spec.n_vocab, N_TOKENS)]


def logits(spec: Checkpoint) -> npt.NDArray[np.float32]:
    import torch
    import transformers

    names = {"llama": "Llama", "qwen3": "Qwen3", "qwen35": "Qwen3_5"}
    family = names[spec.kind]
    config_class = getattr(transformers, f"{family}{'Text' if spec.kind == 'qwen35' else ''}Config")
    model: Any = getattr(transformers, f"{family}ForCausalLM")(config_class(**hf_config(spec)))
    found = model.load_state_dict({k: torch.from_numpy(v) for k, v in hf_weights(spec).items()}, strict=False)
    assert not found.unexpected_keys, found
    assert found.missing_keys == (["lm_head.weight"] if spec.is_tied else []), found
    if spec.is_tied:
        model.tie_weights()
    with torch.no_grad():
        rows: npt.NDArray[np.float32] = model.float().eval()(torch.tensor([token_ids(spec)])).logits[0].numpy()
    return rows


def main() -> None:
    REFERENCES.parent.mkdir(parents=True, exist_ok=True)
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("transformers", "torch")]
    arrays: dict[str, Any] = {name: logits(spec) for name, spec in CHECKPOINTS.items()}
    np.savez_compressed(REFERENCES, made_by=np.array(", ".join(versions)), **arrays)
    print({name: float(np.abs(rows).max()) for name, rows in arrays.items()})


if __name__ == "__main__":
    main()
