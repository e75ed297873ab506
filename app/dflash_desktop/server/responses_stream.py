"""The event stream of OpenAI Responses: order and members as Codex reads them."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.pieces import (
    Beat,
    Call,
    CallArguments,
    CallEnded,
    CallStarted,
    Finished,
    Piece,
    Prefilled,
    ReasoningPiece,
    TextPiece,
)
from dflash_desktop.server.stream import EVENT_STREAM, sse

if TYPE_CHECKING:
    from dflash_desktop.server.responses import Answer


class ResponseStream:
    """Encoder: one open item at a time; the item in `output_item.done` is the authoritative one."""

    media_type = EVENT_STREAM

    def __init__(self, answer: Answer, on_done: Callable[[Answer, dict[str, Any]], None]) -> None:
        self._answer = answer
        self._on_done = on_done
        self._number = 0
        self._is_open = False
        self._kind = ""  # of the open item: reasoning, message, call
        self._item_id = ""
        self._text = ""
        self._call: Call | None = None
        self._output: list[dict[str, Any]] = []

    def encode(self, pieces: list[Piece]) -> bytes:
        out = b""
        if not self._is_open:
            self._is_open = True
            out = self._event("response.created", response=self._answer.body("in_progress", []))
            out += self._progress()
        return out + b"".join(map(self._piece, pieces))

    def failure(self, error: ApiError) -> bytes:
        out = b"" if self._is_open else self.encode([])
        failure = {"code": error.code or "server_error", "message": error.message}
        if failure["code"] != "context_length_exceeded":
            failure["code"] = "server_error"
        return out + self._event("response.failed", response=self._answer.body("failed", self._output, error=failure))

    def _piece(self, piece: Piece) -> bytes:
        match piece:
            case Beat() | Prefilled():
                return self._progress()  # a real event: comments do not reset Codex's idle timer
            case ReasoningPiece():
                return self._reasoning(piece.text)
            case TextPiece():
                return self._message(piece.text)
            case CallStarted():
                return self._begin_call(piece)
            case CallArguments():
                return self._arguments(piece.text)
            case CallEnded():
                return self._close(is_call_whole=True)
            case Finished():
                return self._end()
            case _:
                return b""

    def _progress(self) -> bytes:
        return self._event("response.in_progress", response=self._answer.body("in_progress", []))

    def _reasoning(self, text: str) -> bytes:
        out = b""
        if self._kind != "reasoning":
            out = self._open("reasoning", "rs")
            out += self._item("added", {"type": "reasoning", "id": self._item_id, "summary": []})
        self._text += text
        return out + self._part_event("response.reasoning_text.delta", delta=text)

    def _message(self, text: str) -> bytes:
        out = b""
        if self._kind != "message":
            out = self._open("message", "msg")
            item = {"type": "message", "id": self._item_id, "role": "assistant", "status": "in_progress", "content": []}
            out += self._item("added", item)
            out += self._part_event("response.content_part.added", part=_part(""))
        self._text += text
        return out + self._part_event("response.output_text.delta", delta=text, logprobs=[])

    def _begin_call(self, piece: CallStarted) -> bytes:
        out = self._open("call", "fc")
        self._call = Call(piece.call_id, piece.name)
        return out + self._item("added", self._answer.call_item(self._call, self._item_id, status="in_progress"))

    def _arguments(self, text: str) -> bytes:
        call = self._call
        if call is None:
            return b""
        call.arguments += text
        if self._answer.is_custom(call.name):
            return b""  # sent as one delta when the call is complete
        return self._event(
            "response.function_call_arguments.delta", item_id=self._item_id, output_index=self._index, delta=text
        )

    def _open(self, kind: str, prefix: str) -> bytes:
        out = self._close()
        self._kind, self._text = kind, ""
        self._item_id = f"{prefix}_{secrets.token_hex(12)}"
        return out

    def _close(self, *, is_call_whole: bool = False) -> bytes:
        """End the open item. A call that ends in any other way than by its own end was cut, or could not be read."""
        kind, self._kind = self._kind, ""
        if kind == "reasoning":
            out = self._part_event("response.reasoning_text.done", text=self._text)
            part = {"type": "reasoning_text", "text": self._text}
            return out + self._done(
                {"type": "reasoning", "id": self._item_id, "summary": [], "content": [part], "encrypted_content": None}
            )
        if kind == "message":
            out = self._part_event("response.output_text.done", text=self._text, logprobs=[])
            out += self._part_event("response.content_part.done", part=_part(self._text))
            item = {"type": "message", "id": self._item_id, "role": "assistant", "status": "completed"}
            return out + self._done({**item, "content": [_part(self._text)]})
        if kind == "call" and self._call is not None:
            return self._close_call(self._call, "completed" if is_call_whole else "incomplete")
        return b""

    def _close_call(self, call: Call, status: str) -> bytes:
        self._call = None
        item = self._answer.call_item(call, self._item_id, status=status)
        place = {"item_id": self._item_id, "output_index": self._index}
        if item["type"] == "custom_tool_call":
            out = self._event("response.custom_tool_call_input.delta", **place, delta=item["input"])
            out += self._event("response.custom_tool_call_input.done", **place, input=item["input"])
        else:
            out = self._event(
                "response.function_call_arguments.done", **place, name=item["name"], arguments=item["arguments"]
            )
        return out + self._done(item)

    def _end(self) -> bytes:
        out = self._close()
        if not any(item["type"] != "reasoning" and item["status"] == "completed" for item in self._output):
            out += self._message("") + self._close()
        # A call that was cut is no call: its arguments would be read as JSON.
        body = self._answer.body("completed", [item for item in self._output if item.get("status") != "incomplete"])
        self._on_done(self._answer, body)
        return out + self._event("response.completed", response=body)

    @property
    def _index(self) -> int:
        return len(self._output)

    def _item(self, what: str, item: dict[str, Any]) -> bytes:
        return self._event(f"response.output_item.{what}", output_index=self._index, item=item)

    def _done(self, item: dict[str, Any]) -> bytes:
        out = self._item("done", item)
        self._output.append(item)
        return out

    def _part_event(self, kind: str, **members: object) -> bytes:
        return self._event(kind, item_id=self._item_id, output_index=self._index, content_index=0, **members)

    def _event(self, kind: str, **members: object) -> bytes:
        data = {"type": kind, "sequence_number": self._number, **members}
        self._number += 1
        return sse(data, event=kind)


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
