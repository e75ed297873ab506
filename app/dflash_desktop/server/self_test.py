"""The running server tried out over a real socket, one line per dialect: green only after all of them."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dflash_desktop.server.lmstudio_sdk.probe import call_sdk
from dflash_desktop.server.sockets import has_ipv6

AGENT = "dflash-self-test"
_REPLY_TOKENS = 8
_TOOL = {
    "type": "function",
    "function": {"name": "noop", "description": "Does nothing.", "parameters": {"type": "object", "properties": {}}},
}
_ZED_TYPES = ("llm", "vlm", "embeddings")
_ZED_STATES = ("loaded", "loading", "not-loaded")


@dataclass(frozen=True, slots=True)
class SelfTestLine:
    """One check. `reason` says what was wrong, for the person; empty when it passed."""

    name: str
    passed: bool
    reason: str
    took_s: float


class _Wrong(Exception):
    pass


@dataclass(frozen=True, slots=True)
class _Caller:
    host: str
    port: int
    key: str
    timeout_s: float

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Status and text of the answer."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=self.timeout_s)
        sent = {"User-Agent": AGENT, **(headers or {})}
        if self.key:
            sent["Authorization"] = f"Bearer {self.key}"
        raw = None
        if body is not None:
            raw = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        try:
            connection.request(method, path, raw, sent)
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace")
        finally:
            connection.close()

    def ok(self, method: str, path: str, body: object = None) -> str:
        status, text = self.ask(method, path, body)
        if status != 200:
            raise _Wrong(f"{method} {path} answered {status}: {_message(text)}")
        return str(text)


def check_names() -> tuple[str, ...]:
    """The checks in their order, for whoever shows what is still to come."""
    return tuple(name for name, _ in _CHECKS)


def self_test_lines(port: int, key: str = "", *, timeout_s: float = 120.0) -> Iterator[SelfTestLine]:
    """Try every dialect, a line as each check ends. Each step blocks for as long as a short reply takes."""
    caller = _Caller("127.0.0.1", port, key, timeout_s)
    for name, check in _CHECKS:
        yield _line(name, check, caller)


def run_self_test(port: int, key: str = "", *, timeout_s: float = 120.0) -> list[SelfTestLine]:
    """All lines at once. Blocks: not for the window's thread."""
    return list(self_test_lines(port, key, timeout_s=timeout_s))


def _line(name: str, check: Callable[[_Caller], None], caller: _Caller) -> SelfTestLine:
    started_s = time.monotonic()
    reason = ""
    try:
        check(caller)
    except _Wrong as wrong:
        reason = str(wrong)
    except (OSError, http.client.HTTPException) as error:
        reason = f"no answer: {error}"
    except (ValueError, LookupError, TypeError) as error:
        reason = f"an answer of another shape: {type(error).__name__}: {error}"
    return SelfTestLine(name, not reason, reason, time.monotonic() - started_s)


def _health(caller: _Caller) -> None:
    if json.loads(caller.ok("GET", "/health"))["status"] not in ("ok", "no model loaded"):
        raise _Wrong("the server is not ready")


def _lm_studio_list(caller: _Caller) -> None:
    """As strict as Zed's parser."""
    entries = json.loads(caller.ok("GET", "/api/v0/models"))["data"]
    if not entries:
        raise _Wrong("no model is listed")
    for entry in entries:
        missing = {"id", "object", "type", "publisher", "compatibility_type", "state"} - set(entry)
        if missing or entry["type"] not in _ZED_TYPES or entry["state"] not in _ZED_STATES:
            raise _Wrong(f"an entry that strict clients refuse: {entry.get('id')}")
        if entry["state"] == "loaded" and not entry.get("loaded_context_length"):
            raise _Wrong("the loaded context is missing")


