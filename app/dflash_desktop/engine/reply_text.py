"""A reply's bytes become text: whole characters only, and never the beginning of a stop string."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class ReplyText:
    """Feed it tokens in order; it hands out what became certain.

    A token may hold half a character, several, or the end of one and the beginning of the next. Bytes of an unfinished
    character are held back; bytes that cannot be UTF-8 become U+FFFD. Text that might be the beginning of a stop string
    is held back until it is one (then the reply ends before it) or cannot be one any more.
    """

    def __init__(self, token_bytes: Callable[[int], bytes], stop: Sequence[str] = ()) -> None:
        self._token_bytes = token_bytes
        self._stop = [text for text in stop if text]
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._given: list[str] = []
        self.stop_string: str | None = None

    @property
    def text(self) -> str:
        """Everything handed out so far."""
        return "".join(self._given)

    def add(self, token: int) -> str:
        """Take one token; return the text that became certain. Sets `stop_string` when the reply ends here."""
        return self._advance(self._decoder.decode(self._token_bytes(token)))

    def finish(self, *, is_cut: bool) -> str:
        """Return what was held back.

        `is_cut`: a limit ended the reply, so an unfinished character is dropped. A reply that ends by itself in the
        middle of one is broken, and says so with U+FFFD.
        """
        if self.stop_string is not None:
            return ""
        rest = self._advance("" if is_cut else self._decoder.decode(b"", final=True))
        return rest + self._give(len(self._held))  # nothing is held any more when a stop string was found

    def _advance(self, text: str) -> str:
        if self.stop_string is not None:
            return ""
        self._held += text
        found = [(at, stop) for stop in self._stop if (at := self._held.find(stop)) >= 0]
        if found:
            at, self.stop_string = min(found, key=lambda hit: hit[0])
            given = self._give(at)
            self._held = ""
            return given
        return self._give(len(self._held) - max(map(self._n_possible, self._stop), default=0))

    def _n_possible(self, stop: str) -> int:
        """How many characters at the end of the held text may be the beginning of `stop`."""
        longest = min(len(stop) - 1, len(self._held))
        return next((n for n in range(longest, 0, -1) if self._held.endswith(stop[:n])), 0)

    def _give(self, n_chars: int) -> str:
        given, self._held = self._held[:n_chars], self._held[n_chars:]
        if given:
            self._given.append(given)
        return given
