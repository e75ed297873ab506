"""Splits thoughts from the answer. Inside thoughts nothing is looked for except their end."""

from __future__ import annotations

from collections.abc import Callable

from dflash_desktop.server.parsing.source import Source, Wait, partial_suffix

OPEN_TAG = "<think>"
CLOSE_TAG = "</think>"


def opens_thinking(prompt_text: str) -> bool:
    """Whether the rendered prompt ends inside an opened thinking part, so that the reply starts in it."""
    return prompt_text.rstrip().endswith(OPEN_TAG)


class ReasoningSplitter:
    """Feeds `on_reasoning` and `on_content` with text as it becomes certain.

    Not part of either: the tags, a redundant opening tag, white space at the edges of the thoughts.
    """

    def __init__(
        self,
        on_reasoning: Callable[[str], None],
        on_content: Callable[[str], None],
        *,
        starts_inside: bool,
    ) -> None:
        self._on_reasoning = on_reasoning
        self._on_content = on_content
        self._source = Source()
        self._run = self._parse(starts_inside)
        self._is_over = False
        self.is_inside = starts_inside

    def feed(self, text: str) -> None:
        self._source.push(text)
        self._advance()

    def finish(self) -> None:
        self._source.is_final = True
        self._advance()

    def _advance(self) -> None:
        if not self._is_over:
            try:
                next(self._run)
            except StopIteration:
                self._is_over = True

    def _parse(self, starts_inside: bool) -> Wait:
        source = self._source
        at = yield from source.space_end()
        has_tag = yield from source.starts(OPEN_TAG, at)
        if has_tag:
            source.take(at + len(OPEN_TAG))
        if has_tag or starts_inside:
            self.is_inside = True
            yield from self._thoughts()
            self.is_inside = False
            yield from source.skip_space()
        while True:
            if source.text:
                self._on_content(source.take(len(source.text)))
            if not (yield from source.more()):
                return

    def _thoughts(self) -> Wait:
        source = self._source
        yield from source.skip_space()
        while True:
            end = source.text.find(CLOSE_TAG)
            if end >= 0:
                thought = source.take(end).rstrip()
                source.take(len(CLOSE_TAG))
                if thought:
                    self._on_reasoning(thought)
                return
            sure = len(source.text) - partial_suffix(source.text, (CLOSE_TAG,))
            sure = len(source.text[:sure].rstrip())  # dropped if the end tag follows
            if sure:
                self._on_reasoning(source.take(sure))
            if not (yield from source.more()):
                if source.text.rstrip():
                    self._on_reasoning(source.take(len(source.text)).rstrip())
                source.take(len(source.text))
                return
