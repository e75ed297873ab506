"""What the UI hears of the server: frozen, past tense, complete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dflash_desktop.server.pflash import PflashFacts
from dflash_desktop.server.sockets import PortOwner

Outcome = Literal["stop", "length", "tool_calls", "context", "cancelled", "failed", "refused"]
Phase = Literal["waiting", "prefill", "decode"]


@dataclass(frozen=True, slots=True)
class ServerStarted:
    """The sockets are open and the server answers. `addresses` are `http://...`, IPv4 first."""

    addresses: tuple[str, ...]
    port: int
    is_lan: bool
    has_key: bool


@dataclass(frozen=True, slots=True)
class ServerFailed:
    """The server is not running. `message` is for the person; `owner` holds the port, `free_port` is another."""

    message: str
    port: int
    owner: PortOwner | None
    free_port: int | None


@dataclass(frozen=True, slots=True)
class ServerStopped:
    """The sockets are closed and no request is left."""


@dataclass(frozen=True, slots=True)
class ClientSeen:
    """A program listed the models or asked for a reply: the live tick of its card."""

    client: str  # "cline", "codex", "claude_code", ... or "other"
    user_agent: str
    path: str
    at_s: float  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class RequestArrived:
    """A request for a reply was read and is valid. Times are seconds since the epoch."""

    request_id: str
    client: str
    user_agent: str
    path: str
    model_asked: str
    is_stream: bool
    n_messages: int
    n_tools: int
    at_s: float


@dataclass(frozen=True, slots=True)
class RequestRendered:
    """The prompt after templating: what the model will read. Comes again when PFlash has shortened it."""

    request_id: str
    prompt_text: str
    n_prompt_tokens: int
    tool_names: tuple[str, ...]
    max_tokens: int
    temperature: float
    notes: tuple[str, ...]  # what was ignored, replaced or read in a way of our own


@dataclass(frozen=True, slots=True)
class RequestMoved:
    """Where a request is; at most four a second."""

    request_id: str
    phase: Phase
    n_ahead: int
    n_reused_tokens: int
    n_prefilled_tokens: int
    n_prompt_tokens: int
    n_reply_tokens: int
    acceptance_length: float
    decode_tps: float


@dataclass(frozen=True, slots=True)
class RequestEnded:
    """A request is over, well or not. `message` says why when it failed or was refused."""

    request_id: str
    outcome: Outcome
    message: str
    reply_text: str
    reasoning_text: str
    tool_calls: tuple[str, ...]  # name and arguments, one each
    notes: tuple[str, ...]
    n_prompt_tokens: int
    n_reused_tokens: int
    n_reply_tokens: int
    n_steps: int
    n_drafted: int
    n_accepted: int
    acceptance_length: float
    queue_s: float
    ttft_s: float
    prefill_s: float
    decode_s: float
    total_s: float
    pflash: PflashFacts | None = None  # None: switched off


@dataclass(frozen=True, slots=True)
class RequestRefused:
    """A request was answered with an error before any work began: key, origin, body, a full queue. Some are left out
    when there are many. A RequestEnded of the same id says more, where there is one.
    """

    request_id: str
    client: str
    user_agent: str
    path: str
    status: int
    message: str
    at_s: float


@dataclass(frozen=True, slots=True)
class RequestForwarded:
    """The proxy has passed a request on, and the upstream's answer has begun, or `message` says why not."""

    request_id: str
    client: str
    path: str
    status: int  # of the answer; 499: the client left
    message: str
    pflash: PflashFacts | None  # None: not a chat, or switched off
    upstream_s: float  # until the answer began


ServerEvent = (
    ServerStarted
    | ServerFailed
    | ServerStopped
    | ClientSeen
    | RequestArrived
    | RequestRendered
    | RequestMoved
    | RequestEnded
    | RequestRefused
    | RequestForwarded
)

ServerSubscriber = Callable[[ServerEvent], None]
"""Called on the server's thread, in order. Must return quickly and never raise."""
