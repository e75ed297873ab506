"""Writes safetensors files byte by byte, sound and unsound, and the tensors of a tiny published draft."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Entry:
    """A tensor of the header. `begin` None: behind the one before."""

    shape: tuple[object, ...]
    dtype: str = "BF16"
    begin: int | None = None
    n_bytes: int | None = None


def layer(i: int) -> dict[str, Entry]:
    return {
        f"layers.{i}.{name}": Entry(shape)
        for name, shape in {
            "input_layernorm.weight": (8,),
            "post_attention_layernorm.weight": (8,),
            "self_attn.q_proj.weight": (8, 8),
            "self_attn.k_proj.weight": (4, 8),
            "self_attn.v_proj.weight": (4, 8),
            "self_attn.o_proj.weight": (8, 8),
            "self_attn.q_norm.weight": (4,),
            "self_attn.k_norm.weight": (4,),
            "mlp.gate_proj.weight": (16, 8),
            "mlp.up_proj.weight": (16, 8),
            "mlp.down_proj.weight": (8, 16),
        }.items()
    }


TENSORS = {
    "fc.weight": Entry((8, 24), "F16"),
    "hidden_norm.weight": Entry((8,), "F32"),
    "norm.weight": Entry((8,)),
    **layer(0),
    **layer(1),
}


def pack(tensors: dict[str, Entry], *, header: bytes | None = None) -> bytes:
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end, size = 0, 0
    for name, entry in tensors.items():
        n_bytes = entry.n_bytes
        if n_bytes is None:
            n_bytes = int(np.prod([int(str(n)) for n in entry.shape])) * {"F32": 4, "I64": 8}.get(entry.dtype, 2)
        begin = end if entry.begin is None else entry.begin
        entries[name] = {"dtype": entry.dtype, "shape": list(entry.shape), "data_offsets": [begin, begin + n_bytes]}
        end = begin + n_bytes
        size = max(size, end)
    text = json.dumps(entries).encode() if header is None else header
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(i % 7 for i in range(min(size, 1 << 16)))
