"""Tiny random checkpoints that any machine makes again from their seed: Hugging Face names for transformers, and GGUF.

The layout rules of the conversion (row orders, shifted norms, signs) are checked against a file that upstream's own
converter wrote: see test_parity_transformers.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from native.oracles import model_files

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

Kind = Literal["llama", "qwen3", "qwen35"]


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Sizes of a checkpoint. Decays of the first DeltaNet head lie around -decay[0], of the last around -decay[1]."""

    kind: Kind
    seed: int = 0
    n_embd: int = 64
    n_layers: int = 4
    n_ff: int = 96
    n_vocab: int = 192
    n_head: int = 4
    n_head_kv: int = 2
    head_dim: int = 32
    n_rot: int = 32
    is_tied: bool = True
    rope_base: float = 10000.0
    has_rope_factors: bool = False  # Llama 3
    h_k: int = 2
    h_v: int = 4
    state: int = 32
    decay: tuple[float, float] = (0.05, 4.0)
    logit_scale: float = 1.0  # of the final norm
    epsilon: float = 1e-6
    feature_layers: tuple[int, ...] = field(default=(0, 1, 2))  # of its random draft

    @property
    def channels(self) -> int:
        return (2 * self.h_k + self.h_v) * self.state

    def is_recurrent(self, layer: int) -> bool:
        return self.kind == "qwen35" and layer % 4 != 3


ROPE_FACTORS = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
"""Llama 3's stretching of slow rotations, at a length that tests reach."""


