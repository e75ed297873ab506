"""Chats as JSON and back: everything that is known of them, for another machine or another day."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from dflash_desktop.base.errors import AppError
from dflash_desktop.chats import rows
from dflash_desktop.chats.records import (
    ROLES,
    STATES,
    Attachment,
    ChatRecord,
    Conversation,
    MessageRecord,
    new_id,
)
from dflash_desktop.chats.sections import branch_of
from dflash_desktop.chats.titles import title_of

FORMAT = "dflash-desktop-chats"
VERSION = 1


def to_json(conversations: Sequence[Conversation], *, all_branches: bool) -> str:
    """Chats as JSON text. Messages are numbered from 1 in each chat."""
    chats = [_chat(one, all_branches=all_branches) for one in conversations]
    return json.dumps({"format": FORMAT, "version": VERSION, "chats": chats}, ensure_ascii=False, indent=1) + "\n"


def _chat(conversation: Conversation, *, all_branches: bool) -> dict[str, Any]:
    chat = conversation.chat
    messages = conversation.messages if all_branches else branch_of(conversation)
    numbers = {message.message_id: number for number, message in enumerate(messages, 1)}
    return {
        "title": chat.title,
        "has_own_title": chat.has_own_title,
        "is_pinned": chat.is_pinned,
        "created": _time(chat.created_s),
        "changed": _time(chat.changed_s),
        "settings": {name: value for name, value in chat.settings.items() if name != "first_sent_id"},
        "messages": [_message(message, numbers) for message in messages],
    }


def _message(message: MessageRecord, numbers: Mapping[int, int]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "number": numbers[message.message_id],
        "parent": numbers.get(message.parent_id) if message.parent_id is not None else None,
        "role": message.role,
        "text": message.text,
        "created": _time(message.created_s),
        "state": message.state,
        "shown_order": message.shown_order,
    }
    if message.reasoning:
        made["reasoning"] = message.reasoning
        made["reasoning_s"] = message.reasoning_s
    if message.error:
        made["error"] = message.error
    if message.facts:
        made["facts"] = dict(message.facts)
    if message.accepted_runs:
        made["accepted_runs"] = list(message.accepted_runs)
    if message.attachments:
        made["attachments"] = [
            {"name": one.name, "kind": one.kind, "n_bytes": one.n_bytes, "text": one.text}
            for one in message.attachments
        ]
    return made


def from_json(text: str, file_name: str) -> list[Conversation]:
    """The chats of such a file, under new ids. Raises AppError for a file that is not one."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AppError(f"{file_name} is no JSON file: {error}.") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise AppError(f"{file_name} was not exported by this program: its format is not {FORMAT!r}.")
    if data.get("version") != VERSION:
        raise AppError(f"{file_name} was exported by a newer version of this program. Update it, then import again.")
    chats = data.get("chats")
    if not isinstance(chats, list):
        raise AppError(f"{file_name} is damaged: it has no list of chats.")
    return [_chat_from(chat) for chat in chats if isinstance(chat, dict)]


def _chat_from(chat: Mapping[str, Any]) -> Conversation:
    ids: dict[int, int] = {}
    messages = []
    written = chat.get("messages")
    for entry in written if isinstance(written, list) else []:
        if not isinstance(entry, dict) or entry.get("role") not in ROLES:
            continue
        message_id = new_id()
        parent = entry.get("parent")
        messages.append(_message_from(entry, message_id, ids.get(parent) if isinstance(parent, int) else None))
        if isinstance(entry.get("number"), int):
            ids[entry["number"]] = message_id
    settings = chat.get("settings")
    record = ChatRecord(
        chat_id=new_id(),
        title=_text(chat.get("title")) or next((title_of(message.text) for message in messages), ""),
        has_own_title=bool(chat.get("has_own_title")),
        is_pinned=bool(chat.get("is_pinned")),
        created_s=_seconds(chat.get("created")),
        changed_s=_seconds(chat.get("changed")),
        settings=settings if isinstance(settings, dict) else {},
    )
    return Conversation(record, tuple(messages))


def _message_from(entry: Mapping[str, Any], message_id: int, parent_id: int | None) -> MessageRecord:
    written = entry.get("attachments")
    attachments = [
        rows.attachment_of((one.get("name"), one.get("kind"), one.get("n_bytes"), one.get("text")))
        for one in (written if isinstance(written, list) else [])
        if isinstance(one, dict)
    ]
    order = entry.get("shown_order")
    known: list[Attachment] = attachments
    state = entry.get("state")
    rest = {name: entry[name] for name in ("error", "reasoning_s", "facts", "accepted_runs") if name in entry}
    return rows.message_of(
        (
            message_id,
            parent_id,
            order if isinstance(order, int) else 0,
            entry["role"],
            state if state in STATES and state != "writing" else "done",
            _seconds(entry.get("created")),
            _text(entry.get("text")),
            _text(entry.get("reasoning")),
            json.dumps(rest),
        ),
        known,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _seconds(value: Any) -> float:
    try:
        seconds = datetime.fromisoformat(value).timestamp()
    except (TypeError, ValueError, OverflowError, OSError):
        return 0.0
    return seconds if math.isfinite(seconds) else 0.0
