"""Targets and the DFlash draft in numpy, written from the formats' description, one row after another where it matters.

Slow and plain on purpose: no cache, no batching tricks, no code in common with the engine. Weights come dequantised
from the same file that the engine reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from native.oracles import model_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    Array = npt.NDArray[Any]


@dataclass(slots=True)
class Weights:
    """Dequantised tensors and the metadata of one file, in the precision that the sums are to have."""

    values: dict[str, Any]
    tensors: dict[str, Array]
    architecture: str
    dtype: type[np.floating[Any]]

    def number(self, key: str, default: float | None = None) -> Any:
        found = self.values.get(f"{self.architecture}.{key}", default)
        assert found is not None, key
        return found

    def __getitem__(self, name: str) -> Array:
        found: Array = self.tensors[name].astype(self.dtype)
        return found

    def has(self, name: str) -> bool:
        return name in self.tensors


def load(path: Path, dtype: type[np.floating[Any]] = np.float32) -> Weights:
    file = model_files.read(path)
    return Weights(file.values, dict(file.floats()), str(file.values["general.architecture"]), dtype)


@dataclass(frozen=True, slots=True)
class Forward:
    outputs: list[Array]  # residual stream after each layer, n x D
    logits: Array  # n x V


def rms(x: Array, weight: Array | None, epsilon: float) -> Array:
    normal = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + epsilon)
    out: Array = normal if weight is None else normal * weight
    return out


def silu(x: Array) -> Array:
    out: Array = x / (1 + np.exp(-x))
    return out


def sigmoid(x: Array) -> Array:
    out: Array = 1 / (1 + np.exp(-x))
    return out


def softmax(x: Array) -> Array:
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    out: Array = raised / raised.sum(axis=-1, keepdims=True)
    return out


def rope(x: Array, positions: Array, base: float, n_rot: int, *, is_neox: bool, factors: Array | None = None) -> Array:
    """Rotate the first n_rot channels of x (n x heads x channels): pairs (i, i + half), or (2i, 2i + 1)."""
    half = n_rot // 2
    speed = base ** (-np.arange(half) / half) / (1 if factors is None else factors)
    angle = np.asarray(positions, np.float64)[:, None] * speed
    cos, sin = (f(angle)[:, None, :].astype(x.dtype) for f in (np.cos, np.sin))
    out = x.copy()
    first = slice(0, half) if is_neox else slice(0, n_rot, 2)
    second = slice(half, n_rot) if is_neox else slice(1, n_rot, 2)
    a, b = x[..., first], x[..., second]
    out[..., first] = a * cos - b * sin
    out[..., second] = a * sin + b * cos
    return out


def attend(q: Array, k: Array, v: Array, visible: Array) -> Array:
    """q: n x H x d; k, v: m x Hkv x d; visible: n x m. Query head h reads key head h // (H / Hkv)."""
    repeat = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, repeat, axis=1), np.repeat(v, repeat, axis=1)
    scores = np.einsum("nhd,mhd->hnm", q, k) / np.sqrt(q.shape[2])
    scores = np.where(visible[None], scores, -np.inf)
    out: Array = np.einsum("hnm,mhd->nhd", softmax(scores), v).reshape(len(q), -1)
    return out


def looking_back(n: int, window: int) -> Array:
    """Which rows each row sees: itself and those before it, with a window the last `window` of them."""
    distance = np.arange(n)[:, None] - np.arange(n)[None]
    seen: Array = (distance >= 0) & (distance < (window or n))
    return seen


def ffn(w: Weights, block: str, h: Array) -> Array:
    gated = silu(h @ w[f"{block}ffn_gate.weight"].T) * (h @ w[f"{block}ffn_up.weight"].T)
    out: Array = gated @ w[f"{block}ffn_down.weight"].T
    return out


def _heads(x: Array, n_heads: int) -> Array:
    return x.reshape(len(x), n_heads, -1)


def _head_logits(w: Weights, x: Array, epsilon: float) -> Array:
    head = w["output.weight"] if w.has("output.weight") else w["token_embd.weight"]
    out: Array = rms(x, w["output_norm.weight"], epsilon) @ head.T
    return out