class _Source:
    """Legacy generator: its numbers are frozen for good."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.RandomState(seed)

    def matrix(self, rows: int, columns: int) -> Array:
        return np.asarray(1.5 / np.sqrt(columns) * self.random.standard_normal((rows, columns)), np.float32)

    def vector(self, n: int, centre: float, spread: float = 0.3) -> Array:
        return np.asarray(centre + spread * self.random.standard_normal(n), np.float32)


def hf_weights(spec: Checkpoint) -> dict[str, Array]:
    """The checkpoint as transformers names and arranges it."""
    source = _Source(spec.seed)
    centre = 0.0 if spec.kind == "qwen35" else 1.0  # Qwen3.5 stores norms less one
    d, q_rows, kv_rows = spec.n_embd, spec.n_head * spec.head_dim, spec.n_head_kv * spec.head_dim
    found = {"model.embed_tokens.weight": source.matrix(spec.n_vocab, d) * np.float32(np.sqrt(d) / 1.5)}
    for i in range(spec.n_layers):
        at = f"model.layers.{i}."
        found[f"{at}input_layernorm.weight"] = source.vector(d, centre)
        found[f"{at}post_attention_layernorm.weight"] = source.vector(d, centre)
        for name, rows, columns in (("gate", spec.n_ff, d), ("up", spec.n_ff, d), ("down", d, spec.n_ff)):
            found[f"{at}mlp.{name}_proj.weight"] = source.matrix(rows, columns)
        if spec.is_recurrent(i):
            found |= {f"{at}linear_attn.{name}": values for name, values in _delta_weights(spec, source).items()}
            continue
        at += "self_attn."
        found[f"{at}q_proj.weight"] = source.matrix(q_rows * (2 if spec.kind == "qwen35" else 1), d)
        found[f"{at}k_proj.weight"] = source.matrix(kv_rows, d)
        found[f"{at}v_proj.weight"] = source.matrix(kv_rows, d)
        found[f"{at}o_proj.weight"] = source.matrix(d, q_rows)
        if spec.kind != "llama":
            found[f"{at}q_norm.weight"] = source.vector(spec.head_dim, centre)
            found[f"{at}k_norm.weight"] = source.vector(spec.head_dim, centre)
    found["model.norm.weight"] = (source.vector(d, 1.0) * spec.logit_scale - (1 - centre)).astype(np.float32)
    if not spec.is_tied:
        found["lm_head.weight"] = source.matrix(spec.n_vocab, d)
    return found


def _delta_weights(spec: Checkpoint, source: _Source) -> dict[str, Array]:
    d, inner = spec.n_embd, spec.h_v * spec.state
    return {
        "in_proj_qkv.weight": source.matrix(spec.channels, d),
        "in_proj_z.weight": source.matrix(inner, d),
        "in_proj_b.weight": source.matrix(spec.h_v, d),
        "in_proj_a.weight": source.matrix(spec.h_v, d),
        "conv1d.weight": source.matrix(spec.channels, 4)[:, None, :],
        "dt_bias": source.vector(spec.h_v, 0.5, 0.5),
        "A_log": np.linspace(np.log(spec.decay[0]), np.log(spec.decay[1]), spec.h_v).astype(np.float32),
        "norm.weight": source.vector(spec.state, 1.0),
        "out_proj.weight": source.matrix(d, inner),
    }


def hf_config(spec: Checkpoint) -> dict[str, Any]:
    """Arguments of the transformers config class."""
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": spec.rope_base}
    if spec.has_rope_factors:
        rope |= {"rope_type": "llama3"} | ROPE_FACTORS
    config: dict[str, Any] = {
        "vocab_size": spec.n_vocab, "hidden_size": spec.n_embd, "intermediate_size": spec.n_ff,
        "num_hidden_layers": spec.n_layers, "num_attention_heads": spec.n_head, "head_dim": spec.head_dim,
        "num_key_value_heads": spec.n_head_kv, "rms_norm_eps": spec.epsilon, "max_position_embeddings": 4096,
        "tie_word_embeddings": spec.is_tied, "rope_parameters": rope, "attention_bias": False,
    }  # fmt: skip
    if spec.kind == "qwen35":
        pairs = spec.n_rot // 2
        sections = [pairs - 2 * (pairs // 3), pairs // 3, pairs // 3]
        rope |= {"partial_rotary_factor": spec.n_rot / spec.head_dim, "mrope_section": sections}
        rope["mrope_interleaved"] = True
        config |= {
            "linear_conv_kernel_dim": 4, "linear_key_head_dim": spec.state, "linear_value_head_dim": spec.state,
            "linear_num_key_heads": spec.h_k, "linear_num_value_heads": spec.h_v, "attn_output_gate": True,
            "layer_types": [
                "linear_attention" if spec.is_recurrent(i) else "full_attention" for i in range(spec.n_layers)
            ],
        }  # fmt: skip
    return config


def _tiled(rows: Array, spec: Checkpoint) -> Array:
    """Value heads from grouped (by key head) to tiled order, along the first axis."""
    per = len(rows) // spec.h_v
    heads = rows.reshape(spec.h_k, spec.h_v // spec.h_k, per, *rows.shape[1:])
    return np.ascontiguousarray(heads.swapaxes(0, 1)).reshape(rows.shape)


def _adjacent(rows: Array, n_head: int) -> Array:
    """Rotated halves to adjacent pairs, per head: what the converter does for `llama`."""
    halves = rows.reshape(n_head, 2, -1, rows.shape[1])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(rows.shape)


def gguf_weights(spec: Checkpoint, hf: dict[str, Array]) -> dict[str, Array]:
    """The same weights as a GGUF file names and arranges them."""
    shift = np.float32(1 if spec.kind == "qwen35" else 0)
    found = {
        "token_embd.weight": hf["model.embed_tokens.weight"],
        "output_norm.weight": hf["model.norm.weight"] + shift,
    }
    if not spec.is_tied:
        found["output.weight"] = hf["lm_head.weight"]
    if spec.has_rope_factors:
        found["rope_freqs.weight"] = _rope_factors(spec)
    second_norm = "post_attention_norm" if spec.kind == "qwen35" else "ffn_norm"
    for i in range(spec.n_layers):
        at, to = f"model.layers.{i}.", f"blk.{i}."
        found[f"{to}attn_norm.weight"] = hf[f"{at}input_layernorm.weight"] + shift
        found[f"{to}{second_norm}.weight"] = hf[f"{at}post_attention_layernorm.weight"] + shift
        for name in ("gate", "up", "down"):
            found[f"{to}ffn_{name}.weight"] = hf[f"{at}mlp.{name}_proj.weight"]
        if spec.is_recurrent(i):
            found |= {to + name: values for name, values in _delta_tensors(spec, hf, f"{at}linear_attn.").items()}
            continue
        at += "self_attn."
        for name, to_name, n_head in (("q", "q", spec.n_head), ("k", "k", spec.n_head_kv), ("v", "v", 0)):
            rows = hf[f"{at}{name}_proj.weight"]
            found[f"{to}attn_{to_name}.weight"] = _adjacent(rows, n_head) if n_head and spec.kind == "llama" else rows
        found[f"{to}attn_output.weight"] = hf[f"{at}o_proj.weight"]
        if spec.kind != "llama":
            for name in ("q", "k"):
                found[f"{to}attn_{name}_norm.weight"] = hf[f"{at}{name}_norm.weight"] + shift
    return found


def _delta_tensors(spec: Checkpoint, hf: dict[str, Array], at: str) -> dict[str, Array]:
    keys = 2 * spec.h_k * spec.state
    mixed, conv = hf[f"{at}in_proj_qkv.weight"], hf[f"{at}conv1d.weight"][:, 0, :]
    return {
        "attn_qkv.weight": np.concatenate([mixed[:keys], _tiled(mixed[keys:], spec)]),
        "ssm_conv1d.weight": np.concatenate([conv[:keys], _tiled(conv[keys:], spec)]),
        "attn_gate.weight": _tiled(hf[f"{at}in_proj_z.weight"], spec),
        "ssm_beta.weight": _tiled(hf[f"{at}in_proj_b.weight"], spec),
        "ssm_alpha.weight": _tiled(hf[f"{at}in_proj_a.weight"], spec),
        "ssm_dt.bias": _tiled(hf[f"{at}dt_bias"], spec),
        "ssm_a": -np.exp(_tiled(hf[f"{at}A_log"], spec)),
        "ssm_norm.weight": hf[f"{at}norm.weight"],
        "ssm_out.weight": np.ascontiguousarray(_tiled(hf[f"{at}out_proj.weight"].T.copy(), spec).T),
    }


def _rope_factors(spec: Checkpoint) -> Array:
    wavelength = 2 * np.pi * spec.rope_base ** (np.arange(spec.n_rot // 2) / (spec.n_rot // 2))
    length, low, high = (ROPE_FACTORS[f"{name}"] for name in (
        "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"))  # fmt: skip
    smooth = np.clip((length / wavelength - low) / (high - low), 0, 1)
    return (1 / ((1 - smooth) / ROPE_FACTORS["factor"] + smooth)).astype(np.float32)


def _tokenizer_keys(spec: Checkpoint) -> dict[str, object]:
    return {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": [f"<{i}>" for i in range(spec.n_vocab)]}


def target_keys(spec: Checkpoint) -> dict[str, object]:
    """The metadata of its file."""
    keys: dict[str, object] = {
        "general.architecture": spec.kind,
        "block_count": spec.n_layers,
        "context_length": 4096,
        "embedding_length": spec.n_embd,
        "feed_forward_length": spec.n_ff,
        "attention.head_count": spec.n_head,
        "attention.head_count_kv": spec.n_head_kv,
        "attention.key_length": spec.head_dim,
        "attention.value_length": spec.head_dim,
        "attention.layer_norm_rms_epsilon": spec.epsilon,
        "rope.freq_base": spec.rope_base,
        "rope.dimension_count": spec.n_rot,
    }
    if spec.kind == "qwen35":
        pairs = spec.n_rot // 2
        keys |= {
            "rope.dimension_sections": [pairs - 2 * (pairs // 3), pairs // 3, pairs // 3, 0],
            "ssm.conv_kernel": 4,
            "ssm.state_size": spec.state,
            "ssm.group_count": spec.h_k,
            "ssm.time_step_rank": spec.h_v,
            "ssm.inner_size": spec.h_v * spec.state,
            "full_attention_interval": 4,
        }
    named = {key if key.startswith("general.") else f"{spec.kind}.{key}": value for key, value in keys.items()}
    return named | _tokenizer_keys(spec)


def write_target(spec: Checkpoint, path: Path, extra_keys: dict[str, object] | None = None) -> Path:
    """`extra_keys` join the metadata, or replace what is there."""
    return model_files.create(path, target_keys(spec) | (extra_keys or {}), gguf_weights(spec, hf_weights(spec)))


def write_draft(spec: Checkpoint, path: Path, *, block_size: int = 8) -> Path:
    """A random two-layer DFlash draft that fits."""
    source, d, hd = _Source(spec.seed + 1), spec.n_embd, spec.head_dim
    keys: dict[str, object] = {
        "general.architecture": "dflash", "dflash.block_count": 2, "dflash.context_length": 4096,
        "dflash.embedding_length": d, "dflash.feed_forward_length": spec.n_ff, "dflash.attention.head_count": 2,
        "dflash.attention.head_count_kv": 1, "dflash.attention.key_length": hd, "dflash.attention.value_length": hd,
        "dflash.attention.layer_norm_rms_epsilon": spec.epsilon, "dflash.rope.freq_base": 10000.0,
        "dflash.block_size": block_size, "dflash.target_layers": [i + 1 for i in spec.feature_layers],
        "tokenizer.ggml.mask_token_id": 3,
    }  # fmt: skip
    weights = {
        "fc.weight": source.matrix(d, d * len(spec.feature_layers)),
        "enc.output_norm.weight": source.vector(d, 1.0),
        "output_norm.weight": source.vector(d, 1.0) * np.float32(spec.logit_scale),
    }
    for i in range(2):
        at = f"blk.{i}."
        for name, rows, columns in (
            ("attn_q", 2 * hd, d), ("attn_k", hd, d), ("attn_v", hd, d), ("attn_output", d, 2 * hd),
            ("ffn_gate", spec.n_ff, d), ("ffn_up", spec.n_ff, d), ("ffn_down", d, spec.n_ff),
        ):  # fmt: skip
            weights[f"{at}{name}.weight"] = source.matrix(rows, columns)
        for name, n in (("attn_norm", d), ("ffn_norm", d), ("attn_q_norm", hd), ("attn_k_norm", hd)):
            weights[f"{at}{name}.weight"] = source.vector(n, 1.0)
    return model_files.create(path, keys, weights)
