"""Templates against transformers itself, whose prompts models were trained on (B067)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from dflash_desktop.binding.native import NativeFile
from dflash_desktop.engine.marked import mark
from dflash_desktop.engine.template import ChatTemplate
from support.fixtures import QWEN35_MINI
from support.native_library import load_library
from support.templates import CONVERSATIONS, TEMPLATES, TOOL_CONVERSATION, TOOLS

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.oracle


def templates() -> Mapping[str, str]:
    with NativeFile(load_library(), QWEN35_MINI) as file:
        return {**TEMPLATES, "smollm2": str(file.value("tokenizer.chat_template"))}


def test_templates_render_byte_by_byte_as_in_transformers() -> None:
    utils = pytest.importorskip("transformers.utils.chat_template_utils")
    n_compared = 0
    for name, source in templates().items():
        for messages in [*CONVERSATIONS.values(), TOOL_CONVERSATION]:
            copy: list[dict[str, Any]] = json.loads(json.dumps(messages))
            for message in copy:
                for call in message.get("tool_calls", ()):
                    call["function"]["arguments"] = json.loads(call["function"]["arguments"])
            for tools in (None, TOOLS):
                special = {"bos_token": "<s>", "eos_token": "</s>"}
                try:
                    rendered, _ = utils.render_jinja_template(
                        [copy], tools=tools, chat_template=source, add_generation_prompt=True, **special
                    )
                except Exception:  # noqa: BLE001  a refusal of the template; which type, depends on it
                    continue
                ours = ChatTemplate(source).render({
                    "messages": [{k: v if k == "role" else mark(v) for k, v in m.items()} for m in copy],
                    "tools": mark(tools), "documents": None, "add_generation_prompt": True, **special,
                })  # fmt: skip
                assert str.__str__(ours) == rendered[0], (name, messages)
                n_compared += 1
    assert n_compared > 100
