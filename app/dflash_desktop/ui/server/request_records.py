"""One request of a client, put together from the server's events, and its words for table and inspector."""

from __future__ import annotations

import time
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QDateTime, QLocale

from dflash_desktop.server.events import (
    RequestArrived,
    RequestEnded,
    RequestMoved,
    RequestRefused,
    RequestRendered,
    ServerEvent,
)
from dflash_desktop.server.redact import redacted_copy
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.server.client_names import client_name

translate = QCoreApplication.translate


@dataclass(slots=True)
class RequestRecord:
    """What is known of a request so far. Only RequestItemModel changes it."""

    arrived: RequestArrived
    rendered: RequestRendered | None = None
    moved: RequestMoved | None = None
    ended: RequestEnded | None = None
    status: int = 0  # of the answer, where that is all there was

    def take(self, event: ServerEvent) -> None:
        match event:
            case RequestRendered():
                self.rendered = event
            case RequestMoved():
                self.moved = event
            case RequestEnded():
                self.ended = event
            case _:
                pass

    @property
    def request_id(self) -> str:
        return self.arrived.request_id

    @property
    def is_running(self) -> bool:
        return self.ended is None

    @property
    def n_prompt_tokens(self) -> int | None:
        known = self.ended or self.moved or self.rendered
        return known.n_prompt_tokens if known is not None else None

    @property
    def n_reused_tokens(self) -> int | None:
        known = self.ended or self.moved
        return known.n_reused_tokens if known is not None else None

    @property
    def n_prefilled_tokens(self) -> int | None:
        """Prompt tokens that were computed, so far."""
        if self.ended is not None:
            # A request that ended before its prefill did has no reply; what was done until then is in the last move.
            if not self.ended.n_reply_tokens:
                return self.moved.n_prefilled_tokens if self.moved is not None else 0
            return self.ended.n_prompt_tokens - self.ended.n_reused_tokens
        if self.moved is None:
            return None
        if self.moved.phase == "decode":
            return self.moved.n_prompt_tokens - self.moved.n_reused_tokens
        return self.moved.n_prefilled_tokens

    @property
    def n_reply_tokens(self) -> int | None:
        known = self.ended or self.moved
        return known.n_reply_tokens if known is not None else None

    @property
    def acceptance_length(self) -> float | None:
        known = self.ended or self.moved
        return known.acceptance_length if known is not None and known.acceptance_length > 0 else None

    @property
    def decode_tps(self) -> float | None:
        if self.ended is not None:
            return decode_tps(self.ended)
        return self.moved.decode_tps if self.moved is not None else None

    @property
    def total_s(self) -> float:
        """From arrival to the end, or until now."""
        return self.ended.total_s if self.ended is not None else max(0.0, time.time() - self.arrived.at_s)

    def client_words(self) -> str:
        return client_name(self.arrived.client, self.arrived.user_agent)

    def time_words(self) -> str:
        at = QDateTime.fromSecsSinceEpoch(int(self.arrived.at_s))
        return QLocale().toString(at.time(), "HH:mm:ss")

    def state_words(self) -> str:
        if self.status:
            return translate("requests", "refused ({0})").format(self.status)
        if self.ended is not None:
            return _outcome_words(self.ended)
        if self.moved is None or self.moved.phase == "waiting":
            n_ahead = self.moved.n_ahead if self.moved is not None else 0
            if n_ahead:
                return translate("requests", "waiting, {0} ahead").format(numbers.count(n_ahead))
            return translate("requests", "waiting")
        if self.moved.phase == "prefill":
            n_new = max(1, self.moved.n_prompt_tokens - self.moved.n_reused_tokens)
            share = min(1.0, self.moved.n_prefilled_tokens / n_new)
            return translate("requests", "reading, {0}").format(numbers.percent(share))
        return translate("requests", "answering")

    def tone(self) -> str:
        """bad, good, muted, or accent while it runs."""
        if self.ended is None:
            return "accent"
        return {"failed": "bad", "refused": "bad", "cancelled": "muted"}.get(self.ended.outcome, "good")

    def facts(self) -> list[tuple[str, str]]:
        """Name and value, in the order in which people ask."""
        arrived, rendered, ended = self.arrived, self.rendered, self.ended
        if self.status and ended is not None:
            return [
                (translate("requests", "State"), self.state_words()),
                (translate("requests", "Why"), ended.message),
                (translate("requests", "Path"), arrived.path),
                (translate("requests", "Calls itself"), arrived.user_agent or numbers.DASH),
                (translate("requests", "Arrived"), _date_words(arrived.at_s)),
            ]
        rows = [
            (translate("requests", "State"), self.state_words()),
            (translate("requests", "Path"), arrived.path),
            (translate("requests", "Calls itself"), arrived.user_agent or numbers.DASH),
            (translate("requests", "Model asked for"), arrived.model_asked or numbers.DASH),
            (translate("requests", "Arrived"), _date_words(arrived.at_s)),
            (translate("requests", "Messages"), numbers.count(arrived.n_messages)),
            (translate("requests", "Streamed"), _yes_no(arrived.is_stream)),
            (translate("requests", "Tools"), _tool_words(arrived, rendered)),
        ]
        if rendered is not None:
            rows.append((translate("requests", "Most reply tokens"), numbers.count(rendered.max_tokens)))
            rows.append((translate("requests", "Temperature"), numbers.decimal(rendered.temperature, 2)))
        rows += [
            (translate("requests", "Prompt"), _tokens(self.n_prompt_tokens)),
            (translate("requests", "Cached"), _tokens(self.n_reused_tokens)),
            (translate("requests", "Prefilled"), _tokens(self.n_prefilled_tokens)),
            (translate("requests", "Decoded"), _tokens(self.n_reply_tokens)),
            (translate("requests", "Acceptance length"), _decimal(self.acceptance_length)),
            (translate("requests", "Speed"), _rate(self.decode_tps)),
        ]
        if ended is not None:
            rows += [
                (translate("requests", "Steps"), numbers.count(ended.n_steps)),
                (translate("requests", "Drafted, accepted"), _pair(ended.n_drafted, ended.n_accepted)),
                (translate("requests", "In the queue"), numbers.seconds(ended.queue_s)),
                (translate("requests", "First token after"), numbers.seconds(ended.ttft_s)),
                (translate("requests", "Prefill"), numbers.seconds(ended.prefill_s)),
                (translate("requests", "Decode"), numbers.seconds(ended.decode_s)),
                (translate("requests", "In all"), numbers.seconds(ended.total_s)),
            ]
            if ended.message:
                rows.insert(1, (translate("requests", "Why"), ended.message))
        notes = ended.notes if ended is not None else rendered.notes if rendered is not None else ()
        rows += [(translate("requests", "Note"), note) for note in notes]
        return rows

    def prompt_text(self) -> str:
        return self.rendered.prompt_text if self.rendered is not None else ""

    def reply_text(self) -> str:
        """Thoughts, answer and tool calls, each under its name where there is more than the answer."""
        if self.ended is None:
            return ""
        parts = []
        if self.ended.reasoning_text:
            parts += [translate("requests", "[thoughts]"), self.ended.reasoning_text]
        if self.ended.tool_calls:
            parts += [translate("requests", "[tool calls]"), *self.ended.tool_calls]
        if self.ended.reply_text and parts:
            parts.append(translate("requests", "[answer]"))
        return "\n\n".join([*parts, self.ended.reply_text] if self.ended.reply_text else parts)

    def n_text_chars(self) -> int:
        """How much text is kept for this request."""
        n_reply = len(self.ended.reply_text) + len(self.ended.reasoning_text) if self.ended is not None else 0
        return len(self.prompt_text()) + n_reply

    def redacted(self) -> str:
        """Ready for a bug report: nothing that the person or the model wrote."""
        events = [self.arrived, self.rendered, self.moved, self.ended]
        return redacted_copy(event for event in events if event is not None)


