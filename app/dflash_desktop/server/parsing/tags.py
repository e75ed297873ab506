"""The words of tool-call syntaxes, and the one place where call fragments are made."""

from __future__ import annotations

from collections.abc import Callable

from dflash_desktop.server.pieces import CallArguments, CallEnded, CallStarted, Fragment

CALL_OPEN = "<tool_call>"
CALL_CLOSE = "</tool_call>"
FUNCTION_OPEN = "<function="
FUNCTION_CLOSE = "</function>"
PARAMETER_OPEN = "<parameter="
PARAMETER_CLOSE = "</parameter>"


class BrokenCall(Exception):
    """This call cannot be read; the text says why."""


class CallWriter:
    """Numbers the calls of one reply and emits their fragments in order."""

    def __init__(self, on_fragment: Callable[[Fragment], None], new_id: Callable[[], str]) -> None:
        self._emit = on_fragment
        self._new_id = new_id
        self.n_calls = 0

    def start(self, name: str) -> None:
        self._emit(CallStarted(self.n_calls, self._new_id(), name))
        self.n_calls += 1

    def write(self, text: str) -> None:
        if text:
            self._emit(CallArguments(self.n_calls - 1, text))

    def end(self) -> None:
        self._emit(CallEnded(self.n_calls - 1))
