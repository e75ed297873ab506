"""Continue: one entry in the list of models of its YAML settings."""

from __future__ import annotations

from dflash_desktop.base.phrase import QT_TRANSLATE_NOOP, phrase
from dflash_desktop.clients.card import Card, Snippet
from dflash_desktop.clients.edits import YamlEntry
from dflash_desktop.clients.endpoint import Endpoint, Machine
from dflash_desktop.clients.writer import FileEdit

_NAME = "DFlash local"


def card(endpoint: Endpoint, machine: Machine) -> Card:
    folder = machine.home / ".continue"
    edit = YamlEntry("models", "name", entry(endpoint), {"name": "Local", "version": "1.0.0", "schema": "v1"})
    return Card(
        client_id="continue",
        name="Continue",
        is_detected=folder.is_dir(),
        steps=(
            phrase(
                QT_TRANSLATE_NOOP("clients", "Add the model to config.yaml in Continue's folder, or write it there.")
            ),
            phrase(
                QT_TRANSLATE_NOOP(
                    "clients",
                    "Choose '{0}' in Continue's model list. Autocomplete stays off: it would flood the one engine.",
                ),
                _NAME,
            ),
        ),
        snippets=(Snippet("config.yaml", edit.apply(None), "yaml"),),
        edits=(FileEdit(folder / "config.yaml", edit, is_private=bool(endpoint.key)),),
        next_step=phrase(QT_TRANSLATE_NOOP("clients", "Choose '{0}' in Continue's model list."), _NAME),
    )


def entry(endpoint: Endpoint) -> dict[str, object]:
    return {
        "name": _NAME,
        "provider": "lmstudio",
        "model": endpoint.model,
        "apiBase": f"{endpoint.base_v1}/",
        "apiKey": endpoint.key_text,
        "roles": ["chat", "edit", "apply"],
        "capabilities": ["tool_use"],
        "defaultCompletionOptions": {
            "contextLength": endpoint.context_tokens,
            "maxTokens": min(8192, endpoint.output_tokens),
        },
        "requestOptions": {"timeout": 7200},
    }
