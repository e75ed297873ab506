"""Reads the body of a Chat Completions request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dflash_desktop.server.bodies import SamplingBody, positive, stop_strings, typed
from dflash_desktop.server.chat import ChatRequest, ResponseFormat, Thinking, ToolChoice
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.messages import function_tools, legacy_tools, normalise
from dflash_desktop.server.pflash import pflash_ask

_MAX_TOP_LOGPROBS = 20


class ChatBody(SamplingBody):
    """Members with a meaning for us; the second block is accepted and has none."""

    model: str | None = None
    messages: Any = None
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stop: str | list[str] | None = None
    tools: list[Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    functions: list[Any] | None = None
    function_call: str | dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None
    reasoning_effort: str | None = None
    reasoning: dict[str, Any] | bool | None = None
    enable_thinking: bool | None = None
    think: bool | str | None = None
    thinking: dict[str, Any] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    n: int | None = None
    return_progress: bool | None = None

    logit_bias: Any = None
    ttl: Any = None
    draft_model: Any = None
    keep_alive: Any = None
    cache_prompt: Any = None
    prompt_cache_key: Any = None
    user: Any = None
    metadata: Any = None
    store: Any = None
    service_tier: Any = None
    verbosity: Any = None
    prediction: Any = None


def chat_request(raw: dict[str, Any]) -> ChatRequest:
    """Check and convert a Chat Completions body; raise ApiError naming the member that is wrong."""
    notes: list[str] = []
    body = typed(raw, ChatBody, notes)
    if body.n is not None and body.n != 1:
        raise ApiError("n must be 1: there is one engine.", code="unsupported_value", param="n")
    conversation = normalise(body.messages)
    notes += conversation.notes
    tools = function_tools(body.tools, notes) if body.tools is not None else legacy_tools(body.functions or [])
    choice = tool_choice(body.tool_choice if body.tool_choice is not None else body.function_call, tools)
    if body.logit_bias:
        notes.append("logit_bias was ignored")
    return ChatRequest(
        model_asked=body.model or "",
        messages=conversation.messages,
        continue_last=conversation.continue_last,
        tools=tools,
        tool_choice=choice,
        is_parallel=body.parallel_tool_calls is not False and not is_legacy(raw),
        sampling=body.sampling(),
        pflash=pflash_ask(body.pflash),
        max_tokens=positive(body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens),
        stop=stop_strings(body.stop),
        response_format=response_format(body.response_format),
        thinking=_thinking(body),
        template_kwargs=_template_kwargs(body.chat_template_kwargs),
        is_stream=bool(body.stream),
        want_logprobs=bool(body.logprobs),
        n_top_logprobs=n_top_logprobs(body.top_logprobs, is_wanted=bool(body.logprobs)),
        idle_unload_s=ttl_s(body.ttl),
        notes=tuple(notes),
    )


def n_top_logprobs(asked: int | None, *, is_wanted: bool) -> int:
    if asked is not None and not 0 <= asked <= _MAX_TOP_LOGPROBS:
        raise ApiError(f"top_logprobs must be 0 to {_MAX_TOP_LOGPROBS}.", param="top_logprobs")
    if asked and not is_wanted:
        raise ApiError("top_logprobs needs logprobs: true.", param="top_logprobs")
    return asked or 0


def is_legacy(raw: Mapping[str, Any]) -> bool:
    """Whether a client speaks of functions, as before there were tools: the answer then does so too, of one call."""
    return raw.get("tools") is None and bool(raw.get("functions"))


def ttl_s(value: object) -> float | None:
    """LM Studio's `ttl`: seconds; anything else has no meaning."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e9:
        return float(value)
    return None