def refused_record(refused: RequestRefused) -> RequestRecord:
    """A request that was turned away before anything was known of it but who sent it."""
    arrived = RequestArrived(
        refused.request_id, refused.client, refused.user_agent, refused.path, "", False, 0, 0, refused.at_s
    )
    nothing = (0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    ended = RequestEnded(refused.request_id, "refused", refused.message, "", "", (), (), *nothing)
    return RequestRecord(arrived, ended=ended, status=refused.status)


def decode_tps(ended: RequestEnded) -> float | None:
    """Tokens per second after the first one: the number that the client was told."""
    if ended.decode_s <= 0 or ended.n_reply_tokens < 2:
        return None
    return (ended.n_reply_tokens - 1) / ended.decode_s


def _outcome_words(ended: RequestEnded) -> str:
    words = {
        "stop": translate("requests", "answered"),
        "length": translate("requests", "token limit reached"),
        "tool_calls": translate("requests", "calls a tool"),
        "context": translate("requests", "context is full"),
        "cancelled": translate("requests", "client left"),
        "failed": translate("requests", "failed"),
        "refused": translate("requests", "refused"),
    }
    return words[ended.outcome]


def _tool_words(arrived: RequestArrived, rendered: RequestRendered | None) -> str:
    if rendered is not None and rendered.tool_names:
        return ", ".join(rendered.tool_names)
    return numbers.count(arrived.n_tools) if arrived.n_tools else translate("requests", "none")


def _date_words(at_s: float) -> str:
    return QLocale().toString(QDateTime.fromSecsSinceEpoch(int(at_s)), "yyyy-MM-dd HH:mm:ss")


def _yes_no(value: bool) -> str:
    return translate("requests", "yes") if value else translate("requests", "no")


def _tokens(value: int | None) -> str:
    return numbers.DASH if value is None else numbers.tokens(value)


def _decimal(value: float | None) -> str:
    return numbers.DASH if value is None else numbers.decimal(value, 2)


def _rate(value: float | None) -> str:
    words = numbers.rate(value)
    return words if words == numbers.DASH else translate("requests", "{0} tok/s").format(words)


def _pair(first: int, second: int) -> str:
    return translate("requests", "{0}, {1}").format(numbers.count(first), numbers.count(second))
