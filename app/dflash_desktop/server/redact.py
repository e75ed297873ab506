"""Server events without what people wrote: for logs and for bug reports."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from dflash_desktop.engine.events import Event
from dflash_desktop.server.events import ServerEvent

_PRIVATE = frozenset({"prompt_text", "reply_text", "reasoning_text", "tool_calls", "notes"})


def public_members(event: ServerEvent | Event) -> dict[str, Any]:
    """The members of an event; of private ones only how long they are."""
    members = {}
    for key, value in asdict(event).items():
        if key in _PRIVATE:
            members[f"n_{key}"] = len(value)
        else:
            members[key] = value
    return members


def redacted_copy(events: Iterable[ServerEvent]) -> str:
    """One JSON object per line, ready for a bug report."""
    lines = [{"event": type(event).__name__, **public_members(event)} for event in events]
    return "\n".join(json.dumps(line, ensure_ascii=False, default=str) for line in lines)
