"""What other implementations draft, stored for runs without them.

Rewrite with `python -m native.oracles.draft_references` in `tests` (needs the extras `test` and `oracle`).
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from native.oracles import model_files, numpy_models, upstream_drafts
from support.drafts import DraftSpec, random_weights, upstream_keys, write_zlab
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT, QWEN35_MINI_DRAFT_HF, QWEN35_RANDOM_TINY

STORED = Path(__file__).with_suffix(".json")
TINY = QWEN35_RANDOM_TINY / "qwen35-random-tiny-f32.gguf"
N_CONTEXT = 25

ZLAB_SPECS = {
    "dflash": DraftSpec(),
    "dflash, one sliding layer": DraftSpec(sliding=(True, False), window=7),
    "dflash, causal": DraftSpec(is_causal=True),
    "dflash2": DraftSpec(kind="dflash2"),
    "dflash2, sliding, scaled": DraftSpec(
        kind="dflash2",
        sliding=(True, True),
        window=7,
        is_causal=False,
        logit_scale=0.5,
        logit_softcap=10,
        embedding_scale=2,
    ),
}
UPSTREAM_SPECS = {
    "dspark": DraftSpec(kind="dspark", block_size=7),
    "dspark, bonus row": DraftSpec(kind="dspark", block_size=7, is_anchor_first=False),
    "dflash": DraftSpec(block_size=8),
}
P_MIN = 0.5
PROMPTS = (
    "Write a Python function that returns the n-th Fibonacci number.",
    "Write a polite email asking for a refund.",
    "Why is the sky blue?",
)


def tiny_ids() -> list[int]:
    return [int(token) for token in np.load(QWEN35_RANDOM_TINY / "reference.npz")["ids"]]


def tiny_features(layers: tuple[int, ...], n: int) -> list[Any]:
    """Residual streams that transformers computed, n x 64 each. Layers 0 to 2."""
    hidden = np.load(QWEN35_RANDOM_TINY / "reference.npz")["hidden_states"]
    return [hidden[layer + 1][:n] for layer in layers]


def tiny_embeddings() -> Any:
    return model_files.read(TINY).tensors["token_embd.weight"].floats()


def zlab_random(folder: Path) -> dict[str, Any]:
    """z-lab's own code on random drafts: tokens and final hidden rows."""
    from native.oracles.zlab import ZlabDraft

    found = {}
    for number, (name, spec) in enumerate(ZLAB_SPECS.items()):
        write_zlab(folder / str(number), spec, random_weights(spec))
        draft = ZlabDraft(folder / str(number), tiny_embeddings(), tiny_embeddings())
        block = draft.draft(tiny_features(spec.feature_layers, N_CONTEXT), tiny_ids()[N_CONTEXT])
        found[name] = {"tokens": block.tokens, "hidden": np.round(block.hidden.astype(float), 4).tolist()}
    return found


def zlab_trained(texts: list[list[int]], starts: list[int]) -> list[dict[str, Any]]:
    """The same on the trained pair: at every eighth token of the texts, from the given starts on."""
    from native.oracles.zlab import ZlabDraft

    weights = numpy_models.load(QWEN35_MINI)
    embeddings = weights["token_embd.weight"]
    draft = ZlabDraft(QWEN35_MINI_DRAFT_HF, embeddings, embeddings)
    found = []
    for number, (text, start) in enumerate(zip(texts, starts, strict=True)):
        outputs = numpy_models.target(weights, text).outputs
        for n in range(start, len(text) - 1, 8):
            block = draft.draft([outputs[layer][:n] for layer in draft.model.target_layer_ids], text[n])
            margins = [round(margin, 2) for margin in block.margins]
            found.append({"text": number, "n": n, "tokens": block.tokens, "margins": margins})
    return found


def upstream_random(folder: Path, p_min: float = 0) -> dict[str, Any]:
    """Upstream's server on random drafts over qwen35-random-tiny."""
    found = {}
    for number, (name, spec) in enumerate(UPSTREAM_SPECS.items()):
        if p_min > 0 and spec.kind != "dspark":
            continue
        # Upstream insists on it for targets with M-RoPE; it makes plain RoPE over the first position axis.
        keys = upstream_keys(spec) | {"dflash.rope.dimension_sections": [spec.head_dim // 2, 0, 0, 0]}
        path = upstream_drafts.add_tokenizer(TINY, folder / f"{number}.gguf", keys, random_weights(spec))
        kind = "DSPARK" if spec.kind == "dspark" else "DFLASH"
        reply = upstream_drafts.reply(TINY, path, kind, tiny_ids()[:21], 12, n_max=spec.n_drafted, p_min=p_min)
        found[name] = {
            "tokens": reply.tokens,
            "drafts": [[draft.n_before, draft.root, draft.tokens, draft.n_offered] for draft in reply.drafts],
        }
    return found


def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8"))
    return found


def _texts() -> tuple[list[list[int]], list[int]]:
    """Prompts with the target's own greedy replies, and where the replies begin."""
    from native.oracles.prompts import chat_ids
    from native.oracles.rig import Rig

    texts, starts = [], []
    with Rig(QWEN35_MINI, QWEN35_MINI_DRAFT, max_nodes=7) as rig:
        for prompt in PROMPTS:
            rig.reset()
            ids = chat_ids(prompt)
            starts.append(len(ids))
            texts.append(ids + rig.generate(ids, max_tokens=60, draft_mode=3).tokens)
    return texts, starts


def _main() -> None:
    texts, starts = _texts()
    with tempfile.TemporaryDirectory() as folder:
        found = {
            "zlab_random": zlab_random(Path(folder)),
            "texts": texts,
            "starts": starts,
            "zlab_trained": zlab_trained(texts, starts),
            "upstream_random": upstream_random(Path(folder)),
            "upstream_random_cut": upstream_random(Path(folder), P_MIN),
        }
    parts = (f'"{name}": {json.dumps(value, separators=(",", ":"))}' for name, value in found.items())
    STORED.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    _main()
