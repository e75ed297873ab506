"""Byte-level BPE ("gpt2" files): how text is cut into words, and Hugging Face's `tokenizers` for the merges.

The patterns are upstream llama.cpp's (measured equal on its test vectors and on random text). No Unicode normalisation
is applied, as upstream does none; Qwen's own tokenizer would compose accents first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.vocabulary import ANOTHER_FILE

if TYPE_CHECKING:
    from dflash_desktop.engine.vocabulary import Metadata, Vocabulary

LONG_CHARS = 20_000
"""`encode` holds the interpreter's lock for a second per megabyte, and with it the window; a batch of one does not."""

_ENGLISH_ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = rf"{_ENGLISH_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"
_QWEN2 = rf"{_ENGLISH_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"
_QWEN35 = (
    rf"{_ENGLISH_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}|"
    rf" ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}"
)

# What a file without `tokenizer.ggml.pre` gets, as upstream: the oldest files, written before the key existed.
_DEFAULT = (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]")

_PATTERNS: dict[str, tuple[str, ...]] = {
    "default": _DEFAULT,
    "gpt-2": (_GPT2,),
    "smollm": (r"\p{N}", _GPT2),
    "llama-bpe": (_LLAMA3,),
    "qwen2": (_QWEN2,),
    "qwen35": (_QWEN35,),
}
_ALIASES = {
    "phi-2": "gpt-2", "mpt": "gpt-2", "olmo": "gpt-2", "jais": "gpt-2", "gigachat": "gpt-2", "a.x-4.0": "gpt-2",
    "mellum": "gpt-2", "exaone4": "gpt-2", "trillion": "gpt-2", "granite-docling": "gpt-2",
    "starcoder": "smollm", "refact": "smollm", "command-r": "smollm", "codeshell": "smollm", "exaone": "smollm",
    "minerva-7b": "smollm", "mellum2": "smollm",
    "llama3": "llama-bpe", "llama-v3": "llama-bpe", "falcon3": "llama-bpe", "falcon-h1": "llama-bpe",
    "pixtral": "llama-bpe", "midm-2.0": "llama-bpe", "lfm2": "llama-bpe",
    "stablelm2": "qwen2", "hunyuan": "qwen2", "deepseek-r1-qwen": "qwen2", "megrez": "qwen2", "kormo": "qwen2",
    "solar-open": "qwen2", "grok-2": "qwen2",
}  # fmt: skip


def pattern_name(metadata: Metadata, file_name: str) -> str:
    """Which of our patterns cuts this file's text. Raises AppError for one that we do not have."""
    written = metadata.value("tokenizer.ggml.pre")
    name = "default" if written in (None, "") else str(written)
    name = _ALIASES.get(name, name)
    if name not in _PATTERNS:
        raise AppError(
            f"{file_name}: its text is cut by the rule {written!r} (tokenizer.ggml.pre), which this version "
            "does not know; guessing would give wrong tokens. Choose another model, or a newer version of the program."
        )
    return name


class ByteBpe:
    """Text without special tokens -> ids."""

    def __init__(self, vocabulary: Vocabulary, metadata: Metadata, file_name: str) -> None:
        name = pattern_name(metadata, file_name)
        self.adds_bos = name == "llama-bpe"  # unless the file says otherwise
        ids = vocabulary.text_ids
        try:
            model = models.BPE(vocab=ids, merges=_merges(metadata, ids, file_name), ignore_merges=name == "llama-bpe")
        except Exception as error:  # its constructor raises plain Exception, with a reason
            raise AppError(
                f"{file_name}: its merges and tokens do not fit together: {error}. {ANOTHER_FILE}"
            ) from error
        self._tokenizer = Tokenizer(model)
        self._tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                *(pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in _PATTERNS[name]),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )

    def encode(self, text: str) -> list[int]:
        """Ids of a piece of text."""
        if len(text) > LONG_CHARS:
            (encoding,) = self._tokenizer.encode_batch_fast([text], add_special_tokens=False)
        else:
            encoding = self._tokenizer.encode(text, add_special_tokens=False)
        ids: list[int] = encoding.ids
        return ids


def _merges(metadata: Metadata, ids: dict[str, int], file_name: str) -> list[tuple[str, str]]:
    """The merges, each "left right" cut at its first space after the first character. Raises AppError without any."""
    written = metadata.value("tokenizer.ggml.merges")
    if not isinstance(written, list):
        raise AppError(f"{file_name}: it has no merges (tokenizer.ggml.merges). {ANOTHER_FILE}")
    merges = []
    for line in written:
        left, space, right = str(line)[1:].partition(" ")
        pair = (str(line)[:1] + left, right)
        # A merge whose result is no token can never be seen in the ids; `tokenizers` would refuse the whole file.
        if space and pair[0] in ids and right in ids and pair[0] + right in ids:
            merges.append(pair)
    return merges
