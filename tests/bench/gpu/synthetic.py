"""Model files with the exact shapes, types and metadata of Qwen3.6-27B (Q4_K_M), a DFlash draft for it, and Qwen3-0.6B.

    python -m bench.gpu.synthetic FOLDER [--layers 64] [--seed 1] [--only NAME ...]

The weights are random but sane: quantised blocks of random bits under scales that keep every activation near one, so
that nothing overflows through 64 layers. How fast a step is doesn't depend on what weights say. Nothing that such a
model says means anything: acceptance is measured elsewhere. Files depend on the seed alone. Writing the 18 GB takes as
long as the disk takes.
"""

from __future__ import annotations

import argparse
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

Bytes = npt.NDArray[np.uint8]

F32, Q8_0, Q4_K, Q6_K = 0, 8, 12, 14  # ggml's numbers of its types
BLOCK = {F32: (1, 4), Q8_0: (32, 34), Q4_K: (256, 144), Q6_K: (256, 210)}  # values, bytes
ALIGNMENT = 32
POOL_BYTES = 64 << 20  # random bits are drawn once; tensors start somewhere else in them


@dataclass(frozen=True)
class Shape:
    """Of the target; the defaults are Qwen3.6-27B's."""

    n_layers: int = 64
    n_embd: int = 5120
    n_ff: int = 17408
    n_head: int = 24
    n_head_kv: int = 4
    head_dim: int = 256
    n_rot: int = 64
    n_vocab: int = 248320
    state: int = 128
    n_head_k: int = 16
    n_head_v: int = 48
    context: int = 262144
    interval: int = 4
    # the draft
    draft_layers: int = 5
    draft_heads: int = 32
    draft_heads_kv: int = 8
    draft_head_dim: int = 128
    block: int = 16
    features: tuple[int, ...] = (1, 16, 31, 46, 61)  # 0-based layers whose output is read


@dataclass(frozen=True)
class ScorerShape:
    """Qwen3-0.6B's."""

    n_layers: int = 28
    n_embd: int = 1024
    n_ff: int = 3072
    n_head: int = 16
    n_head_kv: int = 8
    head_dim: int = 128
    n_vocab: int = 151936
    context: int = 40960


@dataclass(frozen=True)
class Tensor:
    name: str
    type: int
    ne: tuple[int, ...]
    center: float = 0  # F32 only: values lie in center +- spread
    spread: float = 0

    @property
    def n_bytes(self) -> int:
        values, size = BLOCK[self.type]
        return int(np.prod(self.ne)) // values * size


def is_more_bits(index: int, n: int) -> bool:
    """Q4_K_M gives more bits to the first and last eighth and to every third in between."""
    return index < n // 8 or index >= 7 * n // 8 or (index - n // 8) % 3 == 2


def norm(name: str, n: int) -> Tensor:
    return Tensor(name, F32, (n,), 1.0, 0.1)


def target_tensors(shape: Shape) -> list[Tensor]:
    d, hd = shape.n_embd, shape.head_dim
    inner = shape.n_head_v * shape.state
    channels = 2 * shape.n_head_k * shape.state + inner
    tensors = [Tensor("token_embd.weight", Q4_K, (d, shape.n_vocab)), norm("output_norm.weight", d)]
    tensors.append(Tensor("output.weight", Q6_K, (d, shape.n_vocab)))
    for i in range(shape.n_layers):
        name = f"blk.{i}."
        wide = Q6_K if is_more_bits(i, shape.n_layers) else Q4_K  # one attn_v or attn_qkv per layer: one counter
        tensors += [norm(name + "attn_norm.weight", d), norm(name + "post_attention_norm.weight", d)]
        tensors += [
            Tensor(name + "ffn_gate.weight", Q4_K, (d, shape.n_ff)),
            Tensor(name + "ffn_up.weight", Q4_K, (d, shape.n_ff)),
            Tensor(name + "ffn_down.weight", wide, (shape.n_ff, d)),
        ]
        if (i + 1) % shape.interval == 0:
            tensors += [
                Tensor(name + "attn_q.weight", Q4_K, (d, 2 * hd * shape.n_head)),
                Tensor(name + "attn_k.weight", Q4_K, (d, hd * shape.n_head_kv)),
                Tensor(name + "attn_v.weight", wide, (d, hd * shape.n_head_kv)),
                Tensor(name + "attn_output.weight", Q4_K, (hd * shape.n_head, d)),
                norm(name + "attn_q_norm.weight", hd),
                norm(name + "attn_k_norm.weight", hd),
            ]
        else:
            tensors += [
                Tensor(name + "attn_qkv.weight", wide, (d, channels)),
                Tensor(name + "attn_gate.weight", Q4_K, (d, inner)),
                Tensor(name + "ssm_conv1d.weight", F32, (4, channels), 0.0, 0.8),
                Tensor(name + "ssm_dt.bias", F32, (shape.n_head_v,), -2.0, 2.0),
                Tensor(name + "ssm_a", F32, (shape.n_head_v,), -2.0, 1.9),
                Tensor(name + "ssm_beta.weight", Q4_K, (d, shape.n_head_v)),
                Tensor(name + "ssm_alpha.weight", Q4_K, (d, shape.n_head_v)),
                norm(name + "ssm_norm.weight", shape.state),
                Tensor(name + "ssm_out.weight", Q4_K, (inner, d)),
            ]
    return tensors


