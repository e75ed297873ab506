"""OpenCode: a provider with ids and limits in its JSON settings; it discovers nothing by itself (13.8)."""

from __future__ import annotations

import json

from dflash_desktop.base.phrase import QT_TRANSLATE_NOOP, phrase
from dflash_desktop.clients.card import Card, Snippet
from dflash_desktop.clients.edits import JsonKeys
from dflash_desktop.clients.endpoint import Endpoint, Machine
from dflash_desktop.clients.writer import FileEdit

_SCHEMA = "https://opencode.ai/config.json"


def card(endpoint: Endpoint, machine: Machine) -> Card:
    folder = machine.config / "opencode"
    path = next((folder / name for name in ("opencode.json", "opencode.jsonc") if (folder / name).is_file()), None)
    path = path or folder / "opencode.json"
    whole = {"$schema": _SCHEMA, "provider": {"dflash": provider(endpoint)}, "model": f"dflash/{endpoint.model}"}
    keys: dict[tuple[str, ...], object] = {
        ("$schema",): _SCHEMA,
        ("provider", "dflash"): provider(endpoint),
        ("model",): f"dflash/{endpoint.model}",
    }
    return Card(
        client_id="opencode",
        name="OpenCode",
        is_detected=folder.is_dir() or machine.has_program("opencode"),
        steps=(
            phrase(QT_TRANSLATE_NOOP("clients", "Write the provider into OpenCode's settings, or copy it there.")),
            phrase(QT_TRANSLATE_NOOP("clients", "Choose {0}."), f"dflash/{endpoint.model}"),
        ),
        snippets=(
            Snippet(path.name, json.dumps(whole, indent=2), "json"),
            Snippet(
                phrase(QT_TRANSLATE_NOOP("clients", "Without a file")),
                f"OPENCODE_CONFIG_CONTENT='{json.dumps(whole)}' opencode",
                "bash",
            ),
        ),
        edits=(FileEdit(path, JsonKeys(keys, frozenset({("$schema",)})), is_private=bool(endpoint.key)),),
        next_step=phrase(QT_TRANSLATE_NOOP("clients", "In a terminal run: {0}"), "opencode"),
        command=("opencode",),
        environment=(("OPENCODE_CONFIG_CONTENT", json.dumps(whole)),),
    )


def provider(endpoint: Endpoint) -> dict[str, object]:
    model = {
        "name": "DFlash local",
        "tool_call": True,
        "reasoning": True,
        "limit": {"context": endpoint.context_tokens, "output": endpoint.output_tokens},
    }
    return {
        "npm": "@ai-sdk/openai-compatible",
        "name": "DFlash",
        "options": {
            "baseURL": endpoint.base_v1,
            "apiKey": endpoint.key_text,
            "timeout": 600000,
            "chunkTimeout": 60000,
        },
        "models": {endpoint.model: model},
    }
