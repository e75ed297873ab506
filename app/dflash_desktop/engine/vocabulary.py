"""The vocabulary of a model file: token texts, types and bytes, and the ids that the file names.

Keys and their defaults are those of upstream llama.cpp (`tokenizer.ggml.*`), with two exceptions that its own notes
call for: a missing beginning token means there is none, and token texts known to end a turn count as control tokens
whatever their type says, so that nobody can type them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

from dflash_desktop.base.causes import Cause
from dflash_desktop.base.errors import AppError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflash_desktop.binding.values import MetaValue


class Metadata(Protocol):
    """What is asked of a model file; `NativeFile` fits."""

    def value(self, key: str) -> MetaValue | None: ...


class TokenType(IntEnum):
    """What a token is for: the numbers of `tokenizer.ggml.token_type`."""

    UNDEFINED = 0
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


# Control tokens whatever the file says: a reply or a turn ends with them.
_TURN_ENDS = frozenset({
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
    "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
    "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>",
})  # fmt: skip

# Control tokens that structure a reply: whoever parses thoughts and tool calls must see them, so they have a text.
_VISIBLE_CONTROLS = frozenset({
    "<think>", "</think>", "<|think|>", "[THINK]", "[/THINK]", "<tool_call>", "</tool_call>", "<tool_response>",
    "</tool_response>", "<|tool_call>", "<tool_call|>", "<|channel>", "<channel|>", "<|channel|>", "<|message|>",
    "<|start|>", "<|constrain|>", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "<|python_tag|>", "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>",
})  # fmt: skip

SPACE_MARK = "\u2581"  # SentencePiece writes a space like this

ANOTHER_FILE = "Choose another file of this model."  # the way out where what a file says of its text is no use


def byte_alphabet() -> dict[str, int]:
    """GPT-2's alphabet: a printable character for each of the 256 bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    alphabet = {chr(byte): byte for byte in printable}
    others = [byte for byte in range(256) if byte not in set(printable)]
    return alphabet | {chr(256 + index): byte for index, byte in enumerate(others)}


_ALPHABET = byte_alphabet()


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Everything `tokenizer.ggml.*` says about tokens. `texts[id]` and `types[id]` are of equal length."""

    model: str  # "gpt2": byte-level BPE, "llama": SentencePiece
    texts: list[str]
    types: list[int]
    scores: list[float]  # empty when the file has none
    bos_id: int | None
    eos_id: int | None
    unknown_id: int | None
    named_ids: dict[str, int]  # "bos", "eos", "pad", "unk" ... as far as the file names them

    @property
    def ids(self) -> dict[str, int]:
        """Token text -> id; of equal texts the last one counts."""
        return {text: index for index, text in enumerate(self.texts)}

    @property
    def text_ids(self) -> dict[str, int]:
        """What plain text may become: `ids` without control tokens, which merges could else put together."""
        hidden = (TokenType.CONTROL, TokenType.UNKNOWN)
        pairs = zip(self.texts, self.types, strict=True)
        return {text: index for index, (text, kind) in enumerate(pairs) if text and kind not in hidden}

    def special_ids(self) -> tuple[list[int], list[int]]:
        """(control and unknown tokens, user-defined tokens), which are cut out of a text before all else."""
        controls = [i for i, kind in enumerate(self.types) if kind in (TokenType.CONTROL, TokenType.UNKNOWN)]
        user_defined = [i for i, kind in enumerate(self.types) if kind == TokenType.USER_DEFINED]
        return controls, user_defined

    def token_bytes(self) -> list[bytes]:
        """What each token adds to a reply. Control tokens add nothing, except those that structure it."""
        spell = _sentencepiece_bytes if self.model == "llama" else _byte_level_bytes
        return [spell(text, kind) for text, kind in zip(self.texts, self.types, strict=True)]


def _byte_level_bytes(text: str, kind: int) -> bytes:
    if kind == TokenType.NORMAL:
        try:
            return bytes([_ALPHABET[char] for char in text])
        except KeyError:  # not spelled in the alphabet: it can only mean itself
            return text.encode()
    return _plain_bytes(text, kind)


def _sentencepiece_bytes(text: str, kind: int) -> bytes:
    if kind == TokenType.NORMAL:
        return text.replace(SPACE_MARK, " ").encode()
    if kind == TokenType.BYTE and len(text) == 6 and text.startswith("<0x"):
        try:
            return bytes([int(text[3:5], 16)])
        except ValueError:
            return b""
    return _plain_bytes(text, kind)


def _plain_bytes(text: str, kind: int) -> bytes:
    if kind == TokenType.USER_DEFINED or (kind == TokenType.CONTROL and text in _VISIBLE_CONTROLS):
        return text.encode()
    return b""


def read_vocabulary(metadata: Metadata, file_name: str) -> Vocabulary:
    """Read the vocabulary of a file. Raises AppError naming file and key when something is missing or inconsistent."""
    model = metadata.value("tokenizer.ggml.model")
    if model not in ("gpt2", "llama"):
        raise AppError(
            f"{file_name}: its tokenizer is of kind {model!r} (tokenizer.ggml.model); "
            "this version knows 'gpt2' and 'llama'. Choose another model, or a newer version of the program.",
            cause=Cause("tokenizer_unknown", {"file": file_name, "tokenizer": str(model)}),
        )
    texts = metadata.value("tokenizer.ggml.tokens")
    if not isinstance(texts, list) or not texts or not isinstance(texts[0], str):
        raise AppError(f"{file_name}: it has no token list (tokenizer.ggml.tokens). {ANOTHER_FILE}")
    words: list[str] = [str(text) for text in texts]
    types = _numbers(metadata, "tokenizer.ggml.token_type", len(words), file_name) or [TokenType.NORMAL] * len(words)
    scores = _numbers(metadata, "tokenizer.ggml.scores", len(words), file_name)
    kinds = [
        int(TokenType.CONTROL) if text in _TURN_ENDS and kind != TokenType.UNKNOWN else int(kind)
        for text, kind in zip(words, types, strict=True)
    ]
    named = {}
    for name, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"), ("sep", "seperator")):
        value = metadata.value(f"tokenizer.ggml.{key}_token_id")
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(words):
            named[name] = value
    if model == "llama":  # SentencePiece's own defaults
        named = {name: index for name, index in (("unk", 0), ("bos", 1), ("eos", 2)) if index < len(words)} | named
    return Vocabulary(
        model=str(model),
        texts=words,
        types=kinds,
        scores=[float(score) for score in scores],
        bos_id=named.get("bos"),
        eos_id=named.get("eos"),
        unknown_id=named.get("unk"),
        named_ids=named,
    )


def _numbers(metadata: Metadata, key: str, count: int, file_name: str) -> Sequence[float]:
    """The numbers under `key`, one per token; empty when the file has none."""
    values = metadata.value(key)
    if values is None:
        return []
    if not isinstance(values, list) or len(values) != count or not all(isinstance(v, (int, float)) for v in values):
        found = len(values) if isinstance(values, list) else repr(values)
        words = f"{file_name}: {key} must hold one number for each of the {count} tokens, found {found}."
        raise AppError(f"{words} {ANOTHER_FILE}")
    return [float(value) for value in values]
