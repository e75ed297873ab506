"""Small model files for tests: scripted ones, whose greedy reply is chosen piece by piece, and plain vocabularies.

A scripted model is one llama layer whose weights are zero, so the one-hot embedding of the last token passes through,
and an output matrix that maps each token to its successor. The reply walks along the pieces and then emits the end
token. Pieces may be half characters, tags or invalid bytes; each must be unique and at least two bytes long. The reply
starts after a newline, which ends the generation prompt. The successor depends on the last token only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np

from dflash_desktop.engine.vocabulary import TokenType, byte_alphabet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
START, END, PAD = 256, 257, 258  # ids of <|im_start|>, <|im_end|>, <|pad|>
FIRST_PIECE = 260

_SPELLING = {byte: char for char, byte in byte_alphabet().items()}


def spell(raw: bytes) -> str:
    """Bytes as a byte-level vocabulary writes them."""
    return "".join(_SPELLING[byte] for byte in raw)


@dataclass
class Words:
    """The vocabulary part of a model file."""

    tokens: list[str]
    types: list[int]
    merges: list[str] | None = None
    scores: list[float] | None = None
    model: str = "gpt2"
    pre: str | None = "gpt-2"
    template: str | None = CHATML
    bos: int | None = PAD
    eos: int | None = END
    extra: Mapping[str, Any] = field(default_factory=dict)  # further tokenizer.ggml.* keys


def scripted_words(pieces: Sequence[bytes]) -> Words:
    """256 bytes, ChatML's tokens, and the pieces."""
    tokens = [spell(bytes([byte])) for byte in range(256)] + ["<|im_start|>", "<|im_end|>", "<|pad|>", spell(b"  ")]
    types = [int(TokenType.NORMAL)] * 256 + [int(TokenType.CONTROL)] * 3 + [int(TokenType.NORMAL)]
    assert all(len(piece) > 1 for piece in pieces)
    tokens += [spell(piece) for piece in pieces]
    assert len(set(tokens)) == len(tokens), "a piece occurs twice"
    return Words(tokens, types + [int(TokenType.NORMAL)] * len(pieces), merges=["Ġ Ġ"])


def write_scripted(
    path: Path, pieces: Sequence[bytes], *, context: int = 512, is_endless: bool = False, words: Words | None = None
) -> Path:
    """Write a model that replies with `pieces`; `is_endless`: again and again."""
    words = words or scripted_words(pieces)
    n_tokens = len(words.tokens)
    successors = {FIRST_PIECE + index: FIRST_PIECE + index + 1 for index in range(len(pieces) - 1)}
    successors[10] = FIRST_PIECE
    if is_endless:
        successors[FIRST_PIECE + len(pieces) - 1] = FIRST_PIECE
    width = -(-n_tokens // 32) * 32
    embedding = np.zeros((n_tokens, width), np.float32)
    embedding[range(n_tokens), range(n_tokens)] = 1
    head = np.zeros((n_tokens, width), np.float32)
    for token in range(n_tokens):
        head[successors.get(token, END), token] = 1
    return _write(path, words, embedding, head, context=context)


def write_vocabulary(path: Path, words: Words, *, context: int = 512) -> Path:
    """Write a model that is only there for its tokenizer: it runs, but says nothing sensible."""
    embedding = np.random.default_rng(1).normal(size=(len(words.tokens), 32)).astype(np.float32)
    return _write(path, words, embedding, embedding, context=context)


def cut(data: bytes, size: int = 2) -> list[bytes]:
    """Cut bytes into unique pieces of at least `size` bytes, wherever characters end."""
    pieces: list[bytes] = []
    at = 0
    while at < len(data):
        length = size
        while data[at : at + length] in pieces and at + length < len(data):
            length += 1
        piece = data[at : at + length]
        at += length
        if pieces and (len(piece) < 2 or piece in pieces):
            pieces[-1] += piece
        else:
            pieces.append(piece)
    assert b"".join(pieces) == data
    return pieces


def change_value(source: Path, copy: Path, key: str, value: int) -> Path:
    """A copy of a model file in which one integer of the metadata is another."""
    copy.write_bytes(source.read_bytes())
    reader = gguf.GGUFReader(copy, "r+")
    field_ = reader.fields[key]
    field_.parts[field_.data[0]][0] = value
    return copy


def _write(
    path: Path,
    words: Words,
    embedding: np.ndarray[Any, Any],
    head: np.ndarray[Any, Any],
    *,
    context: int,
) -> Path:
    n_tokens, width = embedding.shape
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(context)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(32)
    writer.add_head_count(width // 32)
    writer.add_head_count_kv(width // 32)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(32)
    writer.add_vocab_size(n_tokens)
    writer.add_file_type(0)
    _write_words(writer, words)
    one = np.ones(width, np.float32)
    tensors = {"token_embd": embedding, "output_norm": one, "output": head}
    tensors |= {f"blk.0.{name}": np.zeros((width, width), np.float32) for name in ("attn_q", "attn_k", "attn_v")}
    tensors |= {
        "blk.0.attn_output": np.zeros((width, width), np.float32),
        "blk.0.ffn_gate": np.zeros((32, width), np.float32),
        "blk.0.ffn_up": np.zeros((32, width), np.float32),
        "blk.0.ffn_down": np.zeros((width, 32), np.float32),
        "blk.0.attn_norm": one,
        "blk.0.ffn_norm": one,
    }
    for name, values in tensors.items():
        writer.add_tensor(f"{name}.weight", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _write_words(writer: Any, words: Words) -> None:
    writer.add_tokenizer_model(words.model)
    writer.add_token_list(words.tokens)
    writer.add_token_types(words.types)
    if words.pre is not None:
        writer.add_tokenizer_pre(words.pre)
    if words.merges is not None:
        writer.add_token_merges(words.merges)
    if words.scores is not None:
        writer.add_token_scores(words.scores)
    if words.bos is not None:
        writer.add_bos_token_id(words.bos)
    if words.eos is not None:
        writer.add_eos_token_id(words.eos)
    if words.template is not None:
        writer.add_chat_template(words.template)
    for key, value in ({"add_bos_token": False} | dict(words.extra)).items():
        if isinstance(value, bool):
            writer.add_bool(f"tokenizer.ggml.{key}", value)
        else:
            writer.add_uint32(f"tokenizer.ggml.{key}", value)
