"""Random DFlash drafts of every kind, written in the dialects in which drafts come."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import gguf
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

    Array = npt.NDArray[Any]
    Weights = dict[str, Array]

Kind = Literal["dflash", "dflash2", "dspark"]


@dataclass(frozen=True, kw_only=True)
class DraftSpec:
    """Sizes and options of a draft. The defaults fit qwen35-random-tiny."""

    kind: Kind = "dflash"
    n_embd: int = 64
    n_layers: int = 2
    n_head: int = 4
    n_head_kv: int = 2
    head_dim: int = 32
    n_ff: int = 96
    n_vocab: int = 512
    rope_base: float = 10000.0
    epsilon: float = 1e-6
    block_size: int = 6  # as the file has it
    mask_token: int = 5
    feature_layers: tuple[int, ...] = (0, 1, 2)  # by their outputs
    sliding: tuple[bool, ...] = ()
    window: int = 0
    is_causal: bool | None = None  # None: the file does not say
    # DFlash2
    conv_taps: int = 3
    conv_group: int = 16
    rank: int = 16  # of DSpark's head too
    top_k: int = 8
    # DSpark
    is_anchor_first: bool = True
    confidence: Literal["none", "hidden", "both"] = "both"
    # options of any kind
    n_vocab_draft: int = 0  # reduced vocabulary, with a head of its own
    has_own_embeddings: bool = False
    gate: Literal["none", "head", "channel"] = "none"
    has_feature_norms: bool = False
    is_context_normed: bool = False
    has_sandwich_norms: bool = False
    is_gelu: bool = False
    embedding_scale: float = 1.0
    attention_scale: float = 0.0
    value_scale: float = 1.0
    logit_scale: float = 1.0
    logit_softcap: float = 0.0

    @property
    def has_anchor_row(self) -> bool:
        return self.kind == "dspark" and self.is_anchor_first

    @property
    def n_drafted(self) -> int:
        return self.block_size if self.has_anchor_row else self.block_size - 1


def random_weights(spec: DraftSpec, seed: int = 2) -> Weights:
    """Weights under llama.cpp's names, in numpy order. Norms differ from one: none can be left out unseen."""
    rng = np.random.RandomState(seed)  # its stream is fixed for all times: stored references belong to these weights

    def matrix(n_out: int, n_in: int, gain: float = 1.0) -> Array:
        found: Array = (rng.standard_normal((n_out, n_in)) * gain / np.sqrt(n_in)).astype(np.float32)
        return found

    def norm(n: int) -> Array:
        return (1 + 0.2 * rng.standard_normal(n)).astype(np.float32)

    width, n_out, n_kv = spec.n_embd, spec.n_head * spec.head_dim, spec.n_head_kv * spec.head_dim
    weights = {
        "fc.weight": matrix(width, width * len(spec.feature_layers)),
        "enc.output_norm.weight": norm(width),
        "output_norm.weight": norm(width),
    }
    for i in range(spec.n_layers):
        block = f"blk.{i}."
        weights |= {
            f"{block}attn_norm.weight": norm(width),
            f"{block}attn_q.weight": matrix(n_out, width),
            f"{block}attn_k.weight": matrix(n_kv, width),
            f"{block}attn_v.weight": matrix(n_kv, width),
            f"{block}attn_q_norm.weight": norm(spec.head_dim),
            f"{block}attn_k_norm.weight": norm(spec.head_dim),
            f"{block}attn_output.weight": matrix(width, n_out, 8),
            f"{block}ffn_norm.weight": norm(width),
            f"{block}ffn_gate.weight": matrix(spec.n_ff, width),
            f"{block}ffn_up.weight": matrix(spec.n_ff, width),
            f"{block}ffn_down.weight": matrix(width, spec.n_ff, 8),
        }
        if spec.gate != "none":
            weights[f"{block}attn_gate.weight"] = matrix(spec.n_head if spec.gate == "head" else n_out, width)
        if spec.has_sandwich_norms:
            weights[f"{block}post_attention_norm.weight"] = norm(width)
            weights[f"{block}post_ffw_norm.weight"] = norm(width)
            weights[f"{block}layer_output_scale.weight"] = norm(1)
        if spec.kind == "dflash2":
            for part in ("attn", "ffn"):
                base = rng.standard_normal((2, spec.conv_taps, width)) * 0.3
                base[:, 0] += 1
                weights[f"{block}{part}_conv_base"] = base.astype(np.float32)
                n_kernels = 2 * spec.conv_taps * (width // spec.conv_group)
                weights[f"{block}{part}_conv_proj.weight"] = matrix(n_kernels, width, 0.5)
    if spec.has_feature_norms:
        weights |= {f"dflash.aux_hidden_norm.{i}.weight": norm(width) for i in range(len(spec.feature_layers))}
    if spec.kind == "dflash2":
        weights |= {
            "selector_predecessor.weight": matrix(spec.n_vocab, spec.rank, 2),
            "selector_successor.weight": matrix(spec.n_vocab, spec.rank, 2),
            "selector_hidden.weight": matrix(spec.rank, width),
        }
    n_rows = spec.n_vocab_draft or spec.n_vocab
    if spec.kind == "dspark":
        weights |= {
            "markov_w1.weight": matrix(spec.n_vocab, spec.rank, 4),
            "markov_w2.weight": matrix(n_rows, spec.rank, 4),
        }
        if spec.confidence != "none":
            n_in = width + (spec.rank if spec.confidence == "both" else 0)
            weights |= {"conf_proj.weight": matrix(1, n_in, 2), "conf_proj.bias": np.array([0.25], np.float32)}
    if spec.n_vocab_draft:
        weights["output.weight"] = matrix(n_rows, width, 2)
        weights["d2t"] = np.sort(rng.permutation(spec.n_vocab)[:n_rows]).astype(np.int64)
    if spec.has_own_embeddings:
        weights["token_embd.weight"] = matrix(spec.n_vocab, width, 4)
    return weights


def upstream_keys(spec: DraftSpec) -> dict[str, object]:
    """Metadata as llama.cpp's converter writes it."""
    keys: dict[str, object] = {
        "dflash.block_count": spec.n_layers,
        "dflash.context_length": 2048,
        "dflash.embedding_length": spec.n_embd,
        "dflash.feed_forward_length": spec.n_ff,
        "dflash.attention.head_count": spec.n_head,
        "dflash.attention.head_count_kv": spec.n_head_kv,
        "dflash.attention.key_length": spec.head_dim,
        "dflash.attention.value_length": spec.head_dim,
        "dflash.attention.layer_norm_rms_epsilon": spec.epsilon,
        "dflash.rope.freq_base": spec.rope_base,
        "dflash.block_size": spec.block_size,
        "dflash.target_layers": [layer + 1 for layer in spec.feature_layers],
        "tokenizer.ggml.mask_token_id": spec.mask_token,
    }
    if spec.window:
        keys["dflash.attention.sliding_window"] = spec.window
        keys["dflash.attention.sliding_window_pattern"] = list(spec.sliding)
    if spec.is_causal is not None:
        keys["dflash.attention.causal"] = spec.is_causal
    if spec.kind == "dflash2":
        keys["dflash.conv_kernel_size"] = spec.conv_taps
        keys["dflash.conv_group_size"] = spec.conv_group
        keys["dflash.selector_rank"] = spec.rank
        keys["dflash.selector_top_k"] = spec.top_k
    if spec.kind == "dspark":
        keys["dflash.sample_from_anchor"] = spec.is_anchor_first
        keys["dflash.has_confidence_head"] = spec.confidence != "none"
    for name, value, default in (
        ("embedding_scale", spec.embedding_scale, 1.0),
        ("attention.scale", spec.attention_scale, 0.0),
        ("attention.value_scale", spec.value_scale, 1.0),
        ("logit_scale", spec.logit_scale, 1.0),
        ("final_logit_softcapping", spec.logit_softcap, 0.0),
    ):
        if value != default:
            keys[f"dflash.{name}"] = value
    if spec.is_gelu:
        keys["dflash.hidden_activation"] = "gelu_pytorch_tanh"
    if spec.is_context_normed:
        keys["dflash.context_kv_layer_norm"] = 1
    return keys


_LUCEBOX_KEYS = {
    "block_size": "dflash.block_size",
    "sample_from_anchor": "dflash.sample_from_anchor",
    "has_confidence_head": "dflash.dspark.confidence.enabled",
    "context_kv_layer_norm": "dflash.context_kv_layer_norm",
    "conv_kernel_size": "dflash.dflash2.conv_kernel_size",
    "conv_group_size": "dflash.dflash2.conv_group_size",
    "selector_rank": "dflash.dflash2.selector_rank",
    "selector_top_k": "dflash.dflash2.selector_top_k",
}
_LUCEBOX_TENSORS = {
    "fc.weight": "dflash.fc.weight",
    "enc.output_norm.weight": "dflash.hidden_norm.weight",
    "selector_predecessor.weight": "dflash.selector.pred_cb",
    "selector_successor.weight": "dflash.selector.succ_cb",
    "selector_hidden.weight": "dflash.selector.hproj.weight",
    "markov_w1.weight": "dflash.dspark.markov.w1",
    "markov_w2.weight": "dflash.dspark.markov.w2",
    "conf_proj.weight": "dflash.dspark.confidence.weight",
    "conf_proj.bias": "dflash.dspark.confidence.bias",
}


def lucebox_key(key: str, architecture: str) -> str:
    """Lucebox' name of a key of llama.cpp's (not of the layer list, which counts otherwise)."""
    if key == "tokenizer.ggml.mask_token_id":
        return f"{architecture}.dflash.mask_token_id"
    name = key.removeprefix("dflash.")
    return key if name == key else f"{architecture}.{_LUCEBOX_KEYS.get(name, name)}"


def lucebox_tensor(name: str) -> str:
    """Lucebox' name of a tensor of llama.cpp's."""
    return _LUCEBOX_TENSORS.get(name, name).replace("_conv_base", "_conv.base").replace("_conv_proj", "_conv.proj")


def lucebox_keys(keys: Mapping[str, object], architecture: str) -> dict[str, object]:
    renamed: dict[str, object] = {}
    for key, value in keys.items():
        if key == "dflash.target_layers":
            assert isinstance(value, list)
            renamed[f"{architecture}.dflash.target_layer_ids"] = [layer - 1 for layer in value]
        else:
            renamed[lucebox_key(key, architecture)] = value
    return renamed


def add_keys(writer: gguf.GGUFWriter, keys: Mapping[str, object]) -> None:
    for key, value in keys.items():
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        else:
            assert isinstance(value, list), (key, value)
            writer.add_array(key, value)


def write_gguf(path: Path, architecture: str, keys: Mapping[str, object], tensors: Mapping[str, Array]) -> Path:
    writer = gguf.GGUFWriter(path, architecture)
    add_keys(writer, keys)
    for name, data in tensors.items():
        writer.add_tensor(name, np.ascontiguousarray(data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_upstream(path: Path, spec: DraftSpec, weights: Weights) -> Path:
    """The draft as llama.cpp's converter would write it."""
    return write_gguf(path, "dflash", upstream_keys(spec), weights)


def write_lucebox(path: Path, spec: DraftSpec, weights: Weights, architecture: str = "qwen35-dflash-draft") -> Path:
    """The same draft as Lucebox' converter would."""
    keys = lucebox_keys(upstream_keys(spec), architecture)
    return write_gguf(path, architecture, keys, {lucebox_tensor(name): data for name, data in weights.items()})


def header_bytes(path: Path) -> int:
    """Where the data of a GGUF or safetensors file begin."""
    if path.suffix == ".safetensors":
        return 8 + int(struct.unpack_from("<Q", path.read_bytes())[0])
    return int(min(tensor.data_offset for tensor in gguf.GGUFReader(path).tensors))


_ZLAB_TENSORS = {
    "fc.weight": "fc.weight",
    "enc.output_norm.weight": "hidden_norm.weight",
    "output_norm.weight": "norm.weight",
    "selector_predecessor.weight": "candidate_selector.predecessor_codebook",
    "selector_successor.weight": "candidate_selector.successor_codebook",
    "selector_hidden.weight": "candidate_selector.hidden_projection.weight",
}
_ZLAB_LAYERS = {
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "attn_q_norm.weight": "self_attn.q_norm.weight",
    "attn_k_norm.weight": "self_attn.k_norm.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
    "attn_conv_base": "attention_conv.base_kernel",
    "attn_conv_proj.weight": "attention_conv.kernel_projection.weight",
    "ffn_conv_base": "mlp_conv.base_kernel",
    "ffn_conv_proj.weight": "mlp_conv.kernel_projection.weight",
}


def zlab_tensor(name: str) -> str:
    """z-lab's (Hugging Face) name of a tensor of llama.cpp's."""
    if name.startswith("blk."):
        _, layer, part = name.split(".", 2)
        return f"layers.{layer}.{_ZLAB_LAYERS[part]}"
    return _ZLAB_TENSORS[name]


def zlab_config(spec: DraftSpec, dtype: str = "float32") -> dict[str, object]:
    own: dict[str, object] = {
        "block_size": spec.block_size,
        "mask_token_id": spec.mask_token,
        "target_layer_ids": list(spec.feature_layers),
    }
    if spec.kind == "dflash2":
        own |= {
            "conv_kernel_size": spec.conv_taps,
            "conv_group_size": spec.conv_group,
            "selector_rank": spec.rank,
            "selector_top_k": spec.top_k,
        }
    if spec.logit_scale != 1:
        own["output_multiplier"] = spec.logit_scale
    if spec.logit_softcap:
        own["final_logit_softcapping"] = spec.logit_softcap
    if spec.embedding_scale != 1:
        own["input_embedding_scale"] = spec.embedding_scale
    sliding = spec.sliding or (False,) * spec.n_layers
    config: dict[str, object] = {
        "architectures": ["DFlash2DraftModel" if spec.kind == "dflash2" else "DFlashDraftModel"],
        "model_type": "qwen3",
        "dtype": dtype,
        "vocab_size": spec.n_vocab,
        "hidden_size": spec.n_embd,
        "intermediate_size": spec.n_ff,
        "num_hidden_layers": spec.n_layers,
        "num_attention_heads": spec.n_head,
        "num_key_value_heads": spec.n_head_kv,
        "head_dim": spec.head_dim,
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "rms_norm_eps": spec.epsilon,
        "max_position_embeddings": 2048,
        "rope_theta": spec.rope_base,
        "rope_parameters": {"rope_type": "default", "rope_theta": spec.rope_base},
        "layer_types": ["sliding_attention" if slides else "full_attention" for slides in sliding],
        "use_sliding_window": bool(spec.window),
        "sliding_window": spec.window or None,
        "tie_word_embeddings": False,
        "num_target_layers": 4,
        "dflash_config": own,
    }
    if spec.is_causal is not None:
        config["is_causal"] = spec.is_causal
    return config


_SAFETENSORS_TYPES = {"float32": "F32", "float16": "F16"}


def write_safetensors(path: Path, tensors: Mapping[str, Array]) -> Path:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, data in tensors.items():
        header[name] = {
            "dtype": _SAFETENSORS_TYPES[data.dtype.name],
            "shape": list(data.shape),
            "data_offsets": [offset, offset + data.nbytes],
        }
        offset += data.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data.tobytes() for data in tensors.values()))
    return path


def write_zlab(folder: Path, spec: DraftSpec, weights: Weights, dtype: str = "float32") -> Path:
    """A folder with config.json and model.safetensors; returns the latter."""
    folder.mkdir(parents=True, exist_ok=True)
    config = json.dumps(zlab_config(spec, dtype), indent=1)
    (folder / "config.json").write_text(config + "\n", encoding="utf-8")
    tensors = {zlab_tensor(name): np.ascontiguousarray(data.astype(dtype)) for name, data in weights.items()}
    return write_safetensors(folder / "model.safetensors", tensors)