def _lm_studio_sdk(caller: _Caller) -> None:
    """As Roo Code lists models. Where we are not LM Studio there is nothing to test."""
    if caller.ask("GET", "/lmstudio-greeting")[0] == 404:
        return
    infos = call_sdk(
        caller.host,
        caller.port,
        "/llm",
        "listLoaded",
        key=caller.key,
        agent=AGENT,
        timeout_s=caller.timeout_s,
    )
    if not infos or not infos[0]["contextLength"]:
        raise _Wrong("no model with its context is listed")


def _openai_list(caller: _Caller) -> None:
    entries = json.loads(caller.ok("GET", "/v1/models"))["data"]
    if not entries or not entries[0]["context_length"]:
        raise _Wrong("no model with its context is listed")


def _chat(caller: _Caller) -> None:
    text = caller.ok(
        "POST",
        "/v1/chat/completions",
        {
            "messages": [{"role": "user", "content": "Say hello."}],
            "max_tokens": _REPLY_TOKENS,
            "stream": True,
            "tools": [_TOOL],
            "stream_options": {"include_usage": True},
            "enable_thinking": False,
        },
    )
    events = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
    if events[-1:] != ["[DONE]"]:
        raise _Wrong(f"the stream did not end: {_message(events[-1] if events else '')}")
    usage = json.loads(events[-2])["usage"]
    if not 1 <= usage["completion_tokens"] <= _REPLY_TOKENS:
        raise _Wrong(f"{usage['completion_tokens']} tokens came, 1 to {_REPLY_TOKENS} were asked for")


def _messages(caller: _Caller) -> None:
    body = {"model": "", "max_tokens": _REPLY_TOKENS, "messages": [{"role": "user", "content": "Say hello."}]}
    answer = json.loads(caller.ok("POST", "/v1/messages", body))
    if answer["type"] != "message" or not answer["usage"]["output_tokens"]:
        raise _Wrong("the answer has no tokens")


def _responses(caller: _Caller) -> None:
    """Codex's warm-up."""
    answer = json.loads(caller.ok("POST", "/v1/responses", {"input": "", "max_output_tokens": 1}))
    if answer["object"] != "response":
        raise _Wrong("the answer is no response object")


def _ollama(caller: _Caller) -> None:
    if not json.loads(caller.ok("GET", "/api/tags"))["models"]:
        raise _Wrong("no model is listed")


def _preflight(caller: _Caller) -> None:
    headers = {"Origin": f"http://localhost:{caller.port}", "Access-Control-Request-Method": "POST"}
    status, text = caller.ask("OPTIONS", "/v1/chat/completions", None, headers)
    if status != 204:
        raise _Wrong(f"a preflight was answered with {status}: {_message(text)}")
    status, _ = caller.ask("POST", "/v1/chat/completions", {}, {"Origin": "https://example.invalid"})
    if status != 403:
        raise _Wrong(f"a foreign web page was answered with {status} instead of 403")


def _ipv6(caller: _Caller) -> None:
    """`localhost` means ::1 on many machines. A machine without IPv6 has nothing to test."""
    try:
        status, _ = _Caller("::1", caller.port, caller.key, 5.0).ask("GET", "/health")
    except OSError as error:
        if has_ipv6():
            raise _Wrong(f"no answer on ::1: {error}") from error
        return
    if status not in (200, 503):
        raise _Wrong(f"::1 answered {status}")


_CHECKS: tuple[tuple[str, Callable[[_Caller], None]], ...] = (
    ("Health", _health),
    ("IPv6", _ipv6),
    ("LM Studio model list", _lm_studio_list),
    ("LM Studio SDK", _lm_studio_sdk),
    ("OpenAI model list", _openai_list),
    ("OpenAI chat with a tool, streamed", _chat),
    ("Anthropic message", _messages),
    ("OpenAI response (Codex warm-up)", _responses),
    ("Ollama model list", _ollama),
    ("Web page rules", _preflight),
)


def _message(text: str) -> str:
    try:
        error = json.loads(text)["error"]
    except (ValueError, LookupError, TypeError):
        return text[:200]
    return str(error.get("message", error) if isinstance(error, dict) else error)[:200]
