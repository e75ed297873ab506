"""Request bodies: JSON within limits, typed where it matters, unknown members noted and ignored."""

from __future__ import annotations

import codecs
import re
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from dflash_desktop.server.chat import SamplingAsk
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.inspector import Meta, client_of

Body = TypeVar("Body", bound=msgspec.Struct)

_AT = re.compile(r"^(.*?)(?: - at `(?:key in )?\$(.*?)`)?$", re.DOTALL)
_DEPTH = 128
_MOST_WHOLE = 2**53  # beyond it a float is no exact number
_TYPE_WORDS = {
    "int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false", "array": "a list",
    "object": "an object", "null": "null",
}  # fmt: skip
_TYPES = re.compile(rf"`((?:{'|'.join(_TYPE_WORDS)})(?: \| (?:{'|'.join(_TYPE_WORDS)}))*)`")
_MENDED_BYTES = 4 * 2**20  # of a body; more would take long, and conversations are smaller
# A pair of surrogates, or (second group) half of one; the first group is what escapes a backslash before it.
_SURROGATES = re.compile(
    rb"(?<!\\)((?:\\\\)*)(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2}))"
)


class SamplingBody(msgspec.Struct):
    """The members about sampling and PFlash that all dialects share. Subclasses add their own."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: float | None = None
    min_p: float | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repeat_penalty: float | None = None
    repetition_penalty: float | None = None
    pflash: Any = None

    def sampling(self) -> SamplingAsk:
        return SamplingAsk(
            temperature=self.temperature,
            top_k=None if self.top_k is None else int(min(max(self.top_k, 0), 1_000_000)),
            top_p=self.top_p,
            min_p=self.min_p,
            repeat_penalty=self.repeat_penalty if self.repeat_penalty is not None else self.repetition_penalty,
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
            seed=self.seed if self.seed is not None and self.seed >= 0 else None,
        )


def _decoded(raw: bytes) -> Any:
    """Clients that cut a text at a fixed length cut emoji in two; the half stays in the history of all that follows."""
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        if len(raw) > _MENDED_BYTES:
            raise
        mended = _SURROGATES.sub(lambda match: match[0] if match[2] is None else match[1] + rb"\ufffd", raw)
        if mended == raw:
            raise
        return msgspec.json.decode(mended)


async def read_object(request: Request) -> dict[str, Any]:
    """The body as a JSON object; raise ApiError saying what was expected. An empty body is an empty object."""
    raw = (await request.body()).removeprefix(codecs.BOM_UTF8)
    return object_of(raw) if raw.strip() else {}


def object_of(raw: bytes) -> dict[str, Any]:
    """`raw` as a JSON object within the limits; raise ApiError saying what was expected."""
    try:
        value = _decoded(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError(f"The body is no valid JSON: {error}.", code="invalid_json") from None
    except RecursionError:
        raise _too_deep() from None
    if not isinstance(value, dict):
        raise ApiError("The body must be a JSON object.", code="invalid_json")
    if is_too_deep(value):
        raise _too_deep()
    return value


def typed(body: dict[str, Any], kind: type[Body], notes: list[str]) -> Body:
    """`body` as `kind`; raise ApiError naming the member that does not fit."""
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    unknown = sorted(key for key in body if key not in known)
    if unknown:
        notes.append("ignored members: " + ", ".join(key[:40] for key in unknown[:20]))
    try:
        return msgspec.convert({key: _whole(value) for key, value in body.items()}, kind)
    except msgspec.ValidationError as error:
        match = _AT.match(str(error))
        text, where = (match.group(1), match.group(2)) if match is not None else (str(error), None)
        param = (where or "").lstrip(".") or None
        raise ApiError(f"{param or 'body'}: {_in_words(text)}.", param=param) from None


def _whole(value: Any) -> Any:
    """Some languages have one kind of number and write 64 as 64.0."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _MOST_WHOLE else value


def _in_words(text: str) -> str:
    """msgspec's sentence with JSON's types as people call them."""
    return _TYPES.sub(lambda match: " or ".join(_TYPE_WORDS[each] for each in match[1].split(" | ")), text)


def peer_of(request: Request) -> str:
    return request.client.host if request.client is not None else ""


def meta_of(request: Request, first_words: str = "") -> Meta:
    agent = request.headers.get("user-agent", "")[:200]
    path = request.url.path
    return Meta(
        request_id=request.state.request_id,
        client=client_of(agent, path, first_words),
        user_agent=agent,
        path=path,
        peer=peer_of(request),
    )


def first_words(messages: object) -> str:
    """The start of a conversation's first text, by which some clients are told apart."""
    if isinstance(messages, list) and messages and isinstance(messages[0], dict):
        content = messages[0].get("content")
        if isinstance(content, list) and content and isinstance(content[0], dict):
            content = content[0].get("text")
        if isinstance(content, str):
            return content[:100]
    return ""


def positive(value: int | None) -> int:
    """A token limit; missing, 0 and negative mean the room left."""
    return min(value, 1 << 30) if value is not None and value > 0 else 0


def stop_strings(stop: str | list[str] | None) -> tuple[str, ...]:
    listed = [stop] if isinstance(stop, str) else stop or []
    return tuple(dict.fromkeys(each for each in listed if each))[:64]


def is_too_deep(value: object) -> bool:
    """Whether it is nested deeper than we and the templates follow."""
    level: list[object] = [value]
    for _ in range(_DEPTH):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _too_deep() -> ApiError:
    return ApiError(f"The body is nested deeper than {_DEPTH} levels.", code="invalid_json")
