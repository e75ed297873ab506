"""What becomes of the model's text: parsers and filters in their order, and our own reasons to end a reply."""

from __future__ import annotations

from dflash_desktop.engine.events import StepDone
from dflash_desktop.server.chat import ChatRequest
from dflash_desktop.server.filters import JsonAnswer, StopFilter
from dflash_desktop.server.parsing.reply import ReplyParser
from dflash_desktop.server.parsing.schemas import ToolSchemas
from dflash_desktop.server.pieces import (
    CallBroken,
    CallEnded,
    CallStarted,
    Fragment,
    Logprobs,
    ReplyFinish,
    TextPiece,
    TokenLogprob,
)
from dflash_desktop.server.ports import PromptReader
from dflash_desktop.server.prompting import PromptPlan


class Shaper:
    """Feed it the text of each step. `own_finish` is set when the reply is over although the engine goes on."""

    def __init__(self, request: ChatRequest, plan: PromptPlan) -> None:
        self._parser: ReplyParser | None = None
        self._is_parallel = request.is_parallel
        self._written = plan.written
        self._stop = StopFilter(request.stop if plan.starts_in_thoughts else ())
        self._json: JsonAnswer | None = None
        if request.raw is None:
            is_json = request.response_format.kind != "text"
            self._parser = ReplyParser(
                ToolSchemas(plan.tools),
                starts_in_thoughts=plan.starts_in_thoughts,
                reads_bare_json=not is_json,
            )
            self._json = JsonAnswer(request.response_format.schema) if is_json else None
        self._has_text = False
        self._broken: CallBroken | None = None
        self.has_complete_call = False
        self.own_finish: ReplyFinish | None = None
        self.notes: list[str] = []

    @property
    def is_in_thoughts(self) -> bool:
        return self._parser is not None and self._parser.is_in_thoughts

    @property
    def raw_answer(self) -> str:
        """What the model wrote after its thoughts, calls included."""
        return self._parser.raw_answer if self._parser is not None else ""

    @property
    def stop_string(self) -> str | None:
        return self._stop.found

    @property
    def verdict(self) -> str | None:
        return self._json.verdict if self._json is not None else None

    def begin(self) -> list[Fragment]:
        """What we wrote of the reply ourselves: the header of a forced call, a first brace."""
        return self.feed(self._written) if self._written else []

    def feed(self, text: str) -> list[Fragment]:
        if not text or self.own_finish is not None:
            return []
        return self._shaped(self._parser.feed(text) if self._parser is not None else [TextPiece(text)])

    def finish(self) -> list[Fragment]:
        """The end of the text: what was held back, and a sentence where only a broken call was left."""
        out: list[Fragment] = []
        if self.own_finish is None:
            if self._parser is not None:
                out += self._shaped(self._parser.finish())
            out += self._stop.finish()
            if self._json is not None:
                out += self._json.finish()
        if self._json is not None and self._json.verdict:
            self.notes.append(f"JSON answer: {self._json.verdict}")
        if self._broken is not None and not self._has_text and not self.has_complete_call:
            out.append(TextPiece(f"[The model began a tool call that cannot be read: {self._broken.reason}.]"))
        return out

    def logprobs(self, event: StepDone, reader: PromptReader) -> Logprobs:
        told = []
        for i, (token, value) in enumerate(zip(event.token_ids, event.logprobs, strict=False)):
            top = event.top_logprobs[i] if i < len(event.top_logprobs) else ()
            likeliest = tuple((reader.detokenize((other,)), logprob) for other, logprob in top)
            told.append(TokenLogprob(reader.detokenize((token,)), value, likeliest))
        return Logprobs(tuple(told))

    def _shaped(self, fragments: list[Fragment]) -> list[Fragment]:
        fragments = self._stop.push(fragments)
        if self._json is not None:
            fragments = self._json.push(fragments)
        out: list[Fragment] = []
        for fragment in fragments:
            match fragment:
                case CallStarted() if self.has_complete_call and not self._is_parallel:
                    self.own_finish = "tool_calls"
                    return out
                case CallEnded():
                    self.has_complete_call = True
                    out.append(fragment)
                    if not self._is_parallel:
                        self.own_finish = "tool_calls"
                        return out
                case CallBroken():
                    self._broken = fragment
                    self.notes.append(f"a tool call could not be read: {fragment.reason}: {fragment.raw[:500]}")
                    out.append(fragment)
                case TextPiece():
                    self._has_text = self._has_text or bool(fragment.text.strip())
                    out.append(fragment)
                case _:
                    out.append(fragment)
        if self._stop.found is not None:
            self.own_finish = "stop_string"
        elif self._json is not None and self._json.is_done:
            self.own_finish = "stop"
        return out
