"""What goes wrong on the way to an answer, and how each dialect words it."""

from __future__ import annotations

from typing import Any, Literal

from dflash_desktop.engine.events import JobFailed

Dialect = Literal["openai", "anthropic", "ollama"]

_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    413: "request_too_large",
    415: "invalid_request_error",
    529: "overloaded_error",
}
# Cline takes every 429 for a rate limit and waits, which is right here. This is the only place that decides it.
_QUEUE_FULL_STATUS = 429


class ApiError(Exception):
    """A refusal with everything that an error envelope can say. `message` is for the person."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str = "invalid_request_error",
        code: str | None = "invalid_value",
        param: str | None = None,
        retry_after_s: int | None = None,
        anthropic_status: int | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.kind = kind
        self.code = code
        self.param = param
        self.retry_after_s = retry_after_s
        self.anthropic_status = anthropic_status or status
        self.extra = extra or {}

    def status_in(self, dialect: Dialect) -> int:
        return self.anthropic_status if dialect == "anthropic" else self.status

    def body(self, dialect: Dialect, request_id: str = "") -> dict[str, Any]:
        """The error object of `dialect`."""
        if dialect == "ollama":
            return {"error": self.message}
        if dialect == "anthropic":
            error = {"type": _ANTHROPIC_TYPES.get(self.anthropic_status, "api_error"), "message": self.message}
            return {"type": "error", "error": error, "request_id": request_id}
        return {
            "error": {
                "message": self.message,
                "type": self.kind,
                "param": self.param,
                "code": self.code,
                **self.extra,
            }
        }


def dialect_of(path: str) -> Dialect:
    """Which error envelope a path speaks."""
    if path.startswith("/v1/messages"):
        return "anthropic"
    if path.startswith("/api/") and not path.startswith(("/api/v0/", "/api/v1/")):
        return "ollama"
    return "openai"


def context_exceeded(n_prompt_tokens: int | str, context_tokens: int, dialect: Dialect = "openai") -> ApiError:
    """The texts that Cline, Roo, Codex and Claude Code look for. A text in place of a number: nobody counted."""
    if dialect == "anthropic":
        text = f"prompt is too long: {n_prompt_tokens} tokens > {context_tokens} maximum"
    else:
        text = (
            f"This model's maximum context length is {context_tokens} tokens. Your request has "
            f"{n_prompt_tokens} input tokens (context length exceeded). Shorten the prompt or load "
            "the model with a larger context."
        )
    return ApiError(text, code="context_length_exceeded", param="messages")


def not_loaded(*, is_loading: bool) -> ApiError:
    text = (
        "The model is still loading. Try again in a few seconds."
        if is_loading
        else "No model is loaded. Load a pair in the app first."
    )
    return ApiError(
        text,
        status=503,
        kind="server_error",
        code="model_not_loaded",
        retry_after_s=5 if is_loading else None,
        anthropic_status=529,
    )


def queue_full(n_waiting: int) -> ApiError:
    """Past the bound: 429 (529 for Anthropic) with Retry-After. The text avoids the words "rate limit"."""
    return ApiError(
        f"The engine is busy and {n_waiting} requests already wait. Try again in a few seconds.",
        status=_QUEUE_FULL_STATUS,
        kind="server_error",
        code="overloaded",
        retry_after_s=5,
        anthropic_status=529,
    )


def may_not_unload() -> ApiError:
    return ApiError(
        "Clients may not unload the model. In the window, Serve > Access > Programs may load models allows it; "
        "dflash-desktop serve does so without --no-reload.",
        status=403,
        kind="permission_error",
        code="not_allowed",
    )


def unknown_model(name: str, known: tuple[str, ...]) -> ApiError:
    listed = ", ".join(known) or "none"
    return ApiError(
        f"There is no model {name!r} here. Models: {listed}.",
        status=404,
        code="model_not_found",
        param="model",
    )


def from_failed_job(failed: JobFailed) -> ApiError:
    """The engine's own verdict as an HTTP error."""
    match failed.kind:
        case "context_exceeded":
            return ApiError(failed.message, code="context_length_exceeded", param="messages")
        case "bad_request":
            return ApiError(failed.message)
        case "no_pair":
            return not_loaded(is_loading=False)
        case "out_of_memory":
            return ApiError(
                failed.message,
                status=503,
                kind="server_error",
                code="insufficient_vram",
                anthropic_status=500,
            )
        case _:
            return ApiError(failed.message, status=500, kind="server_error", code="engine_error")
