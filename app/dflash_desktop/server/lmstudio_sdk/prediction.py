"""One prediction: the pieces of a reply as the packets of LM Studio's `predict` channel."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from dflash_desktop.server.bodies import first_words
from dflash_desktop.server.conductor import Conductor
from dflash_desktop.server.figures import lm_studio_reason
from dflash_desktop.server.generation import Run
from dflash_desktop.server.lmstudio_sdk.caller import Caller, Channel
from dflash_desktop.server.lmstudio_sdk.infos import instance_info, load_fields
from dflash_desktop.server.lmstudio_sdk.packets import Query, naming
from dflash_desktop.server.lmstudio_sdk.prediction_body import PredictionBody, openai_messages, prediction_request
from dflash_desktop.server.models import ServedModel
from dflash_desktop.server.pieces import (
    Beat,
    CallArguments,
    CallBroken,
    CallEnded,
    CallStarted,
    Finished,
    Piece,
    Prefilled,
    PromptRead,
    ReasoningPiece,
    TextPiece,
    Usage,
    Waiting,
)
from dflash_desktop.server.presence import ClientGone, while_connected
from dflash_desktop.server.stream import merged

_OPENING, _CLOSING = "<think>\n", "\n</think>\n\n"  # as in our answers with thoughts in their content


async def predict(conductor: Conductor, channel: Channel, body: PredictionBody, caller: Caller) -> None:
    """Answer `channel` until the reply is over or its client has had enough of it."""
    meta = caller.meta(first_words(openai_messages(body.history.messages[:1])))
    conductor.inspector.seen(meta)
    specifier = body.model_specifier
    run: Run | None = None
    try:
        with naming(specifier.query or Query(identifier=specifier.name), conductor.models):
            specifier.check_kind()
            request = prediction_request(body, idle_unload_s=caller.wishes.idle_unload_s)
            run = await conductor.prepare(request, meta, channel.receive)
        await while_connected(channel.receive, _stream(run, channel))
    except ClientGone:
        if not channel.is_cancelled:
            raise
    finally:
        if run is not None:
            run.abandon()
    served = run.served if run is not None else conductor.models.served
    if served is None:  # cancelled while it was being loaded
        raise ClientGone
    reason = lm_studio_reason(run.reply.finish if run is not None else None)
    await channel.send(
        {
            "type": "success",
            "stats": stats(run.usage if run is not None else Usage(), served, reason),
            "modelInfo": instance_info(served),
            "loadModelConfig": load_fields(served, conductor.models.pair),
            "predictionConfig": body.prediction_config_stack.flat(),
        }
    )


async def _stream(run: Run, channel: Channel) -> None:
    encoder = PredictionStream(run)
    async with contextlib.aclosing(run.batches()) as batches:
        async for batch in batches:
            for packet in encoder.encode(merged(batch)):
                await channel.send(packet)


def stats(usage: Usage, served: ServedModel, reason: str) -> dict[str, Any]:
    """LM Studio's figures of a reply, and of its draft where there is one."""
    found: dict[str, Any] = {
        "stopReason": reason,
        "tokensPerSecond": round(usage.decode_tps, 2),
        "promptTokensCount": usage.n_asked_tokens,
        "predictedTokensCount": usage.n_reply_tokens,
        "totalTokensCount": usage.n_asked_tokens + usage.n_reply_tokens,
    }
    if usage.ttft_s > 0:  # known when the engine is done, so not of a reply that was cancelled
        found["timeToFirstTokenSec"] = round(usage.ttft_s, 4)
        found["totalTimeSec"] = round(usage.queue_s + usage.ttft_s + usage.decode_s, 4)
    if served.draft_id is not None and usage.n_drafted:  # it may be there and not used: where it doesn't pay
        found |= {
            "usedDraftModelKey": served.draft_id,
            "totalDraftTokensCount": usage.n_drafted,
            "acceptedDraftTokensCount": usage.n_accepted,
            "rejectedDraftTokensCount": usage.n_drafted - usage.n_accepted,
            "ignoredDraftTokensCount": 0,
        }
    return found


