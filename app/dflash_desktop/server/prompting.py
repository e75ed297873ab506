"""From a ChatRequest to the token ids the engine gets: template, tools, forced beginnings, thinking."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.requests import ChatPrompt, Constraint
from dflash_desktop.server.cards import thinking_budget
from dflash_desktop.server.chat import ChatRequest, ResponseFormat
from dflash_desktop.server.constraint import GrammarRefused
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.grammar import Thoughts, reply_grammar, with_thoughts
from dflash_desktop.server.models import LoadedModel
from dflash_desktop.server.parsing.reasoning import CLOSE_TAG, opens_thinking
from dflash_desktop.server.parsing.tags import CALL_OPEN, FUNCTION_OPEN
from dflash_desktop.server.replay import Replays

Follow = Callable[[bool], Constraint | None]
"""A constraint for an engine job: for the reply's first one (True), or for one that goes on after closed thoughts."""


@dataclass(frozen=True, slots=True)
class PromptPlan:
    """What the engine reads, and in which state the reply begins. `written` is the part of the reply that we wrote."""

    text: str
    token_ids: tuple[int, ...]
    starts_in_thoughts: bool
    written: str
    tools: Sequence[Mapping[str, Any]]
    think_budget: int | None  # tokens; None: no limit of ours
    notes: tuple[str, ...]
    follow: Follow | None = None  # None: anything goes


def make_plan(request: ChatRequest, model: LoadedModel, replays: Replays) -> PromptPlan:
    """Raise ApiError when the template refuses. Takes milliseconds: call it off the event loop."""
    try:
        return _plan(request, model, replays)
    except AppError as error:
        raise ApiError(str(error), param="messages") from error


def _plan(request: ChatRequest, model: LoadedModel, replays: Replays) -> PromptPlan:
    served, reader = model.served, model.reader
    if request.n_top_logprobs and not served.can_constrain:
        raise ApiError("top_logprobs is not possible with this engine.", code="unsupported_value", param="top_logprobs")
    if request.raw is not None:
        rendered = reader.render(request.raw)
        return PromptPlan(rendered.text, rendered.token_ids, False, "", (), None, request.notes)
    notes = list(request.notes)
    if not served.can_template:
        notes.append("the model file has no chat template: a general one is used")
    tools = request.offered_tools
    is_forced = bool(tools) and request.tool_choice.mode == "required"
    kwargs = dict(request.template_kwargs)
    thinks = False if is_forced else request.thinking.is_on
    if thinks is not None:
        if served.has_thinking:
            kwargs["enable_thinking"] = thinks
        else:
            notes.append("thinking was asked on or off, but this model's template has no switch for it")
    messages: Sequence[Mapping[str, Any]] = request.messages
    if request.response_format.kind != "text":
        messages = with_system_text(messages, format_instruction(request.response_format))
    if tools and not served.has_tools:
        messages = tools_as_text(messages, tools)
        notes.append("the model's template knows no tools: they are described in the system text")
    prompt_tools = tools if served.has_tools else ()
    prompt = ChatPrompt(messages, prompt_tools, kwargs, continue_last=request.continue_last)
    rendered = replays.render(prompt, reader)
    starts_in_thoughts = opens_thinking(rendered.text) and not request.continue_last
    written = header = ""
    if is_forced and not request.continue_last:
        header = written = _call_header(rendered.text, request.tool_choice.name)
        if starts_in_thoughts:
            written = f"\n{CLOSE_TAG}\n\n{header}"
    follow = None
    if is_forced or request.response_format.kind != "text":
        may_think = served.has_thinking and thinks is not False and not header
        thoughts: Thoughts = "opened" if starts_in_thoughts and not header else "may_open" if may_think else "none"
        follow = _constraint(request, model, header, notes, thoughts=thoughts, prompt_text=rendered.text)
        if follow is None and not header and _begins_with_brace(request) and not starts_in_thoughts:
            written = "{"
    token_ids = rendered.token_ids
    if written:
        token_ids += reader.tokenize(written, has_control_tokens=True)
    budget = thinking_budget(served, request) if starts_in_thoughts else None
    text = rendered.text + written
    return PromptPlan(text, token_ids, starts_in_thoughts, written, tools, budget, tuple(notes), follow)


