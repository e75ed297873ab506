"""From a conversation to token ids: the model's own chat template, and what to do where it does not fit.

What the person, files and tools wrote stays text: see marked.py. Where a template refuses a conversation that others
accept, the same words are offered again in an order it may know; each way is one function below, tried in turn:

1. as it is: leading system messages merged, "developer" called "system", parts of a message joined by newlines;
2. later system messages at the head of the next user turn;
3. the system text at the head of the first user turn (templates without a system role), neighbours of one role merged.

The first refusal is what is reported when all fail. A file without a template gets ChatML when it has its tokens, else
`Role: text` lines.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinja2.exceptions import TemplateError

from dflash_desktop.base.causes import Cause
from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.marked import Marked, join, mark
from dflash_desktop.engine.requests import ChatPrompt, RawPrompt
from dflash_desktop.engine.template import ChatTemplate
from dflash_desktop.engine.tokens import Tokenizer
from dflash_desktop.engine.vocabulary import ANOTHER_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dflash_desktop.engine.requests import Prompt
    from dflash_desktop.engine.vocabulary import Metadata

Message = dict[str, Any]

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_CUT_HERE = "\U0010fffd"  # a character for private use: marks where an unfinished message ends

_CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_PLAIN = (
    "{% for message in messages %}{{ message.role|capitalize + ': ' + message.content + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"
)


_LONG_CHARS = 2_000_000  # a second of tokenising


class ContextExceeded(AppError):
    """The prompt does not fit the loaded context."""

    def __init__(self, n_tokens: int, context_tokens: int, *, is_least: bool = False) -> None:
        super().__init__(
            f"The prompt has {'at least ' if is_least else ''}{n_tokens} tokens, but the context holds "
            f"{context_tokens}, and the reply needs room too. Shorten it by at least "
            f"{n_tokens - context_tokens + 1} tokens, or load the model with a larger context.",
            cause=Cause(
                "context_exceeded",
                {"prompt_tokens": n_tokens, "context_tokens": context_tokens, "is_least": int(is_least)},
            ),
        )


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt after templating. `text` is what the token ids spell, control tokens included."""

    text: str
    token_ids: tuple[int, ...]


