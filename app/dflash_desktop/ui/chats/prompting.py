"""What the engine is asked for a conversation: messages for the template, with what was attached marked for PFlash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dflash_desktop.engine.pflash.chat import ATTACHED, FRAME
from dflash_desktop.engine.pflash.options import PflashOptions
from dflash_desktop.ui.chats.messages import Message, prompt_messages, sent_text
from dflash_desktop.ui.engine.pflash_choice import PflashChoice


@dataclass(frozen=True, slots=True)
class _Part:
    text: str
    mark: bool | str = False  # what ATTACHED is for it; False: the person's own words
    is_glued: bool = False  # to the part before, by one end of a line instead of two


@dataclass(frozen=True, slots=True)
class Asked:
    """Messages for the template, and what may be left out of them."""

    rows: list[dict[str, Any]]
    pflash: PflashOptions


def asked_for(messages: Sequence[Message], system_prompt: str, choice: PflashChoice, options: PflashOptions) -> Asked:
    """`options` are the choice's. With PFlash off the messages are plain text, unless one of them was sent shortened:
    that one stays as it was sent, and all others whole."""
    if choice.mode == "off" and not any(message.keep is not None and message.keep < 1 for message in messages):
        return Asked(prompt_messages(messages, system_prompt), PflashOptions())
    rows: list[list[_Part]] = []
    roles: list[str] = []
    keeps: list[float | None] = []
    if system_prompt.strip():
        rows, roles, keeps = [[_Part(system_prompt)]], ["system"], [None]
    for message in messages:
        if message.role == "assistant" and not sent_text(message):
            continue
        if roles and roles[-1] == message.role:
            rows[-1] += _parts(message)
            keeps[-1] = message.keep if message.keep is not None else keeps[-1]
        else:
            rows.append(_parts(message))
            roles.append(message.role)
            keeps.append(message.keep)
    return Asked(
        [{"role": role, "content": _content(parts)} for role, parts in zip(roles, rows, strict=True)],
        _with_chosen(options, roles, keeps, is_off=choice.mode == "off"),
    )


def _with_chosen(
    options: PflashOptions, roles: Sequence[str], keeps: Sequence[float | None], *, is_off: bool
) -> PflashOptions:
    chosen = []
    for index, (role, keep) in enumerate(zip(roles, keeps, strict=True)):
        if keep is not None or (is_off and role == "user"):
            chosen.append((index, keep if keep is not None else 1.0))
    if is_off:  # and nobody wants to wait for a scorer at each question
        return replace(options, mode="always", chosen=tuple(chosen), recalls=options.keep_loaded)
    return replace(options, chosen=tuple(chosen))


def _parts(message: Message) -> list[_Part]:
    """What sent_text joins, apart."""
    parts = [_Part(message.text)] if message.text else []
    for attachment in message.attachments:
        if attachment.kind == "pasted":
            parts.append(_Part(attachment.text, True))
        else:
            parts.append(_Part(f'<file name="{attachment.name}">', FRAME))
            parts.append(_Part(attachment.text, True, is_glued=True))
            parts.append(_Part("</file>", FRAME, is_glued=True))
    return parts


def _content(parts: Sequence[_Part]) -> str | list[dict[str, Any]]:
    """The same text as one string would have: the engine joins parts by one end of a line, texts stand two apart."""
    texts = [part.text if part.is_glued or not place else f"\n{part.text}" for place, part in enumerate(parts)]
    is_attached = any(part.mark is True for part in parts)
    if not is_attached or not any(part.mark is False and part.text.strip() for part in parts):
        return "\n".join(texts)  # no words of the person's own: they may stand in what was pasted
    return [
        {"type": "text", "text": text, **({ATTACHED: part.mark} if part.mark else {})}
        for text, part in zip(texts, parts, strict=True)
    ]