def _constraint(
    request: ChatRequest, model: LoadedModel, header: str, notes: list[str], *, thoughts: Thoughts, prompt_text: str
) -> Follow | None:
    """How the reply is held to its format; None, with a note, where that cannot be."""
    writes_blocks = FUNCTION_OPEN in prompt_text
    text = reply_grammar(request, writes_blocks=writes_blocks) if not request.continue_last else None
    grammars = model.grammars() if text is not None else None
    if text is None or grammars is None:
        notes.append("the answer's format is asked for in the prompt and checked; it is not enforced token by token")
        return None
    header_ids = model.reader.tokenize(header, has_control_tokens=True) if header else ()
    try:
        plain = grammars.compile(text)
        first = plain if thoughts == "none" else grammars.compile(with_thoughts(text, thoughts))
    except GrammarRefused as refused:
        notes.append(f"the format is checked and not enforced token by token: {refused}")
        return None
    if first.follow(header_ids) is None:
        notes.append("the format is checked and not enforced token by token: it does not fit the model's call syntax")
        return None
    notes.append("the answer's format is enforced token by token")
    notes += [f"not enforced, only checked: {warning}" for warning in plain.warnings]
    return lambda is_first: first.follow(header_ids) if is_first else plain.follow()


def _call_header(prompt_text: str, name: str | None) -> str:
    """The beginning of a call in the syntax that the template teaches."""
    if FUNCTION_OPEN in prompt_text:
        return f"{CALL_OPEN}\n{FUNCTION_OPEN}" + (f"{name}>\n" if name else "")
    return f'{CALL_OPEN}\n{{"name": "' + (f'{name}", "arguments": ' if name else "")


def _begins_with_brace(request: ChatRequest) -> bool:
    if request.offered_tools or request.continue_last:
        return False
    if request.response_format.kind == "json_object":
        return True
    schema = request.response_format.schema
    return schema is not None and (schema.get("type") == "object" or "properties" in schema)


def format_instruction(response_format: ResponseFormat) -> str:
    if response_format.schema is None:
        return "Answer with one JSON object and nothing else: no code block, no explanation."
    schema = json.dumps(response_format.schema, ensure_ascii=False, sort_keys=True)
    return f"Answer with JSON that fits this JSON schema, and nothing else: no code block, no explanation.\n{schema}"


def with_system_text(messages: Sequence[Mapping[str, Any]], text: str) -> list[Mapping[str, Any]]:
    if messages and messages[0]["role"] == "system":
        return [{"role": "system", "content": f"{messages[0]['content']}\n\n{text}"}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def tools_as_text(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Tools, calls and results as plain text in the Hermes form, for templates that know none of them."""
    listed = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    text = (
        "You may call functions. Their signatures:\n<tools>\n" + listed + "\n</tools>\n"
        "To call one, answer with\n<tool_call>\n"
        '{"name": "FUNCTION", "arguments": {"ARGUMENT": "VALUE"}}\n</tool_call>'
    )
    turns: list[Mapping[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            result = f"<tool_response>\n{message['content']}\n</tool_response>"
            if turns and turns[-1]["role"] == "user" and turns[-1]["content"].startswith("<tool_response>"):
                turns[-1] = {"role": "user", "content": f"{turns[-1]['content']}\n{result}"}
            else:
                turns.append({"role": "user", "content": result})
        elif message.get("tool_calls"):
            calls = [json.dumps(_plain(call), ensure_ascii=False) for call in message["tool_calls"]]
            parts = [message["content"], *(f"<tool_call>\n{call}\n</tool_call>" for call in calls)]
            turns.append({"role": "assistant", "content": "\n".join(part for part in parts if part)})
        else:
            turns.append(message)
    return with_system_text(turns, text)


def _plain(call: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": call["function"]["name"], "arguments": call["function"]["arguments"]}