def draft_tensors(shape: Shape, kind: int) -> list[Tensor]:
    d, hd = shape.n_embd, shape.draft_head_dim
    n_q, n_kv = hd * shape.draft_heads, hd * shape.draft_heads_kv
    tensors = [Tensor("fc.weight", kind, (len(shape.features) * d, d))]
    tensors += [norm("enc.output_norm.weight", d), norm("output_norm.weight", d)]
    for i in range(shape.draft_layers):
        name = f"blk.{i}."
        tensors += [norm(name + "attn_norm.weight", d), norm(name + "ffn_norm.weight", d)]
        tensors += [norm(name + "attn_q_norm.weight", hd), norm(name + "attn_k_norm.weight", hd)]
        matrices = {"attn_q": (d, n_q), "attn_k": (d, n_kv), "attn_v": (d, n_kv), "attn_output": (n_q, d)}
        matrices |= {"ffn_gate": (d, shape.n_ff), "ffn_up": (d, shape.n_ff), "ffn_down": (shape.n_ff, d)}
        tensors += [Tensor(f"{name}{part}.weight", kind, ne) for part, ne in matrices.items()]
    return tensors


def scorer_tensors(shape: ScorerShape) -> list[Tensor]:
    d, hd = shape.n_embd, shape.head_dim
    n_q, n_kv = hd * shape.n_head, hd * shape.n_head_kv
    tensors = [Tensor("token_embd.weight", Q8_0, (d, shape.n_vocab)), norm("output_norm.weight", d)]
    for i in range(shape.n_layers):
        name = f"blk.{i}."
        tensors += [norm(name + "attn_norm.weight", d), norm(name + "ffn_norm.weight", d)]
        tensors += [norm(name + "attn_q_norm.weight", hd), norm(name + "attn_k_norm.weight", hd)]
        matrices = {"attn_q": (d, n_q), "attn_k": (d, n_kv), "attn_v": (d, n_kv), "attn_output": (n_q, d)}
        matrices |= {"ffn_gate": (d, shape.n_ff), "ffn_up": (d, shape.n_ff), "ffn_down": (shape.n_ff, d)}
        tensors += [Tensor(f"{name}{part}.weight", Q8_0, ne) for part, ne in matrices.items()]
    return tensors


# ---- metadata


class U32(int):
    """A number that files store as unsigned."""


