"""Counts and times of a reply as the dialects print them."""

from __future__ import annotations

from typing import Any

from dflash_desktop.server.models import ServedModel
from dflash_desktop.server.pieces import Finished, Reply, Usage


def pflash_member(usage: Usage) -> dict[str, Any]:
    """`pflash`, where a prompt could have been shortened; nothing where that is switched off."""
    return {"pflash": usage.pflash.json()} if usage.pflash is not None else {}


def openai_usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.n_asked_tokens,
        "completion_tokens": usage.n_reply_tokens,
        "total_tokens": usage.n_asked_tokens + usage.n_reply_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.n_reused_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.n_reasoning_tokens},
        **pflash_member(usage),
    }


def timings(usage: Usage) -> dict[str, Any]:
    """llama-server's names, and what speculative decoding adds."""
    return {
        "cache_n": usage.n_reused_tokens,
        "prompt_n": usage.n_prompt_tokens - usage.n_reused_tokens,
        "prompt_ms": round(usage.prefill_s * 1000, 3),
        "prompt_per_second": round(usage.prefill_tps, 2),
        "predicted_n": usage.n_reply_tokens,
        "predicted_ms": round(usage.decode_s * 1000, 3),
        "predicted_per_second": round(usage.decode_tps, 2),
        "draft_n": usage.n_drafted,
        "draft_n_accepted": usage.n_accepted,
        "acceptance_length": round(usage.acceptance_length, 3),
        "drafted": usage.n_drafted,
        "accepted": usage.n_accepted,
        "steps": usage.n_steps,
        "ttft_ms": round(usage.ttft_s * 1000, 3),
        "queue_ms": round(usage.queue_s * 1000, 3),
    }


def lm_studio_stats(reply: Reply, served: ServedModel) -> dict[str, Any]:
    """The extra members of LM Studio's v0 answers."""
    usage = reply.usage
    stats: dict[str, Any] = {
        "tokens_per_second": round(usage.decode_tps, 2),
        "time_to_first_token": round(usage.ttft_s, 4),
        "generation_time": round(usage.decode_s, 4),
        "stop_reason": lm_studio_reason(reply.finish),
    }
    if served.draft_id is not None:
        stats |= {
            "draft_model": served.draft_id,
            "total_draft_tokens_count": usage.n_drafted,
            "accepted_draft_tokens_count": usage.n_accepted,
            "rejected_draft_tokens_count": usage.n_drafted - usage.n_accepted,
            "ignored_draft_tokens_count": 0,
        }
    return {
        "stats": stats,
        "model_info": {
            "arch": served.architecture,
            "quant": served.quantization,
            "format": "gguf",
            "context_length": served.context_tokens,
        },
        "runtime": {"name": "dflash", "version": "1.0.0", "supported_formats": ["gguf"]},
    }


def lm_studio_reason(finish: Finished | None) -> str:
    return {
        "stop": "eosFound",
        "stop_string": "stopStringFound",
        "length": "maxPredictedTokensReached",
        "context": "contextLengthReached",
        "tool_calls": "toolCalls",
        "cancelled": "userStopped",
    }[finish.reason if finish is not None else "cancelled"]
