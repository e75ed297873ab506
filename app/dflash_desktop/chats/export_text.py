"""Chats as Markdown and as HTML, for people and other programs to read."""

from __future__ import annotations

import html
import re

from dflash_desktop.chats.records import Conversation, MessageRecord
from dflash_desktop.chats.sections import ExportWords, Section, sections_of

_FENCES = re.compile(r"`{3,}")

_STYLE = """
:root { color-scheme: light dark; }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.6 system-ui, sans-serif; }
header p, .facts, .when { color: #777; font-size: 13px; }
h2 { font-size: 15px; margin: 2rem 0 .5rem; }
h2.user { text-align: right; }
article.user { background: rgba(90, 100, 220, .12); border-radius: 12px; padding: .2rem 1rem; margin-left: 12%; }
pre { background: rgba(128, 128, 128, .12); padding: .8rem 1rem; border-radius: 8px; overflow-x: auto; }
code { font-family: ui-monospace, monospace; font-size: 14px; }
table { border-collapse: collapse; } td, th { border-bottom: 1px solid #9995; padding: .3rem .8rem; text-align: left; }
details { color: #777; } blockquote { border-left: 3px solid #9997; margin-left: 0; padding-left: 1rem; color: #777; }
.error { color: #b3262b; } hr { border: 0; border-top: 1px solid #9995; margin: 3rem 0; }
"""


def to_markdown(conversation: Conversation, words: ExportWords, *, all_branches: bool) -> str:
    """One chat as Markdown. What the model wrote stays as it wrote it."""
    chat = conversation.chat
    parts = [f"# {_one_line(chat.title)}", f"*{words.when(chat.created_s)}*"]
    for section in sections_of(conversation, all_branches=all_branches):
        if section.version is not None:
            parts.append("---")
        for place, message in enumerate(section.messages):
            parts.append(f"## {_heading(message, words, section, place)}")
            parts += _markdown_body(message, words)
    return "\n\n".join(parts) + "\n"


def _markdown_body(message: MessageRecord, words: ExportWords) -> list[str]:
    parts = []
    if message.reasoning:
        quoted = "\n".join(f"> {line}".rstrip() for line in message.reasoning.split("\n"))
        parts.append(f"> **{words.thoughts}**\n>\n{quoted}")
    for attachment in message.attachments:
        fence = "`" * (1 + max([2, *(len(mark) for mark in _FENCES.findall(attachment.text))]))
        parts.append(f"**{words.attached}** {_one_line(attachment.name)}\n\n{fence}\n{attachment.text}\n{fence}")
    if message.text:
        parts.append(message.text)
    if message.error:
        parts.append(f"**{_one_line(message.error)}**")
    facts = words.facts(message.facts)
    if facts:
        parts.append(f"*{_one_line(facts)}*")
    return parts


def to_html(conversation: Conversation, words: ExportWords, *, all_branches: bool, is_plain: bool = False) -> str:
    """One chat as a page that needs nothing else: no script, no network.

    `is_plain`: for readers that know little of HTML, such as Qt's: thoughts unfolded, no style sheet of ours.
    """
    chat = conversation.chat
    parts = []
    for section in sections_of(conversation, all_branches=all_branches):
        if section.version is not None:
            parts.append("<hr>")
        for place, message in enumerate(section.messages):
            parts.append(f'<h2 class="{message.role}">{html.escape(_heading(message, words, section, place))}</h2>')
            parts.append(_html_body(message, words, is_plain=is_plain))
    title = html.escape(chat.title)
    head = f'<meta charset="utf-8"><title>{title}</title>'
    if not is_plain:
        head += f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
    when = html.escape(words.when(chat.created_s))
    body = "\n".join(parts)
    header = f"<header><h1>{title}</h1><p>{when}</p></header>"
    return f"<!doctype html><html><head>{head}</head><body>{header}\n{body}\n</body></html>\n"


def _html_body(message: MessageRecord, words: ExportWords, *, is_plain: bool) -> str:
    parts = []
    if message.reasoning:
        inner = _html_of(message.reasoning)
        thoughts = html.escape(words.thoughts)
        parts.append(
            f"<blockquote><p><b>{thoughts}</b></p>{inner}</blockquote>"
            if is_plain
            else f"<details><summary>{thoughts}</summary>{inner}</details>"
        )
    for attachment in message.attachments:
        label = html.escape(f"{words.attached} {attachment.name}".strip())
        parts.append(f"<p><b>{label}</b></p><pre>{html.escape(attachment.text)}</pre>")
    if message.text:
        is_typed = message.role in ("user", "system")
        parts.append(_paragraphs(message.text) if is_typed else _html_of(message.text))
    if message.error:
        parts.append(f'<p class="error">{html.escape(message.error)}</p>')
    facts = words.facts(message.facts)
    if facts:
        parts.append(f'<p class="facts">{html.escape(facts)}</p>')
    return f'<article class="{message.role}">{"".join(parts)}</article>'


def _html_of(markdown: str) -> str:
    """Markdown as HTML; tags that the model wrote are shown and never run, links of odd kinds stay text."""
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    reader.disable("image")  # a picture would be fetched when somebody opens the file
    return str(reader.render(markdown))


def _paragraphs(text: str) -> str:
    pieces = re.split(r"\n{2,}", text)
    return "".join("<p>" + html.escape(piece).replace("\n", "<br>") + "</p>" for piece in pieces)


def _heading(message: MessageRecord, words: ExportWords, section: Section, place: int) -> str:
    role = words.roles[message.role]
    if place == 0 and section.version is not None:
        return f"{role} · {words.version.format(*section.version)}"
    return role


def _one_line(text: str) -> str:
    return " ".join(text.split())