def tokenizer_keys(n_vocab: int) -> dict[str, Any]:
    """Byte-level tokens, then made-up ones: enough for programs that insist on a tokenizer."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in printable}
    for n, byte in enumerate(b for b in range(256) if b not in letters):
        letters[byte] = chr(256 + n)
    tokens = [letters[byte] for byte in range(256)] + [f"token{i}" for i in range(256, n_vocab)]
    special = n_vocab - 256
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [1] * special + [3] * (n_vocab - special),
        "tokenizer.ggml.merges": ["t o", "to k"],
        "tokenizer.ggml.eos_token_id": U32(special),
        "tokenizer.ggml.padding_token_id": U32(special + 1),
        "tokenizer.ggml.add_bos_token": False,
    }


def target_keys(shape: Shape) -> dict[str, Any]:
    own = {
        "block_count": U32(shape.n_layers),
        "context_length": U32(shape.context),
        "embedding_length": U32(shape.n_embd),
        "feed_forward_length": U32(shape.n_ff),
        "attention.head_count": U32(shape.n_head),
        "attention.head_count_kv": U32(shape.n_head_kv),
        "attention.key_length": U32(shape.head_dim),
        "attention.value_length": U32(shape.head_dim),
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.dimension_count": U32(shape.n_rot),
        "rope.dimension_sections": [11, 11, 10, 0],
        "rope.freq_base": 1e7,
        "ssm.conv_kernel": U32(4),
        "ssm.state_size": U32(shape.state),
        "ssm.group_count": U32(shape.n_head_k),
        "ssm.time_step_rank": U32(shape.n_head_v),
        "ssm.inner_size": U32(shape.n_head_v * shape.state),
        "full_attention_interval": U32(shape.interval),
    }
    keys: dict[str, Any] = {"general.architecture": "qwen35", "general.name": "Synthetic 27B"}
    keys |= {"general.file_type": U32(15), "general.quantization_version": U32(2)}
    return keys | {f"qwen35.{key}": value for key, value in own.items()} | tokenizer_keys(shape.n_vocab)


def draft_keys(shape: Shape, kind: int) -> dict[str, Any]:
    own = {
        "block_count": U32(shape.draft_layers),
        "context_length": U32(shape.context),
        "embedding_length": U32(shape.n_embd),
        "feed_forward_length": U32(shape.n_ff),
        "attention.head_count": U32(shape.draft_heads),
        "attention.head_count_kv": U32(shape.draft_heads_kv),
        "attention.key_length": U32(shape.draft_head_dim),
        "attention.value_length": U32(shape.draft_head_dim),
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.freq_base": 1e7,
        "rope.dimension_sections": [shape.draft_head_dim // 2, 0, 0, 0],
        "block_size": U32(shape.block),
        "target_layers": [layer + 1 for layer in shape.features],
    }
    keys: dict[str, Any] = {"general.architecture": "dflash", "general.name": "Synthetic 27B DFlash"}
    keys |= {"general.file_type": U32(7 if kind == Q8_0 else 15), "general.quantization_version": U32(2)}
    keys |= {f"dflash.{key}": value for key, value in own.items()} | tokenizer_keys(shape.n_vocab)
    return keys | {"tokenizer.ggml.mask_token_id": U32(shape.n_vocab - 8)}


def scorer_keys(shape: ScorerShape) -> dict[str, Any]:
    own = {
        "block_count": U32(shape.n_layers),
        "context_length": U32(shape.context),
        "embedding_length": U32(shape.n_embd),
        "feed_forward_length": U32(shape.n_ff),
        "attention.head_count": U32(shape.n_head),
        "attention.head_count_kv": U32(shape.n_head_kv),
        "attention.key_length": U32(shape.head_dim),
        "attention.value_length": U32(shape.head_dim),
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.freq_base": 1e6,
    }
    keys: dict[str, Any] = {"general.architecture": "qwen3", "general.name": "Synthetic 0.6B"}
    keys |= {"general.file_type": U32(7), "general.quantization_version": U32(2)}
    return keys | {f"qwen3.{key}": value for key, value in own.items()} | tokenizer_keys(shape.n_vocab)


def _text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value: Any) -> bytes:
    """A metadata value: its type's number, then itself."""
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, U32):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    head = struct.pack("<IIQ", 9, 8 if isinstance(value[0], str) else 5, len(value))
    if isinstance(value[0], str):
        return head + b"".join(map(_text, value))
    return head + struct.pack(f"<{len(value)}i", *value)


# ---- data


