"""SentencePiece BPE ("llama" files): neighbours merge, best score first, as long as their join is a token.

Written out here because merges rebuilt from scores differ from the original where several splits give the same piece
(runs of spaces). Ties go to the left. What is no token in the end is spelled in byte tokens.
"""

from __future__ import annotations

import heapq
import re
from typing import TYPE_CHECKING

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.vocabulary import ANOTHER_FILE, SPACE_MARK, TokenType, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable

_CACHE_WORDS = 20_000
_WORDS = re.compile(f"{SPACE_MARK}*[^{SPACE_MARK}]+|{SPACE_MARK}+")


class SentencePiece:
    """Text without special tokens -> ids. `add_space_prefix` is the caller's business."""

    def __init__(self, vocabulary: Vocabulary, file_name: str) -> None:
        if not vocabulary.scores:
            raise AppError(f"{file_name}: a 'llama' tokenizer needs scores (tokenizer.ggml.scores). {ANOTHER_FILE}")
        self._ids = vocabulary.text_ids
        self._scores = vocabulary.scores
        self._unknown_id = vocabulary.unknown_id
        self._byte_ids = [self._ids.get(f"<0x{byte:02X}>", self._ids.get(chr(byte), -1)) for byte in range(256)]
        self._words: dict[str, list[int]] = {}
        # No token holds a space mark after another character: then merges never cross a word's beginning, and
        # words can be cut first and remembered. True of every such vocabulary seen; checked all the same.
        self._is_cut_in_words = not any(
            re.search(f"[^{SPACE_MARK}]{SPACE_MARK}", text)
            for text, kind in zip(vocabulary.texts, vocabulary.types, strict=True)
            if kind == TokenType.NORMAL or kind == TokenType.USER_DEFINED
        )

    def encode(self, text: str) -> list[int]:
        """Ids of a piece of text."""
        marked = text.replace(" ", SPACE_MARK)
        words: Iterable[str] = _WORDS.findall(marked) if self._is_cut_in_words else [marked]
        ids: list[int] = []
        for word in words:
            known = self._words.get(word)
            if known is None:
                known = self._encode_word(word)
                if len(self._words) < _CACHE_WORDS and len(word) < 64:
                    self._words[word] = known
            ids += known
        return ids

    def _encode_word(self, word: str) -> list[int]:
        """Merge with a heap over a linked list: n log n in the number of characters."""
        pieces = list(word)
        n = len(pieces)
        following = [*range(1, n), -1]
        preceding = [*range(-1, n - 1)]
        queue: list[tuple[float, int, str, int]] = []

        def offer(left: int) -> None:
            right = following[left]
            joined = pieces[left] + pieces[right]
            token = self._ids.get(joined)
            if token is not None:
                heapq.heappush(queue, (-self._scores[token], left, joined, right))

        for left in range(n - 1):
            offer(left)
        while queue:
            _, left, joined, right = heapq.heappop(queue)
            # either side may have merged with another neighbour meanwhile
            if not pieces[left] or following[left] != right or pieces[left] + pieces[right] != joined:
                continue
            pieces[left], pieces[right] = joined, ""
            following[left] = following[right]
            if following[left] >= 0:
                preceding[following[left]] = left
                offer(left)
            if preceding[left] >= 0:
                offer(preceding[left])
        return [token for piece in pieces if piece for token in self._spell(piece)]

    def _spell(self, piece: str) -> list[int]:
        token = self._ids.get(piece)
        if token is not None:
            return [token]
        spelled = [self._byte_ids[byte] for byte in piece.encode()]
        if min(spelled) >= 0:
            return spelled
        return [] if self._unknown_id is None else [self._unknown_id]
