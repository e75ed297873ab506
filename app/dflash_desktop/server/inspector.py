"""Keeps count of requests and tells the UI about each: arrival, prompt, progress, end; also the metrics text."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

from dflash_desktop.engine.events import PrefixCacheUse
from dflash_desktop.server.chat import ChatRequest
from dflash_desktop.server.events import (
    ClientSeen,
    Outcome,
    RequestArrived,
    RequestEnded,
    RequestMoved,
    RequestRefused,
    RequestRendered,
    ServerEvent,
    ServerSubscriber,
)
from dflash_desktop.server.pflash import PflashFacts
from dflash_desktop.server.pieces import Reply, Usage

log = logging.getLogger(__name__)

_MOVE_S = 0.25  # at most four progress events a second and request
_SEEN_S = 1.0


@dataclass(frozen=True, slots=True)
class Meta:
    """Who asks, and over which route."""

    request_id: str
    client: str
    user_agent: str
    path: str
    peer: str

    @property
    def line_key(self) -> str:
        """Requests with the same key count as one client in the waiting line."""
        return f"{self.peer} {self.client} {self.user_agent}"


@dataclass(slots=True)
class Totals:
    """Sums since the server was made; /metrics and /status print them."""

    n_requests: dict[str, int] = field(default_factory=dict)  # by outcome
    n_prompt_tokens: int = 0
    n_reused_tokens: int = 0
    n_reply_tokens: int = 0
    n_steps: int = 0
    n_drafted: int = 0
    n_accepted: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    queue_s: float = 0.0
    n_pflash: dict[str, int] = field(default_factory=dict)  # prompts by what became of them: shortened, whole, failed
    n_pflash_before_tokens: int = 0  # of the shortened ones
    n_pflash_after_tokens: int = 0
    pflash_s: float = 0.0  # loading scorers and scoring
    n_prefix_hits: int = 0  # prompts that got rows back from the prefix cache
    n_restored_tokens: int = 0
    prefix_cache: PrefixCacheUse = PrefixCacheUse()  # after the last prompt
    last: Usage = field(default_factory=Usage)

    def add(self, outcome: Outcome, usage: Usage) -> None:
        self.n_requests[outcome] = self.n_requests.get(outcome, 0) + 1
        self.n_prompt_tokens += usage.n_prompt_tokens
        self.n_reused_tokens += usage.n_reused_tokens
        self.n_reply_tokens += usage.n_reply_tokens
        self.n_steps += usage.n_steps
        self.n_drafted += usage.n_drafted
        self.n_accepted += usage.n_accepted
        self.prefill_s += usage.prefill_s
        self.decode_s += usage.decode_s
        self.queue_s += usage.queue_s
        self.n_prefix_hits += usage.n_restored_tokens > 0
        self.n_restored_tokens += usage.n_restored_tokens
        self.prefix_cache = usage.prefix_cache or self.prefix_cache
        if usage.pflash is not None:
            self.add_pflash(usage.pflash)
        if usage.n_reply_tokens:
            self.last = usage

    def add_pflash(self, facts: PflashFacts) -> None:
        became = "shortened" if facts.is_shortened else "failed" if facts.has_failed else "whole"
        self.n_pflash[became] = self.n_pflash.get(became, 0) + 1
        if facts.is_shortened:
            self.n_pflash_before_tokens += facts.n_before_tokens
            self.n_pflash_after_tokens += facts.n_after_tokens
        self.pflash_s += facts.load_s + facts.score_s

    def prefix_rows(self) -> list[str]:
        """For /metrics."""
        rows = [
            ("prefix_cache_hits_total", "counter", self.n_prefix_hits),
            ("prefix_cache_restored_tokens_total", "counter", self.n_restored_tokens),
            ("prefix_cache_bytes", "gauge", self.prefix_cache.used_bytes),
            ("prefix_cache_limit_bytes", "gauge", self.prefix_cache.most_bytes),
        ]
        return [f"# TYPE dflash_{name} {kind}\ndflash_{name} {value}" for name, kind, value in rows]

    def pflash_rows(self) -> list[str]:
        """For /metrics."""
        sums = [
            ("pflash_tokens_before_total", self.n_pflash_before_tokens),
            ("pflash_tokens_after_total", self.n_pflash_after_tokens),
            ("pflash_seconds_total", self.pflash_s),
        ]
        lines = [f"# TYPE dflash_{name} counter\ndflash_{name} {exact(value)}" for name, value in sums]
        lines.append("# TYPE dflash_pflash_prompts_total counter")
        counts = {"shortened": 0, "whole": 0, "failed": 0, **self.n_pflash}
        return lines + [f'dflash_pflash_prompts_total{{outcome="{key}"}} {n}' for key, n in sorted(counts.items())]


def exact(value: float) -> str:
    """A number for /metrics: counters grow past what six digits can tell apart."""
    return str(value) if isinstance(value, int) else f"{value:.6f}"


class Inspector:
    """One for the life of the server object. Only the server's thread uses it."""

    def __init__(self, subscriber: ServerSubscriber) -> None:
        self._subscriber = subscriber
        self._moved_s: dict[str, float] = {}
        self._seen_s: dict[tuple[str, str], float] = {}
        self._refused_s: dict[str, float] = {}  # by client
        self.totals = Totals()

    @property
    def running(self) -> tuple[str, ...]:
        """Ids of the requests that arrived and have not ended."""
        return tuple(self._moved_s)

    def seen(self, meta: Meta) -> None:
        now = time.monotonic()
        key = (meta.client, meta.path)
        if now - self._seen_s.get(key, -_SEEN_S) >= _SEEN_S and len(self._seen_s) < 10_000:
            self._seen_s[key] = now
            self._tell(ClientSeen(meta.client, meta.user_agent, meta.path, time.time()))

    def arrived(self, meta: Meta, request: ChatRequest) -> None:
        self._moved_s[meta.request_id] = 0.0
        self._tell(
            RequestArrived(
                meta.request_id,
                meta.client,
                meta.user_agent,
                meta.path,
                request.model_asked,
                request.is_stream,
                len(request.messages),
                len(request.tools),
                time.time(),
            )
        )

    def rendered(self, event: RequestRendered) -> None:
        self._tell(event)

    def is_due(self, request_id: str) -> bool:
        """Whether it is time to tell again where the request is."""
        return time.monotonic() - self._moved_s.get(request_id, 0.0) >= _MOVE_S

    def moved(self, event: RequestMoved) -> None:
        self._moved_s[event.request_id] = time.monotonic()
        self._tell(event)

    def ended(
        self,
        meta: Meta,
        outcome: Outcome,
        *,
        reply: Reply,
        usage: Usage,
        total_s: float,
        message: str = "",
        notes: tuple[str, ...] = (),
    ) -> None:
        self._moved_s.pop(meta.request_id, None)
        self.totals.add(outcome, usage)
        calls = tuple(f"{call.name} {call.arguments}" for call in reply.calls)
        self._tell(
            RequestEnded(
                meta.request_id,
                outcome,
                message,
                reply.text,
                reply.reasoning,
                calls,
                notes,
                usage.n_prompt_tokens,
                usage.n_reused_tokens,
                usage.n_reply_tokens,
                usage.n_steps,
                usage.n_drafted,
                usage.n_accepted,
                usage.acceptance_length,
                usage.queue_s,
                usage.ttft_s,
                usage.prefill_s,
                usage.decode_s,
                total_s,
                usage.pflash,
            )
        )

    def refused(self, meta: Meta, status: int, message: str) -> None:
        """A call over a socket was answered with an error; of HTTP the front tells. At most a few times a second."""
        now = time.monotonic()
        if now - self._refused_s.get(meta.client, -_MOVE_S) >= _MOVE_S:
            self._refused_s[meta.client] = now
            self._tell(
                RequestRefused(meta.request_id, meta.client, meta.user_agent, meta.path, status, message, time.time())
            )

    def _tell(self, event: ServerEvent) -> None:
        try:
            self._subscriber(event)
        except Exception:  # a listener's bug must not cost the client its answer
            log.exception("a listener failed on %s", type(event).__name__)


def client_of(user_agent: str, path: str, first_words: str = "") -> str:
    """Which program calls, as its card is named; "other" when nothing tells."""
    agent = user_agent.lower()
    for mark, name in _MARKS:
        if mark in agent:
            return name
    if path == "/api/v0/models" or first_words.startswith("You are Cline"):
        return "cline"
    if first_words.startswith("You are Roo"):
        return "roo_code"
    if path in SDK_PATHS:
        return "lm_studio"
    return "other"


SDK_PATHS = frozenset({"/system", "/llm", "/embedding", "/files", "/repository", "/diagnostics", "/plugins"})
_MARKS = (
    ("dflash-self-test", "self_test"),
    ("roocode", "roo_code"),
    ("roo-code", "roo_code"),
    ("cline", "cline"),
    ("codex", "codex"),
    ("claude-cli", "claude_code"),
    ("claude-code", "claude_code"),
    ("opencode", "opencode"),
    ("qwencode", "qwen_code"),
    ("qwen-code", "qwen_code"),
    ("continue", "continue"),
    ("zed/", "zed"),
    ("githubcopilot", "copilot"),
    ("open-webui", "open_webui"),
    ("hermes", "hermes"),
    ("goose", "goose"),
)