def tool_choice(choice: str | Mapping[str, Any] | None, tools: list[dict[str, Any]]) -> ToolChoice:
    """`auto`, `none`, `required`, or one function; names that are not offered are refused."""
    if choice is None or choice == "auto":
        return ToolChoice()
    if choice == "none":
        return ToolChoice("none")
    if choice in ("required", "any"):
        return ToolChoice("required") if tools else ToolChoice()
    if isinstance(choice, Mapping):
        kind = choice.get("type")
        if kind in ("auto", "none", "required"):
            return tool_choice(str(kind), tools)
        if kind == "allowed_tools":
            inner = choice.get("allowed_tools", choice)
            return tool_choice(inner.get("mode", "auto") if isinstance(inner, Mapping) else "auto", tools)
        function = choice.get("function")
        name = function.get("name") if isinstance(function, Mapping) else choice.get("name")
        if any(tool["function"]["name"] == name for tool in tools):
            return ToolChoice("required", str(name))
        raise ApiError(f"tool_choice names {str(name)[:60]!r}, which is not among tools.", param="tool_choice")
    raise ApiError("tool_choice must be auto, none, required or a function.", param="tool_choice")


def response_format(raw: Mapping[str, Any] | None, *, param: str = "response_format") -> ResponseFormat:
    kind = raw.get("type") if raw is not None else None
    if raw is None or kind in (None, "text"):
        return ResponseFormat()
    if kind == "json_object" and not isinstance(raw.get("schema"), Mapping):
        return ResponseFormat("json_object")
    if kind in ("json_schema", "json_object"):
        inner = raw.get("json_schema", raw)
        schema = inner.get("schema") if isinstance(inner, Mapping) else None
        if not isinstance(schema, Mapping):
            where = f"{param}.json_schema.schema" if "json_schema" in raw else f"{param}.schema"
            raise ApiError(f"{where} must be a JSON schema.", param=where)
        return ResponseFormat("json_schema", schema)
    raise ApiError(f"{param}.type must be text, json_object or json_schema.", param=f"{param}.type")


def effort_thinking(effort: object) -> Thinking:
    """`none` and `minimal` switch thoughts off, any other word on, with its tier."""
    if not isinstance(effort, str) or not effort:
        return Thinking()
    if effort.lower() in {"none", "minimal", "off"}:
        return Thinking(is_on=False)
    return Thinking(is_on=True, effort=None if effort.lower() in {"on", "auto"} else effort)


def _thinking(body: ChatBody) -> Thinking:
    kwargs = body.chat_template_kwargs or {}
    switches: tuple[object, ...] = (body.enable_thinking, kwargs.get("enable_thinking"), body.think)
    effort = body.reasoning_effort
    budget: object = None
    if isinstance(body.reasoning, dict):
        effort = effort or body.reasoning.get("effort")
        budget = body.reasoning.get("max_tokens")
        switches += (body.reasoning.get("enabled"),)
    elif body.reasoning is not None:
        switches += (body.reasoning,)
    if body.thinking is not None:
        kind = body.thinking.get("type")
        switches += ({"enabled": True, "adaptive": True, "disabled": False}.get(str(kind)),)
        budget = body.thinking.get("budget_tokens", budget)
    if isinstance(body.think, str):
        effort = effort or body.think
    limit = budget if isinstance(budget, int) and not isinstance(budget, bool) and budget > 0 else None
    return switched_thinking(effort, switches, limit)


def switched_thinking(effort: object, switches: Iterable[object], budget_tokens: int | None = None) -> Thinking:
    """What an effort and any number of switches mean together: one that says off wins."""
    asked = effort_thinking(effort)
    is_on = asked.is_on
    for switch in switches:
        if isinstance(switch, bool):
            is_on = switch if is_on is None or not switch else is_on
    return Thinking(is_on, asked.effort if is_on else None, budget_tokens)


def _template_kwargs(raw: Mapping[str, Any] | None) -> dict[str, Any]:
    """Plain values only, and none that would replace what the server itself hands to the template."""
    own = {"messages", "tools", "add_generation_prompt", "enable_thinking", "documents"}
    kept = (str, int, float, bool, type(None))
    return {key: value for key, value in (raw or {}).items() if key not in own and isinstance(value, kept)}
