"""Text that arrives in parts, for parsers written as generators: `yield` means "more text, please".

A parser decides only on text it has seen completely or on the true end, so the way the text was cut
cannot change the result.
"""

from __future__ import annotations

from collections.abc import Generator

Wait = Generator[None, None, None]
WaitBool = Generator[None, None, bool]
WaitStr = Generator[None, None, str]


class Source:
    """What has arrived and is not consumed yet."""

    def __init__(self) -> None:
        self.text = ""
        self.is_final = False
        self._taken: list[str] | None = None

    def push(self, text: str) -> None:
        self.text += text

    def take(self, n_chars: int) -> str:
        taken, self.text = self.text[:n_chars], self.text[n_chars:]
        if self._taken is not None:
            self._taken.append(taken)
        return taken

    def start_record(self) -> None:
        """From here on remember what is taken, for reports on broken calls."""
        self._taken = []

    def end_record(self) -> str:
        taken, self._taken = self._taken or [], None
        return "".join(taken)

    def more(self) -> WaitBool:
        """Wait for more text; False at the end."""
        n_chars = len(self.text)
        while len(self.text) == n_chars:
            if self.is_final:
                return False
            yield
        return True

    def peek(self, at: int = 0) -> WaitStr:
        """The character at `at`; empty at the end."""
        while len(self.text) <= at:
            if not (yield from self.more()):
                return ""
        return self.text[at]

    def starts(self, literal: str, at: int = 0) -> WaitBool:
        """Whether `literal` stands at `at`; waits only while that is open."""
        while True:
            seen = self.text[at : at + len(literal)]
            if seen == literal:
                return True
            if not literal.startswith(seen) or not (yield from self.more()):
                return False

    def space_end(self, at: int = 0) -> Generator[None, None, int]:
        """Index of the first character from `at` on that is not white space, or the end of the text."""
        while True:
            while at < len(self.text) and self.text[at].isspace():
                at += 1
            if at < len(self.text) or not (yield from self.more()):
                return at

    def skip_space(self) -> Wait:
        self.take((yield from self.space_end()))


def partial_suffix(text: str, literals: tuple[str, ...]) -> int:
    """Length of the longest end of `text` that could be the start of one of `literals`."""
    longest = max((len(literal) for literal in literals), default=0)
    for size in range(min(longest - 1, len(text)), 0, -1):
        end = text[-size:]
        if any(literal.startswith(end) for literal in literals):
            return size
    return 0
