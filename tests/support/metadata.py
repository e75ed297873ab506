"""A model file's tokenizer metadata without a file, for tests of what reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dflash_desktop.binding.values import MetaValue
    from support.scripted_model import Words


class WordsMetadata:
    """Answers like an opened file that holds these words."""

    def __init__(self, words: Words) -> None:
        named: dict[str, Any] = {
            "model": words.model,
            "pre": words.pre,
            "tokens": words.tokens,
            "token_type": words.types,
            "merges": words.merges,
            "scores": words.scores,
            "bos_token_id": words.bos,
            "eos_token_id": words.eos,
            **words.extra,
        }
        self._values = {f"tokenizer.ggml.{key}": value for key, value in named.items()}
        self._values["tokenizer.chat_template"] = words.template

    def value(self, key: str) -> MetaValue | None:
        value: MetaValue | None = self._values.get(key)
        return value