class PromptReader:
    """Template and tokenizer of one model. Read-only after construction: any thread may use it."""

    def __init__(self, metadata: Metadata, file_name: str) -> None:
        """Read both from an opened model file. Raises AppError when the file's tokenizer or template is not usable."""
        self.tokenizer = Tokenizer(metadata, file_name)
        self._file_name = file_name
        source = metadata.value("tokenizer.chat_template")
        tool_source = metadata.value("tokenizer.chat_template.tool_use")
        self.has_template = isinstance(source, str) and bool(source.strip())
        if not self.has_template:
            is_chatml = None not in (self.tokenizer.token_id("<|im_start|>"), self.tokenizer.token_id("<|im_end|>"))
            source = _CHATML if is_chatml else _PLAIN
        self._template = self._compile(str(source))
        self._tool_template = self._compile(tool_source) if isinstance(tool_source, str) else None
        names = self._template.source + (self._tool_template.source if self._tool_template else "")
        self.has_tools = self.has_template and "tools" in names
        self.has_thinking = self.has_template and "enable_thinking" in names

    def render(self, prompt: Prompt, *, context_tokens: int | None = None) -> RenderedPrompt:
        """Text and ids of a prompt. Raises AppError, with the template's reason, when it refuses the conversation.

        With `context_tokens`, raises ContextExceeded for a prompt that leaves no room; for one of many megabytes
        before it is tokenised, which would take long.
        """
        rendered = self._render(prompt, context_tokens)
        if context_tokens is not None and len(rendered.token_ids) >= context_tokens:
            raise ContextExceeded(len(rendered.token_ids), context_tokens)
        return rendered

    def _render(self, prompt: Prompt, context_tokens: int | None) -> RenderedPrompt:
        if isinstance(prompt, ChatPrompt):
            text = self._render_chat(prompt)
            self._check_length(text, context_tokens)
            ids = self.tokenizer.with_bos(self.tokenizer.encode_marked(text))
            return RenderedPrompt(str.__str__(text), tuple(ids))
        if isinstance(prompt, RawPrompt):
            self._check_length(prompt.text, context_tokens)
            ids = self.tokenizer.with_bos(self.tokenizer.encode(prompt.text, parse_special=True))
            return RenderedPrompt(prompt.text, tuple(ids))
        bad = [token for token in prompt.token_ids if not 0 <= token < self.tokenizer.n_vocab]
        if bad:
            raise AppError(f"Token id {bad[0]} is outside this model's vocabulary of {self.tokenizer.n_vocab}.")
        return RenderedPrompt(self.tokenizer.spell(prompt.token_ids).decode("utf-8", "replace"), prompt.token_ids)

    def tokenize(self, text: str, *, has_control_tokens: bool) -> tuple[int, ...]:
        """Token ids of `text`; control tokens are recognised in it only if asked."""
        return tuple(self.tokenizer.encode(text, parse_special=has_control_tokens))

    def detokenize(self, token_ids: Sequence[int]) -> bytes:
        """The bytes that the ids spell, control tokens included."""
        return self.tokenizer.spell(token_ids)

    def _check_length(self, text: str, context_tokens: int | None) -> None:
        least = len(text) // self.tokenizer.longest_token_bytes  # no token spells more characters than it has bytes
        if context_tokens is not None and len(text) > _LONG_CHARS and least >= context_tokens:
            raise ContextExceeded(least, context_tokens, is_least=True)

    def _compile(self, source: str) -> ChatTemplate:
        try:
            return ChatTemplate(source)
        except TemplateError as error:
            raise AppError(f"{self._file_name}: its chat template cannot be used: {error}. {ANOTHER_FILE}") from error

    def _render_chat(self, prompt: ChatPrompt) -> Marked:
        messages = [_message(message, index) for index, message in enumerate(prompt.messages)]
        if not messages:
            raise AppError("There is no message to answer.")
        if prompt.continue_last:
            if messages[-1]["role"] != "assistant":
                raise AppError("Only a last message of the assistant can be continued.")
            messages[-1]["content"] = join((messages[-1]["content"], Marked.user(_CUT_HERE)))
        messages = _merge_leading_system(messages)
        refusal: TemplateError | None = None
        for arrange in (_as_it_is, _system_into_next_turn, _system_into_first_turn):
            arranged = arrange(messages)
            try:
                text = self._run(arranged, prompt)
            except TemplateError as error:
                refusal = refusal or error
                continue
            if arrange is _as_it_is and _forgets_system(messages, text):
                continue
            return self._cut(text) if prompt.continue_last else text
        if refusal is None:
            return self._run(messages, prompt)
        reason = str(refusal).strip().rstrip(".")
        words = f"The model's chat template refuses this conversation: {reason}."
        raise AppError(words, cause=Cause("template_refuses", {"reason": reason})) from refusal

    def _run(self, messages: list[Message], prompt: ChatPrompt) -> Marked:
        template = self._tool_template if prompt.tools and self._tool_template else self._template
        special = {f"{name}_token": text for name, text in self.tokenizer.special_texts.items()}
        return template.render({
            "bos_token": "", "eos_token": "",
            **special,
            **mark(prompt.template_kwargs),
            "messages": messages,
            "tools": mark(prompt.tools) if prompt.tools else None,
            "documents": None,
            "add_generation_prompt": not prompt.continue_last,
        })  # fmt: skip

    def _cut(self, text: Marked) -> Marked:
        at = text.rfind(_CUT_HERE)
        if at < 0:
            raise AppError("The model's chat template leaves the unfinished message out, so it cannot be continued.")
        return text[:at].replace(_CUT_HERE, "")


# ---- messages as templates expect them ------------------------------------------------------------------------