class Pool:
    """Random bits as blocks of each type and width, made once. Every tensor begins somewhere else in them."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.default_rng(seed).integers(0, 256, POOL_BYTES, np.uint8)
        self._blocks: dict[tuple[int, int], Bytes] = {}

    def blocks(self, kind: int, width: int) -> Bytes:
        key = (kind, width)
        if key not in self._blocks:
            self._blocks[key] = quantised(kind, width, self._bits)
        return self._blocks[key]


def _halves(value: float, n: int) -> Bytes:
    return np.full(n, value, np.float16).view(np.uint8).reshape(n, 2)


def quantised(kind: int, width: int, bits: Bytes) -> Bytes:
    """Blocks whose values have mean 0 and deviation 1/sqrt(width): a product of unit vectors stays near one."""
    deviation = 1 / float(np.sqrt(width))
    size = BLOCK[kind][1]
    n_blocks = len(bits) // size
    blocks: Bytes = np.array(bits[: n_blocks * size]).reshape(n_blocks, size)
    if kind == Q8_0:
        blocks[:, 0:2] = _halves(deviation / 73.9, n_blocks)
    elif kind == Q4_K:  # d * 32 * q - dmin * 32, where q is 0..15
        scale = deviation / (32 * 4.61)
        blocks[:, 0:2], blocks[:, 2:4] = _halves(scale, n_blocks), _halves(7.5 * scale, n_blocks)
        blocks[:, 4:12], blocks[:, 12:16] = 0xA0, 0x00  # all scales and minimums 32
    elif kind == Q6_K:  # d * 16 * (q - 32), where q is 0..63
        blocks[:, 192:208] = 16
        blocks[:, 208:210] = _halves(deviation / (16 * 18.5), n_blocks)
    return blocks


def write_tensor(file: BinaryIO, tensor: Tensor, pool: Pool, seed: int) -> None:
    if tensor.type == F32:
        rng = np.random.default_rng(seed)
        low, high = tensor.center - tensor.spread, tensor.center + tensor.spread
        file.write(rng.uniform(low, high, int(np.prod(tensor.ne))).astype(np.float32).tobytes())
        return
    blocks = pool.blocks(tensor.type, tensor.ne[0])
    left = tensor.n_bytes // BLOCK[tensor.type][1]
    at = seed * 1_000_003 % len(blocks)
    while left:
        n = min(left, len(blocks) - at)
        file.write(blocks[at : at + n].data)
        left -= n
        at = 0


def write_file(path: Path, keys: dict[str, Any], tensors: Sequence[Tensor], seed: int) -> int:
    """Write a GGUF file; its size."""
    pool = Pool(seed)
    header = [struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(keys))]
    header += [_text(key) + _value(value) for key, value in keys.items()]
    at = 0
    for tensor in tensors:
        n_dims = len(tensor.ne)
        header.append(_text(tensor.name) + struct.pack(f"<I{n_dims}QIQ", n_dims, *tensor.ne, tensor.type, at))
        at += -(-tensor.n_bytes // ALIGNMENT) * ALIGNMENT
    head = b"".join(header)
    with path.open("wb") as file:
        file.write(head + b"\0" * (-len(head) % ALIGNMENT))
        for index, tensor in enumerate(tensors):
            write_tensor(file, tensor, pool, seed * 100_000 + index)
            file.write(b"\0" * (-tensor.n_bytes % ALIGNMENT))
    return path.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=64, help="8 at least; fewer make a smaller model")
    parser.add_argument("--vocab", type=int, default=Shape.n_vocab)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", help="files to write, by name without .gguf")
    options = parser.parse_args()
    last = tuple(range(options.layers - len(Shape.features), options.layers))
    features = Shape.features if options.layers > max(Shape.features) else last
    shape = Shape(n_layers=options.layers, n_vocab=options.vocab, features=features)
    options.folder.mkdir(parents=True, exist_ok=True)
    jobs = [
        ("target.gguf", target_keys(shape), target_tensors(shape)),
        ("draft-q8_0.gguf", draft_keys(shape, Q8_0), draft_tensors(shape, Q8_0)),
        ("draft-q4_k.gguf", draft_keys(shape, Q4_K), draft_tensors(shape, Q4_K)),
        ("scorer.gguf", scorer_keys(ScorerShape()), scorer_tensors(ScorerShape())),
    ]
    for name, keys, tensors in jobs:
        if options.only and name.removesuffix(".gguf") not in options.only:
            continue
        start = time.perf_counter()
        size = write_file(options.folder / name, keys, tensors, options.seed)
        print(f"{name}: {size / 1e9:.2f} GB in {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
