"""Eight clients that ask, leave and come back: every answer must be the one that the request gets alone."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from support.served import Served

_TOPICS = ("a lighthouse", "the sea 海", "two frogs", "a stone bridge", "old maps", "rain", "a clock 🕰", "bread")
_TURNS = ("Say one sentence about {topic}.", "And another one, shorter.", "Now list two words about {topic}.")


@dataclass(frozen=True)
class Ask:
    """A request, and how its answer is read."""

    path: str
    body: dict[str, Any]

    @property
    def key(self) -> str:
        return json.dumps([self.path, {name: value for name, value in self.body.items() if name != "stream"}])


@dataclass
class SoakResult:
    n_answers: int = 0
    n_left: int = 0  # requests whose client went away
    n_refused: int = 0  # 429 and 529
    wrong: list[tuple[str, str, str]] = field(default_factory=list)  # request, answer alone, answer here
    failures: list[str] = field(default_factory=list)
    samples: list[tuple[float, int]] = field(default_factory=list)  # seconds, bytes
    n_cached: int = 0  # answers that reused a part of their prompt
    handles: tuple[int, int] = (0, 0)

    def slope_mib_per_minute(self) -> float:
        """Of a straight line through the second half of the samples: the first half still fills caches."""
        points = self.samples[len(self.samples) // 2 :]
        if len(points) < 3:
            return 0.0
        mean_s = sum(at for at, _ in points) / len(points)
        mean = sum(size for _, size in points) / len(points)
        above = sum((at - mean_s) * (size - mean) for at, size in points)
        below = sum((at - mean_s) ** 2 for at, _ in points)
        return 60 * above / below / 2**20 if below else 0.0


def asks_of(client: int, max_tokens: int) -> list[Ask]:
    """What one client asks: a chat of three turns in each dialect, at temperature 0."""
    topic = _TOPICS[client % len(_TOPICS)]
    found = []
    for n_turns in (1, 2, 3):
        turns: list[dict[str, Any]] = []
        for i in range(n_turns):
            turns.append({"role": "user", "content": _TURNS[i].format(topic=topic)})
            if i < n_turns - 1:
                turns.append({"role": "assistant", "content": f"{topic.capitalize()} is what it is."})
        base = {"temperature": 0, "model": "any"}
        found.append(Ask("/v1/chat/completions", {**base, "messages": turns, "max_tokens": max_tokens}))
        found.append(Ask("/v1/messages", {**base, "messages": turns, "max_tokens": max_tokens}))
        found.append(Ask("/v1/responses", {**base, "input": turns, "max_output_tokens": max_tokens}))
    return found


def send(port: int, ask: Ask, *, stream: bool, leave_after: int | None = None) -> tuple[int, str, int]:
    """Status, text and reused tokens of an answer; with `leave_after` the client goes away after so many bytes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        headers = {"Content-Type": "application/json", "User-Agent": f"soak-{threading.get_ident()}"}
        connection.request("POST", ask.path, json.dumps({**ask.body, "stream": stream}).encode(), headers)
        if leave_after == 0:
            return 0, "", 0
        answer = connection.getresponse()
        if leave_after is not None:
            answer.read(leave_after)
            return 0, "", 0
        raw = answer.read().decode()
        if answer.status != 200:
            return answer.status, raw, 0
        return 200, *(_streamed(ask.path, raw) if stream else _whole(ask.path, json.loads(raw)))
    finally:
        connection.close()


def _whole(path: str, body: Any) -> tuple[str, int]:
    if path == "/v1/messages":
        text = "".join(block.get("text", "") for block in body["content"])
        return text, body["usage"]["cache_read_input_tokens"]
    if path == "/v1/responses":
        text = "".join(part["text"] for item in body["output"] for part in item.get("content", []))
        return text, body["usage"]["input_tokens_details"]["cached_tokens"]
    return body["choices"][0]["message"]["content"], body["usage"]["prompt_tokens_details"]["cached_tokens"]


def _streamed(path: str, raw: str) -> tuple[str, int]:
    lines = [line[6:] for line in raw.split("\n") if line.startswith("data: ") and line != "data: [DONE]"]
    events = [json.loads(line) for line in lines]
    if path == "/v1/messages":
        deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
        return "".join(delta.get("text", "") for delta in deltas), 0
    if path == "/v1/responses":
        return "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta"), 0
    return "".join(event["choices"][0]["delta"].get("content", "") for event in events if event["choices"]), 0


def soak(served: Served, *, seconds: float, n_clients: int = 8, max_tokens: int = 24, seed: int = 1) -> SoakResult:
    """Ask each question once alone, then all at once, over and over, with clients that leave."""
    result = SoakResult()
    alone: dict[str, str] = {}
    for client in range(n_clients):
        for ask in asks_of(client, max_tokens):
            status, text, _ = send(served.port, ask, stream=False)
            if status != 200:
                raise RuntimeError(f"{ask.path} answered {status}: {text[:300]}")
            alone[ask.key] = text
    lock = threading.Lock()
    ends_at = time.monotonic() + seconds
    started = time.monotonic()
    first_handles = served.handles()

    def work(client: int) -> None:
        chance = random.Random(seed * 100 + client)
        asks = asks_of(client, max_tokens)
        while time.monotonic() < ends_at:
            ask, stream = chance.choice(asks), chance.random() < 0.6
            leave_after = chance.choice([0, 1, 200, 700]) if chance.random() < 0.3 else None
            try:
                status, text, n_reused = send(served.port, ask, stream=stream, leave_after=leave_after)
            except (OSError, http.client.HTTPException, ValueError, LookupError) as error:
                with lock:
                    result.failures.append(f"{ask.path}: {type(error).__name__}: {error}")
                continue
            with lock:
                if leave_after is not None:
                    result.n_left += 1
                elif status in {429, 529}:
                    result.n_refused += 1
                elif status != 200:
                    result.failures.append(f"{ask.path}: {status} {text[:200]}")
                else:
                    result.n_answers += 1
                    result.n_cached += n_reused > 0
                    if text != alone[ask.key]:
                        result.wrong.append((ask.key, alone[ask.key], text))

    threads = [threading.Thread(target=work, args=(client,)) for client in range(n_clients)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        result.samples.append((time.monotonic() - started, served.rss_bytes()))
        threads[0].join(min(2.0, seconds / 20))
        if not threads[0].is_alive():
            for thread in threads:
                thread.join()
    result.handles = (first_handles, served.handles())
    return result


def is_idle(served: Served) -> bool:
    """No request holds the engine or waits for it."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    try:
        connection.request("GET", "/status")
        body = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return not body["running"] and not body["waiting"]
