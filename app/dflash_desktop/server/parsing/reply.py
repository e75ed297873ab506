"""The whole way from the model's text to fragments: thoughts first, then tool calls."""

from __future__ import annotations

import secrets
import string
from collections.abc import Callable

from dflash_desktop.server.parsing.calls import CallParser
from dflash_desktop.server.parsing.reasoning import ReasoningSplitter
from dflash_desktop.server.parsing.schemas import ToolSchemas
from dflash_desktop.server.pieces import Fragment, ReasoningPiece, TextPiece

_ID_LETTERS = string.ascii_letters + string.digits


def new_call_id() -> str:
    """24 letters and digits; each dialect adds its own prefix."""
    return "".join(secrets.choice(_ID_LETTERS) for _ in range(24))


class ReplyParser:
    """Feed the model's text in any cut; each call returns the fragments that became certain."""

    def __init__(
        self,
        schemas: ToolSchemas,
        *,
        starts_in_thoughts: bool = False,
        reads_bare_json: bool = True,
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        self._out: list[Fragment] = []
        self._answer: list[str] = []
        self._calls = CallParser(schemas, self._add, new_id, reads_bare_json=reads_bare_json)
        self._splitter = ReasoningSplitter(
            lambda text: self._add(ReasoningPiece(text)),
            self._feed_calls,
            starts_inside=starts_in_thoughts,
        )

    @property
    def raw_answer(self) -> str:
        """The text after the thoughts, as the model wrote it."""
        return "".join(self._answer)

    @property
    def is_in_thoughts(self) -> bool:
        return self._splitter.is_inside

    def feed(self, text: str) -> list[Fragment]:
        self._splitter.feed(text)
        return self._drained()

    def finish(self) -> list[Fragment]:
        self._splitter.finish()
        self._calls.finish()
        return self._drained()

    def _feed_calls(self, text: str) -> None:
        self._answer.append(text)
        self._calls.feed(text)

    def _add(self, fragment: Fragment) -> None:
        last = self._out[-1] if self._out else None
        match last, fragment:
            case TextPiece(), TextPiece():
                self._out[-1] = TextPiece(last.text + fragment.text)
            case ReasoningPiece(), ReasoningPiece():
                self._out[-1] = ReasoningPiece(last.text + fragment.text)
            case _:
                self._out.append(fragment)

    def _drained(self) -> list[Fragment]:
        out, self._out = self._out, []
        return out
