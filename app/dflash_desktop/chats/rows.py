"""Records as table rows and back. What a row cannot say any more becomes a default: one bad row hides no other."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, cast, get_args

from dflash_desktop.chats.records import (
    ROLES,
    STATES,
    Attachment,
    AttachmentKind,
    ChatRecord,
    MessageRecord,
)

CHAT_COLUMNS = "id, title, has_own_title, is_pinned, created_s, changed_s, settings, composer_text"
MESSAGE_COLUMNS = "id, parent_id, shown_order, role, state, created_s, text, reasoning, rest"
_KINDS: tuple[AttachmentKind, ...] = get_args(AttachmentKind)


def chat_row(chat: ChatRecord) -> tuple[Any, ...]:
    return (
        chat.chat_id,
        storable(chat.title),
        int(chat.has_own_title),
        int(chat.is_pinned),
        chat.created_s,
        chat.changed_s,
        json.dumps(dict(chat.settings)),
        storable(chat.composer_text),
    )


def chat_of(row: tuple[Any, ...]) -> ChatRecord:
    chat_id, title, has_own_title, is_pinned, created_s, changed_s, settings, composer_text = row
    return ChatRecord(
        chat_id=int(chat_id),
        title=str(title or ""),
        has_own_title=bool(has_own_title),
        is_pinned=bool(is_pinned),
        created_s=number(created_s),
        changed_s=number(changed_s),
        settings=json_object(settings),
        composer_text=str(composer_text or ""),
    )


def message_row(message: MessageRecord) -> tuple[Any, ...]:
    rest: dict[str, Any] = {}
    if message.error:
        rest["error"] = message.error
    if message.reasoning_s is not None:
        rest["reasoning_s"] = message.reasoning_s
    if message.facts:
        rest["facts"] = dict(message.facts)
    if message.accepted_runs:
        rest["accepted_runs"] = list(message.accepted_runs)
    return (
        message.message_id,
        message.parent_id,
        message.shown_order,
        message.role,
        message.state,
        message.created_s,
        storable(message.text),
        storable(message.reasoning),
        json.dumps(rest),
    )


def message_of(row: tuple[Any, ...], attachments: Iterable[Attachment] = ()) -> MessageRecord:
    message_id, parent_id, shown_order, role, state, created_s, text, reasoning, rest_text = row
    rest = json_object(rest_text)
    reasoning_s = rest.get("reasoning_s")
    runs = rest.get("accepted_runs")
    facts = rest.get("facts")
    return MessageRecord(
        message_id=int(message_id),
        parent_id=parent_id if isinstance(parent_id, int) else None,
        role=role if role in ROLES else "user",
        text=str(text or ""),
        created_s=number(created_s),
        shown_order=int(number(shown_order)),
        state=state if state in STATES else "interrupted",
        reasoning=str(reasoning or ""),
        reasoning_s=float(reasoning_s) if isinstance(reasoning_s, (int, float)) else None,
        error=str(rest.get("error") or ""),
        facts=facts if isinstance(facts, dict) else {},
        accepted_runs=tuple(run for run in runs if isinstance(run, int)) if isinstance(runs, list) else (),
        attachments=tuple(attachments),
    )


def attachment_row(message_id: int, position: int, attachment: Attachment) -> tuple[Any, ...]:
    return (
        message_id,
        position,
        storable(attachment.name),
        attachment.kind,
        attachment.n_bytes,
        storable(attachment.text),
    )


def attachment_of(row: tuple[Any, ...]) -> Attachment:
    name, kind, n_bytes, text = row
    known = cast("AttachmentKind", kind if kind in _KINDS else "text")
    return Attachment(str(name or ""), known, str(text or ""), int(number(n_bytes)))


def json_object(text: Any) -> Mapping[str, Any]:
    """The object that `text` spells; an empty one for anything else."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else 0.0


def storable(text: str) -> str:
    """`text` without lone surrogates (half an emoji from a foreign program), which no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