def _message(message: Mapping[str, Any], index: int) -> Message:
    """A copy in plain data: known role, text as content, arguments as objects; None values left out."""
    role = message.get("role")
    if role not in _ROLES:
        raise AppError(f"Message {index + 1} has the role {role!r}; known are {', '.join(_ROLES)}.")
    copy: Message = {
        str(key): mark(value) for key, value in message.items() if value is not None and key not in ("role", "content")
    }
    copy["role"] = "system" if role == "developer" else str(role)
    copy["content"] = Marked.user(content_text(message.get("content")))
    if "tool_calls" in copy:
        copy["tool_calls"] = [_tool_call(call) for call in copy["tool_calls"]]
    return copy


def content_text(content: Any) -> str:
    """The text of a message: a string, nothing, or parts joined by newlines. What is no text is named in its place."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, (list, tuple)):
        raise AppError("A message's content must be text or a list of parts.")
    return "\n".join(_part_text(part) for part in content)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if hasattr(part, "get"):
        for key in ("text", "refusal"):
            if isinstance(part.get(key), str):
                return str(part[key])
        return f"[{part.get('type', 'part')} left out: this model reads text only]"
    raise AppError("Each part of a message's content must be an object with a type.")


def _tool_call(call: Any) -> Any:
    """Arguments as an object: templates walk through them, while the API carries them as JSON text."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
        return call
    try:
        arguments = json.loads(function["arguments"] or "{}")
    except (ValueError, RecursionError):
        return call
    return {**call, "function": {**function, "arguments": mark(arguments)}} if isinstance(arguments, dict) else call


def _merge_leading_system(messages: list[Message]) -> list[Message]:
    n_leading = next((i for i, message in enumerate(messages) if message["role"] != "system"), len(messages))
    if n_leading < 2:
        return messages
    content = _joined([message["content"] for message in messages[:n_leading]])
    return [{**messages[0], "content": content}, *messages[n_leading:]]


def _joined(texts: Sequence[str]) -> Marked:
    return join([text for text in texts if text], Marked.user("\n\n"))


# ---- the ways to arrange a conversation -------------------------------------------------------------------------


def _as_it_is(messages: list[Message]) -> list[Message]:
    return messages


def _system_into_next_turn(messages: list[Message]) -> list[Message]:
    """Later system messages go to the head of the next user turn; after the last one, into a user turn of their own."""
    arranged: list[Message] = []
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "system" and index > 0:
            waiting.append(message["content"])
        elif message["role"] == "user" and waiting:
            arranged.append({**message, "content": _joined([*waiting, message["content"]])})
            waiting = []
        else:
            arranged.append(message)
    if waiting or all(message["role"] == "system" for message in arranged):
        arranged.append({"role": "user", "content": _joined(waiting)})
    return _merge_neighbours(arranged)


def _system_into_first_turn(messages: list[Message]) -> list[Message]:
    """For templates without a system role: its text goes to the head of the first user turn."""
    arranged = _system_into_next_turn(messages)
    if arranged[0]["role"] != "system":
        return arranged
    system, *others = arranged
    first = next((i for i, message in enumerate(others) if message["role"] == "user"), None)
    if first is None:
        return [{**system, "role": "user"}, *others]
    content = _joined([system["content"], others[first]["content"]])
    return [*others[:first], {**others[first], "content": content}, *others[first + 1 :]]


def _merge_neighbours(messages: list[Message]) -> list[Message]:
    """Two user turns in a row become one: many templates want the roles to alternate."""
    merged: list[Message] = []
    for message in messages:
        if merged and message["role"] == merged[-1]["role"] == "user":
            merged[-1] = {**merged[-1], "content": _joined([merged[-1]["content"], message["content"]])}
        else:
            merged.append(message)
    return merged


def _forgets_system(messages: list[Message], text: str) -> bool:
    """Whether a later system message is missing from the prompt: some templates skip what they do not expect."""
    later = [message["content"] for message in messages[1:] if message["role"] == "system"]
    return any(str.strip(content) not in str.__str__(text) for content in later)
