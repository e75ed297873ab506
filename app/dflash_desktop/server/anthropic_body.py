"""Reads the body of an Anthropic Messages request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dflash_desktop.server.bodies import SamplingBody, positive, stop_strings, typed
from dflash_desktop.server.chat import ChatRequest, ResponseFormat, Thinking, ToolChoice
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.messages import IMAGE_OMITTED, arrange, content_text, function_tool, tool_call
from dflash_desktop.server.openai_body import response_format
from dflash_desktop.server.pflash import pflash_ask

_BILLING = "x-anthropic-billing-header:"  # its value moves with each request and would spoil the prefix cache
_SKIPPED = frozenset({"redacted_thinking", "server_tool_use", "web_search_tool_result", "container_upload"})


class MessagesBody(SamplingBody):
    """Members with a meaning for us; the second block is accepted and has none."""

    model: str | None = None
    messages: Any = None
    max_tokens: int | None = None
    system: str | list[Any] | None = None
    tools: list[Any] | None = None
    tool_choice: dict[str, Any] | None = None
    thinking: dict[str, Any] | None = None
    stop_sequences: list[str] | None = None
    stream: bool | None = None

    output_config: dict[str, Any] | None = None
    output_format: dict[str, Any] | None = None

    metadata: Any = None
    context_management: Any = None
    service_tier: Any = None
    container: Any = None
    mcp_servers: Any = None
    cache_control: Any = None
    betas: Any = None


def count_request(raw: dict[str, Any]) -> ChatRequest:
    """The body of count_tokens: the same without the reply's own members."""
    return messages_request({**raw, "stream": False})


def messages_request(raw: dict[str, Any]) -> ChatRequest:
    notes: list[str] = []
    body = typed(raw, MessagesBody, notes)
    messages = system_turns(body.system, notes)
    listed = body.messages
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        raise ApiError("messages must be a list with at least one message.", param="messages")
    last_user = max((i for i, each in enumerate(listed) if _is_user(each)), default=-1)
    for i, each in enumerate(listed):
        messages += message_turns(each, f"messages[{i}]", notes, is_last_user=i == last_user)
    conversation = arrange(messages, notes)
    tools = _tools(body.tools or [], notes)
    choice, is_parallel = _tool_choice(body.tool_choice, tools)
    return ChatRequest(
        model_asked=body.model or "",
        messages=conversation.messages,
        continue_last=conversation.continue_last,
        tools=tools,
        tool_choice=choice,
        is_parallel=is_parallel,
        sampling=body.sampling(),
        pflash=pflash_ask(body.pflash),
        max_tokens=positive(body.max_tokens),
        stop=stop_strings(body.stop_sequences),
        response_format=_format(body),
        thinking=_thinking(body.thinking, (body.output_config or {}).get("effort")),
        is_stream=bool(body.stream),
        notes=tuple(conversation.notes),
    )


def _is_user(message: object) -> bool:
    return isinstance(message, Mapping) and message.get("role") == "user"


def system_turns(system: str | list[Any] | None, notes: list[str]) -> list[dict[str, Any]]:
    """The system text as at most one turn."""
    blocks = [system] if isinstance(system, str) else system or []
    texts = [content_text([block], "system", notes) for block in blocks]
    kept = [text for text in texts if not text.startswith(_BILLING)]
    return [{"role": "system", "content": "\n".join(kept)}] if kept else []