def dense(w: Weights, ids: Sequence[int], window: int = 0) -> Forward:
    """`llama` and `qwen3`."""
    is_qwen3 = w.architecture == "qwen3"
    n_head, n_kv = int(w.number("attention.head_count")), int(w.number("attention.head_count_kv"))
    epsilon, base = w.number("attention.layer_norm_rms_epsilon"), w.number("rope.freq_base", 10000.0)
    factors = w["rope_freqs.weight"] if w.has("rope_freqs.weight") else None
    x = w["token_embd.weight"][list(ids)]
    positions = np.arange(len(ids))
    causal = looking_back(len(ids), window)
    outputs = []
    for i in range(w.number("block_count")):
        block = f"blk.{i}."
        h = rms(x, w[f"{block}attn_norm.weight"], epsilon)
        q, k, v = (
            _heads(h @ w[f"{block}attn_{part}.weight"].T, n) for part, n in (("q", n_head), ("k", n_kv), ("v", n_kv))
        )
        if is_qwen3:
            q, k = (rms(part, w[f"{block}attn_{name}_norm.weight"], epsilon) for part, name in ((q, "q"), (k, "k")))
        q, k = (rope(part, positions, base, q.shape[2], is_neox=is_qwen3, factors=factors) for part in (q, k))
        x = x + attend(q, k, v, causal) @ w[f"{block}attn_output.weight"].T
        x = x + ffn(w, block, rms(x, w[f"{block}ffn_norm.weight"], epsilon))
        outputs.append(x)
    return Forward(outputs, _head_logits(w, x, epsilon))


def _gated_attention(w: Weights, block: str, h: Array, epsilon: float, window: int) -> Array:
    n_head, n_kv = int(w.number("attention.head_count")), int(w.number("attention.head_count_kv"))
    both = _heads(h @ w[f"{block}attn_q.weight"].T, n_head)
    q, gate = np.split(both, 2, axis=-1)
    k, v = (_heads(h @ w[f"{block}attn_{part}.weight"].T, n_kv) for part in ("k", "v"))
    q = rms(q, w[f"{block}attn_q_norm.weight"], epsilon)
    k = rms(k, w[f"{block}attn_k_norm.weight"], epsilon)
    n_rot, base = int(w.number("rope.dimension_count")), w.number("rope.freq_base")
    q, k = (rope(part, np.arange(len(h)), base, n_rot, is_neox=True) for part in (q, k))
    o = attend(q, k, v, looking_back(len(h), window))
    out: Array = (o * sigmoid(gate.reshape(len(h), -1))) @ w[f"{block}attn_output.weight"].T
    return out


def _delta_net(w: Weights, block: str, h: Array, epsilon: float) -> Array:
    s, h_k, h_v = (int(w.number(f"ssm.{key}")) for key in ("state_size", "group_count", "time_step_rank"))
    mixed = h @ w[f"{block}attn_qkv.weight"].T
    taps = w[f"{block}ssm_conv1d.weight"]  # C x width, the last tap is the current row
    padded = np.concatenate([np.zeros((taps.shape[1] - 1, taps.shape[0]), mixed.dtype), mixed])
    mixed = silu(np.sum([padded[j : j + len(h)] * taps[:, j] for j in range(taps.shape[1])], axis=0))
    q, k, v = np.split(mixed, [s * h_k, 2 * s * h_k], axis=1)
    q, k = (_heads(part, h_k) for part in (q, k))
    q, k = (part / np.sqrt((part * part).sum(axis=-1, keepdims=True) + epsilon) for part in (q, k))
    v = _heads(v, h_v)
    beta = sigmoid(h @ w[f"{block}ssm_beta.weight"].T)
    decay = np.exp(np.logaddexp(0, h @ w[f"{block}ssm_alpha.weight"].T + w[f"{block}ssm_dt.bias"]) * w[f"{block}ssm_a"])
    of = np.arange(h_v) % h_k  # value head -> key head, tiled
    state = np.zeros((h_v, s, s), mixed.dtype)  # key x value
    o = np.empty_like(v)
    for t in range(len(h)):
        state = state * decay[t][:, None, None]
        delta = (v[t] - np.einsum("hk,hkv->hv", k[t][of], state)) * beta[t][:, None]
        state = state + k[t][of][:, :, None] * delta[:, None, :]
        o[t] = np.einsum("hk,hkv->hv", q[t][of] / np.sqrt(s), state)
    y = rms(o, w[f"{block}ssm_norm.weight"], epsilon).reshape(len(h), -1)
    out: Array = (y * silu(h @ w[f"{block}attn_gate.weight"].T)) @ w[f"{block}ssm_out.weight"].T
    return out


