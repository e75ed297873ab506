"""The tokenizer, rebuilt from a model file: text -> ids, and the bytes of each id.

Special tokens are cut out of the text here, by hand, because Hugging Face's added tokens would match always. Upstream's
order is kept: one pass over the text per token, longest text first. User-defined tokens match everywhere; control
tokens only where the caller lets them, so what a person types stays text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflash_desktop.engine.byte_bpe import ByteBpe
from dflash_desktop.engine.sentencepiece import SentencePiece
from dflash_desktop.engine.vocabulary import read_vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dflash_desktop.engine.marked import Marked
    from dflash_desktop.engine.vocabulary import Metadata

_USER = 1  # the value of a user's character in `Marked.mask`


class Tokenizer:
    """Text <-> tokens of one model. Read-only after construction, so any thread may use it."""

    def __init__(self, metadata: Metadata, file_name: str) -> None:
        """Rebuild the tokenizer of an opened model file. Raises AppError when the file's tokenizer is not known."""
        vocabulary = read_vocabulary(metadata, file_name)
        self.n_vocab = len(vocabulary.texts)
        self.bos_id = vocabulary.bos_id
        self.eos_id = vocabulary.eos_id
        self.special_texts = {name: vocabulary.texts[index] for name, index in vocabulary.named_ids.items()}
        self._bytes = vocabulary.token_bytes()
        # a control token may stand for more of the text than the bytes it adds to a reply
        self.longest_token_bytes = max(4, *map(len, self._bytes), *(len(text.encode()) for text in vocabulary.texts))
        self._texts = vocabulary.texts
        self._ids = vocabulary.ids
        self._words: ByteBpe | SentencePiece
        if vocabulary.model == "llama":
            self._words = SentencePiece(vocabulary, file_name)
            adds_bos, adds_space = True, True
        else:
            self._words = ByteBpe(vocabulary, metadata, file_name)
            adds_bos, adds_space = self._words.adds_bos, False
        written = metadata.value("tokenizer.ggml.add_bos_token")
        self.adds_bos = self.bos_id is not None and (adds_bos if written is None else bool(written))
        written = metadata.value("tokenizer.ggml.add_space_prefix")
        self._adds_space = adds_space if written is None else bool(written)
        controls, user_defined = vocabulary.special_ids()
        self._specials = sorted(
            [(vocabulary.texts[i], i, True) for i in controls]
            + [(vocabulary.texts[i], i, False) for i in user_defined],
            key=lambda special: -len(special[0].encode()),
        )
        self.control_ids = frozenset(controls)

    def encode(self, text: str, *, parse_special: bool = False) -> list[int]:
        """Ids of `text`, no beginning token added. `parse_special`: control tokens written in it are control tokens."""
        text = clean(text)
        return self._encode(text, None if parse_special else bytes([_USER]) * len(text))

    def encode_marked(self, prompt: Marked) -> list[int]:
        """Ids of a rendered prompt: control tokens count only where no character of them came from a user."""
        text = clean(prompt)
        return self._encode(text, prompt.mask)

    def with_bos(self, ids: list[int]) -> list[int]:
        """`ids` with one beginning token in front, when this model wants one and the template has not written it."""
        if not self.adds_bos or self.bos_id is None or ids[:1] == [self.bos_id]:
            return ids
        return [self.bos_id, *ids]

    def token_bytes(self, token: int) -> bytes:
        """What a token adds to a reply. Nothing for ids outside the vocabulary."""
        return self._bytes[token] if 0 <= token < self.n_vocab else b""

    def token_text(self, token: int) -> str:
        """A token as the file writes it, for inspectors."""
        return self._texts[token] if 0 <= token < self.n_vocab else ""

    def token_id(self, text: str) -> int | None:
        """The id of a token as the file writes it."""
        return self._ids.get(text)

    def spell(self, ids: Iterable[int]) -> bytes:
        """The bytes that the ids spell, control tokens included, for inspectors and `detokenize`."""
        return b"".join(self.token_bytes(token) or self._hidden_bytes(token) for token in ids)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of a finished list of ids, as a reply shows it; what is no UTF-8 becomes U+FFFD."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", "replace")

    def _hidden_bytes(self, token: int) -> bytes:
        return self._texts[token].encode() if token in self.control_ids else b""

    def _encode(self, text: str, mask: bytes | None) -> list[int]:
        ids: list[int] = []
        is_after_special = True  # SentencePiece puts a space in front of the first word and after each special token
        for piece in self._cut_specials(text, mask):
            if isinstance(piece, int):
                ids.append(piece)
                is_after_special = True
                continue
            word = text[piece[0] : piece[1]]
            ids += self._words.encode(f" {word}" if self._adds_space and is_after_special else word)
            is_after_special = False
        return ids

    def _cut_specials(self, text: str, mask: bytes | None) -> list[int | tuple[int, int]]:
        """Special tokens as ids, and the ranges of text between them, in order. Empty ranges are left out."""
        pieces: list[int | tuple[int, int]] = [(0, len(text))] if text else []
        for special, token, is_control in self._specials:
            if not special or special not in text:
                continue
            cut: list[int | tuple[int, int]] = []
            for piece in pieces:
                if isinstance(piece, int):
                    cut.append(piece)
                    continue
                start, end = piece
                search = start
                while (at := text.find(special, search, end)) >= 0:
                    after = at + len(special)
                    if is_control and mask is not None and mask.find(_USER, at, after) >= 0:
                        search = at + 1
                        continue
                    if at > start:
                        cut.append((start, at))
                    cut.append(token)
                    start = search = after
                if end > start:
                    cut.append((start, end))
            pieces = cut
        return pieces


def clean(text: str) -> str:
    """`text` without lone surrogates (half an emoji from a foreign JSON): each becomes U+FFFD. Same length."""
    text = str.__str__(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if 0xD800 <= ord(char) < 0xE000 else char for char in text)
    return text
