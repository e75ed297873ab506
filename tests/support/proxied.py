"""What the tests of the compression proxy ask, and a small client that asks it."""

from __future__ import annotations

from typing import Any

from dflash_desktop.engine.pflash.options import PflashOptions
from dflash_desktop.server.events import RequestForwarded
from support.api_server import Api
from support.fixtures import QWEN35_MINI

CHAT = "/v1/chat/completions"
NEEDLE = "The secret code for the blue vault is 7391."
QUESTION = "What is the secret code for the blue vault?"
PARAGRAPHS = [
    f"In {1900 + i} the town council met {i % 7 + 1} times and spoke about roads and bread." for i in range(40)
]
ASKED = "\n\n".join([*PARAGRAPHS[:23], NEEDLE, *PARAGRAPHS[23:], QUESTION])
LONG: dict[str, Any] = {
    "model": "big-model",
    "messages": [{"role": "user", "content": ASKED, "name": "ann"}],
    "seed": 7,
}
SHORT: dict[str, Any] = {"model": "big-model", "messages": [{"role": "user", "content": "Hi"}]}
PICTURE: dict[str, Any] = {
    "role": "user",
    "content": [{"type": "text", "text": ASKED}, {"type": "image_url", "image_url": {"url": "data:"}}],
}
ALWAYS = PflashOptions("always", QWEN35_MINI, "0.2", keep_loaded=True)


class ProxyApi(Api):
    """The small client in front of a proxy."""

    @property
    def forwarded(self) -> list[RequestForwarded]:
        return [event for event in self.events if isinstance(event, RequestForwarded)]