def message_turns(message: object, param: str, notes: list[str], *, is_last_user: bool) -> list[dict[str, Any]]:
    """One message as one or more turns: tool results come first, each in a turn of its own."""
    if not isinstance(message, Mapping):
        raise ApiError(f"{param} must be an object with role and content.", param=param)
    role, content = message.get("role"), message.get("content")
    if role == "system":
        return [{"role": "system", "content": content_text(content, f"{param}.content", notes)}]
    if role not in ("user", "assistant"):
        raise ApiError(f"{param}.role must be user or assistant.", param=f"{param}.role")
    if content is not None and not isinstance(content, str | list):
        raise ApiError(f"{param}.content must be a string or a list of blocks.", param=f"{param}.content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    results: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    thoughts: list[str] = []
    rest: list[object] = []
    for i, block in enumerate(blocks):
        where = f"{param}.content[{i}]"
        kind = block.get("type") if isinstance(block, Mapping) else None
        if not isinstance(block, Mapping):
            raise ApiError(f"{where} must be an object with a type.", param=where)
        if kind == "tool_result":
            results.append(_result(block, where, notes))
        elif kind == "tool_use":
            if not isinstance(block.get("name"), str):
                raise ApiError(f"{where}.name must be a text.", param=f"{where}.name")
            calls.append(tool_call(block["name"], block.get("input"), block.get("id")))
        elif kind == "thinking":
            thoughts.append(str(block.get("thinking") or ""))
        elif isinstance(kind, str) and kind in _SKIPPED:
            notes.append(f"a block of type {kind!r} was skipped")
        else:
            rest.append(block)
    text = content_text(rest, f"{param}.content", notes, refuses_images=is_last_user and not results)
    if role == "user":
        return results if results and not text else [*results, {"role": "user", "content": text}]
    turn: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        turn["tool_calls"] = calls
    if any(thoughts):
        turn["reasoning_content"] = "\n".join(each for each in thoughts if each)
    return [turn]


def _result(block: Mapping[str, Any], where: str, notes: list[str]) -> dict[str, Any]:
    text = content_text(block.get("content"), f"{where}.content", notes)
    if block.get("is_error") is True:
        text = f"Error: {text}"
    turn = {"role": "tool", "content": text or ("" if block.get("content") in (None, "", []) else IMAGE_OMITTED)}
    if isinstance(block.get("tool_use_id"), str):
        turn["tool_call_id"] = block["tool_use_id"]
    return turn


def _tools(listed: list[Any], notes: list[str]) -> list[dict[str, Any]]:
    tools = []
    for i, each in enumerate(listed):
        if not isinstance(each, Mapping):
            raise ApiError(f"tools[{i}] must be an object.", param=f"tools[{i}]")
        if each.get("type") not in (None, "custom"):
            notes.append(f"a tool of type {str(each.get('type'))[:40]!r} was skipped")
            continue
        tools.append(function_tool(each, f"tools[{i}]", schema_key="input_schema"))
    return tools


def _tool_choice(choice: dict[str, Any] | None, tools: list[dict[str, Any]]) -> tuple[ToolChoice, bool]:
    """The choice, and whether several calls are allowed."""
    if choice is None:
        return ToolChoice(), True
    is_parallel = choice.get("disable_parallel_tool_use") is not True
    kind = choice.get("type", "auto")
    if kind == "any":
        return ToolChoice("required" if tools else "auto"), is_parallel
    if kind == "tool":
        name = choice.get("name")
        if not any(tool["function"]["name"] == name for tool in tools):
            raise ApiError(f"tool_choice names {str(name)[:60]!r}, which is not among tools.", param="tool_choice")
        return ToolChoice("required", str(name)), is_parallel
    if kind not in ("auto", "none"):
        raise ApiError("tool_choice.type must be auto, any, tool or none.", param="tool_choice.type")
    return ToolChoice("none" if kind == "none" else "auto"), is_parallel


def _format(body: MessagesBody) -> ResponseFormat:
    """JSON by a schema: `output_config.format`, which was called `output_format` before."""
    wanted, param = (body.output_config or {}).get("format"), "output_config.format"
    if wanted is None:
        wanted, param = body.output_format, "output_format"
    if wanted is not None and not isinstance(wanted, Mapping):
        raise ApiError(f"{param} must be an object.", param=param)
    return response_format(wanted, param=param)


def _thinking(thinking: dict[str, Any] | None, effort: object) -> Thinking:
    """Off unless asked, as in the original service; `effort` then says how much."""
    kind = thinking.get("type") if thinking is not None else None
    if thinking is None or kind not in ("enabled", "adaptive"):
        return Thinking(is_on=False)
    budget = thinking.get("budget_tokens")
    is_number = isinstance(budget, int) and not isinstance(budget, bool) and budget > 0
    tier = effort if isinstance(effort, str) and effort else None
    return Thinking(is_on=True, effort=tier, budget_tokens=budget if is_number else None)
