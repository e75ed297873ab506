"""Grammars on a model's own tokens: which of them may come next. llguidance does the work, in microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

from dflash_desktop.base.errors import AppError

_HIDDEN = b"\xff"  # llguidance's mark of a token that no text can spell


class Vocabulary(Protocol):
    """What is asked of a tokenizer; the engine's own fits."""

    n_vocab: int
    control_ids: frozenset[int]

    def encode(self, text: str) -> list[int]: ...

    def token_bytes(self, token: int) -> bytes: ...

    def token_text(self, token: int) -> str: ...


class GrammarRefused(Exception):
    """This grammar cannot be used; the text says why."""


class TokenConstraint:
    """Fits the engine's Constraint: follows one reply. For one thread at a time."""

    def __init__(self, matcher: LLMatcher, stops: frozenset[int], n_vocab: int) -> None:
        self._matcher = matcher
        self._stops = stops
        self._n_bytes = 4 * ((n_vocab + 31) // 32)

    def n_allowed(self, token_ids: Sequence[int]) -> int:
        """How many of the tokens, from the first on, may come next."""
        said = self._said(token_ids)
        n = self._matcher.validate_tokens(said) if said and not self._matcher.is_stopped() else 0
        if n == len(said) < len(token_ids) and self._may_end_after(said):
            n += 1  # the token that ends the reply
        return n

    def allowed_after(self, token_ids: Sequence[int]) -> bytes:
        """One bit for each token that may follow after `token_ids`: bit t % 8 of byte t // 8."""
        matcher = self._after(list(token_ids))
        if matcher.is_stopped() and not matcher.is_error():
            return self._only_stops()
        mask = matcher.compute_bitmask()
        if matcher.is_error() or not any(mask):
            raise AppError("The reply cannot go on within the format that was asked for.")
        return mask

    def commit(self, token_ids: Sequence[int]) -> None:
        """The tokens joined the reply."""
        said = self._said(token_ids)
        if said and not self._matcher.consume_tokens(said):
            raise AppError("The reply left the format that was asked for.")

    def _said(self, token_ids: Sequence[int]) -> list[int]:
        """The tokens before one that ends the reply: the library takes such a one only while something may follow."""
        ended = next((i for i, token in enumerate(token_ids) if token in self._stops), len(token_ids))
        return list(token_ids[:ended])

    def _after(self, token_ids: list[int]) -> LLMatcher:
        if not token_ids:
            return self._matcher
        matcher = self._matcher.deep_copy()
        matcher.consume_tokens(token_ids)
        return matcher

    def _may_end_after(self, token_ids: list[int]) -> bool:
        return self._after(token_ids).is_accepting()

    def _only_stops(self) -> bytes:
        mask = bytearray(self._n_bytes)
        for token in self._stops:
            mask[token // 8] |= 1 << token % 8
        return bytes(mask)


class Grammar:
    """A grammar that was found usable. Any thread."""

    def __init__(self, matcher: LLMatcher, stops: frozenset[int], n_vocab: int) -> None:
        self._matcher = matcher
        self._stops = stops
        self._n_vocab = n_vocab
        self.warnings = tuple(matcher.get_grammar_warnings())

    def follow(self, written: Sequence[int] = ()) -> TokenConstraint | None:
        """A constraint for a new reply that begins with `written`; None when it does not fit the grammar."""
        matcher = self._matcher.deep_copy()
        if written and not matcher.consume_tokens(list(written)):
            return None
        return TokenConstraint(matcher, self._stops, self._n_vocab)


class Grammars:
    """Makes grammars for one model. Building it takes a fraction of a second: not on the event loop."""

    def __init__(self, vocabulary: Vocabulary, stop_tokens: Sequence[int]) -> None:
        stops = [token for token in stop_tokens if 0 <= token < vocabulary.n_vocab]
        if not stops:
            raise GrammarRefused("the model names no token that ends a reply")
        self._stops = frozenset(stops)
        self._n_vocab = vocabulary.n_vocab
        wrapper = TokenizerWrapper(_Tokens(vocabulary, stops))
        self._tokenizer = LLTokenizer(wrapper, n_vocab=vocabulary.n_vocab, eos_token=stops)

    def compile(self, grammar: str) -> Grammar:
        """Raise GrammarRefused with the reason when it cannot be used."""
        try:
            matcher = LLMatcher(self._tokenizer, LLMatcher.grammar_from_lark(grammar), log_level=0)
        except Exception as error:
            raise GrammarRefused(str(error)) from error
        if matcher.is_error():
            raise GrammarRefused(" ".join(matcher.get_error().split())[:300])
        return Grammar(matcher, self._stops, self._n_vocab)


class _Tokens:
    """The vocabulary in the form that llguidance's wrapper takes."""

    def __init__(self, vocabulary: Vocabulary, stops: Sequence[int]) -> None:
        self.eos_token_id = stops[0]
        self.bos_token_id = None
        self.special_token_ids: list[int] = []
        hidden = vocabulary.control_ids | set(stops)
        self.tokens = [self._spelled(vocabulary, token, hidden) for token in range(vocabulary.n_vocab)]
        self._encode = vocabulary.encode

    def __call__(self, text: bytes | str) -> list[int]:
        return self._encode(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)

    @staticmethod
    def _spelled(vocabulary: Vocabulary, token: int, hidden: frozenset[int] | set[int]) -> bytes:
        spelled = vocabulary.token_bytes(token)
        if spelled or token not in hidden:
            return spelled
        return _HIDDEN + vocabulary.token_text(token).encode()