class PredictionStream:
    """Encoder: pieces in, packets out. Thoughts come between tags that are packets of their own."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._share = 0.0  # of the prompt that is read
        self._is_in_thoughts = False
        self._open_calls: set[int] = set()
        self._n_tokens = 0  # told so far
        self._n_accepted = 0

    def encode(self, pieces: list[Piece]) -> list[dict[str, Any]]:
        packets: list[dict[str, Any]] = []
        for piece in pieces:
            packets += self._piece(piece)
        self._count(packets)
        return packets

    def _piece(self, piece: Piece) -> list[dict[str, Any]]:
        match piece:
            case Waiting() | Beat():
                return [self._progress(self._share)]  # SDKs give up on a channel that is silent for a minute
            case PromptRead():
                return [self._progress(piece.n_reused_tokens / max(1, piece.n_prompt_tokens))]
            case Prefilled():
                return [self._progress(piece.n_done_tokens / max(1, piece.n_total_tokens))]
            case ReasoningPiece():
                return [*self._enter_thoughts(), _fragment(piece.text, "reasoning")]
            case TextPiece():
                return [*self._leave_thoughts(), _fragment(piece.text)]
            case CallStarted():
                self._open_calls.add(piece.index)
                return [
                    *self._leave_thoughts(),
                    {"type": "toolCallGenerationStart", "toolCallId": piece.call_id},
                    {"type": "toolCallGenerationNameReceived", "name": piece.name},
                ]
            case CallArguments():
                return [{"type": "toolCallGenerationArgumentFragmentGenerated", "content": piece.text}]
            case CallEnded():
                self._open_calls.discard(piece.index)
                return [{"type": "toolCallGenerationEnd", "toolCallRequest": self._call(piece.index)}]
            case CallBroken():
                self._open_calls.clear()
                return [*self._leave_thoughts(), _broken(f"A tool call could not be read: {piece.reason}.")]
            case Finished():
                unfinished = [_broken("The reply ended inside a tool call.") for _ in self._open_calls]
                return [*self._leave_thoughts(), *unfinished]
            case _:
                return []

    def _count(self, packets: list[dict[str, Any]]) -> None:
        """The tokens since the last time are those of the last text."""
        told = next((each["fragment"] for each in reversed(packets) if _has_text(each)), None)
        if told is not None:
            usage = self._run.usage
            told["tokensCount"] = max(0, usage.n_reply_tokens - self._n_tokens)
            told["containsDrafted"] = usage.n_accepted > self._n_accepted
            self._n_tokens, self._n_accepted = usage.n_reply_tokens, usage.n_accepted

    def _call(self, index: int) -> dict[str, Any]:
        call = self._run.reply.calls[index]
        arguments = json.loads(call.arguments or "{}")
        return {"type": "function", "id": call.call_id, "name": call.name, "arguments": arguments}

    def _progress(self, share: float) -> dict[str, Any]:
        self._share = round(min(1.0, share), 4)
        return {"type": "promptProcessingProgress", "progress": self._share}

    def _enter_thoughts(self) -> list[dict[str, Any]]:
        if self._is_in_thoughts:
            return []
        self._is_in_thoughts = True
        return [_fragment(_OPENING, "reasoningStartTag")]

    def _leave_thoughts(self) -> list[dict[str, Any]]:
        if not self._is_in_thoughts:
            return []
        self._is_in_thoughts = False
        return [_fragment(_CLOSING, "reasoningEndTag")]


def _fragment(text: str, kind: str = "none") -> dict[str, Any]:
    fragment = {"content": text, "tokensCount": 0, "containsDrafted": False, "reasoningType": kind}
    return {"type": "fragment", "fragment": {**fragment, "isStructural": kind.endswith("Tag")}}


def _has_text(packet: dict[str, Any]) -> bool:
    return packet["type"] == "fragment" and not packet["fragment"]["isStructural"]


def _broken(message: str) -> dict[str, Any]:
    return {"type": "toolCallGenerationFailed", "error": {"title": message, "rootTitle": message}}