def hybrid(w: Weights, ids: Sequence[int], window: int = 0) -> Forward:
    """`qwen35`."""
    epsilon = w.number("attention.layer_norm_rms_epsilon")
    x = w["token_embd.weight"][list(ids)]
    outputs = []
    for i in range(w.number("block_count")):
        block = f"blk.{i}."
        h = rms(x, w[f"{block}attn_norm.weight"], epsilon)
        is_recurrent = w.has(f"{block}ssm_a")
        x = x + (_delta_net(w, block, h, epsilon) if is_recurrent else _gated_attention(w, block, h, epsilon, window))
        x = x + ffn(w, block, rms(x, w[f"{block}post_attention_norm.weight"], epsilon))
        outputs.append(x)
    return Forward(outputs, _head_logits(w, x, epsilon))


def target(w: Weights, ids: Sequence[int], window: int = 0) -> Forward:
    """`window`: positions that attention layers look back over, a row's own included; 0: all."""
    return hybrid(w, ids, window) if w.architecture == "qwen35" else dense(w, ids, window)


def draft_block(draft: Weights, of: Weights, context: Forward, root: int) -> tuple[Array, Array]:
    """Final hidden rows (block x D) and logits of rows 1.. ((block - 1) x V) for `root` after the context's rows."""
    n = len(context.outputs[0])
    epsilon, base = draft.number("attention.layer_norm_rms_epsilon"), draft.number("rope.freq_base")
    n_head, n_kv = int(draft.number("attention.head_count")), int(draft.number("attention.head_count_kv"))
    # The file counts layer inputs, so its numbers are one more than those of the outputs.
    features = np.concatenate([context.outputs[i - 1] for i in draft.number("target_layers")], axis=1)
    fused = rms(features.astype(draft.dtype) @ draft["fc.weight"].T, draft["enc.output_norm.weight"], epsilon)
    block_size = int(draft.number("block_size"))
    mask = int(draft.values["tokenizer.ggml.mask_token_id"])
    x = of.tensors["token_embd.weight"][[root] + [mask] * (block_size - 1)].astype(draft.dtype)
    positions = np.arange(n, n + block_size)

    def keys(block: str, rows: Array, at: Array) -> Array:
        k = rms(_heads(rows @ draft[f"{block}attn_k.weight"].T, n_kv), draft[f"{block}attn_k_norm.weight"], epsilon)
        return rope(k, at, base, k.shape[2], is_neox=True)

    for i in range(draft.number("block_count")):
        block = f"blk.{i}."
        h = rms(x, draft[f"{block}attn_norm.weight"], epsilon)
        q = rms(_heads(h @ draft[f"{block}attn_q.weight"].T, n_head), draft[f"{block}attn_q_norm.weight"], epsilon)
        q = rope(q, positions, base, q.shape[2], is_neox=True)
        k = np.concatenate([keys(block, fused, np.arange(n)), keys(block, h, positions)])
        v = _heads(np.concatenate([fused, h]) @ draft[f"{block}attn_v.weight"].T, n_kv)
        x = x + attend(q, k, v, np.ones((block_size, n + block_size), bool)) @ draft[f"{block}attn_output.weight"].T
        x = x + ffn(draft, block, rms(x, draft[f"{block}ffn_norm.weight"], epsilon))
    hidden = rms(x, draft["output_norm.weight"], epsilon)
    head = of.tensors["output.weight" if of.has("output.weight") else "token_embd.weight"].astype(draft.dtype)
    return hidden, hidden[1:] @ head.T
