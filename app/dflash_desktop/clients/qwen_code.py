"""Qwen Code: a model provider, its key, and the choice of it in the user settings.

Members as its documentation of model providers names them; the tests marked `clients` try them with its CLI.
"""

from __future__ import annotations

from dflash_desktop.base.phrase import QT_TRANSLATE_NOOP, phrase
from dflash_desktop.clients.card import Card, Snippet
from dflash_desktop.clients.edits import JsonEntry, JsonKeys, Several
from dflash_desktop.clients.endpoint import Endpoint, Machine
from dflash_desktop.clients.writer import FileEdit

_KEY_NAME = "DFLASH_API_KEY"


def card(endpoint: Endpoint, machine: Machine) -> Card:
    folder = machine.home / ".qwen"
    model = {
        "id": endpoint.model,
        "name": "DFlash local",
        "baseUrl": endpoint.base_v1,
        "envKey": _KEY_NAME,
        "generationConfig": {"contextWindowSize": endpoint.context_tokens},
    }
    keys: dict[tuple[str, ...], object] = {
        ("env", _KEY_NAME): endpoint.key_text,
        ("security", "auth", "selectedType"): "openai",
        ("model", "name"): endpoint.model,
    }
    edit = Several((JsonEntry(("modelProviders", "openai"), "id", model), JsonKeys(keys)))
    pairs = (
        ("OPENAI_BASE_URL", endpoint.base_v1),
        ("OPENAI_API_KEY", endpoint.key_text),
        ("OPENAI_MODEL", endpoint.model),
    )
    exports = "\n".join(f"export {name}={value}" for name, value in pairs)
    return Card(
        client_id="qwen_code",
        name="Qwen Code",
        is_detected=folder.is_dir() or machine.has_program("qwen"),
        steps=(
            phrase(QT_TRANSLATE_NOOP("clients", "For one terminal: paste the variables, then run {0}."), "qwen"),
            phrase(QT_TRANSLATE_NOOP("clients", "For always: write the model provider.")),
        ),
        snippets=(
            Snippet("bash, zsh", f"{exports}\nqwen", "bash"),
            Snippet("settings.json", edit.apply(None), "json"),
        ),
        edits=(FileEdit(folder / "settings.json", edit, is_private=True),),
        next_step=phrase(QT_TRANSLATE_NOOP("clients", "In a terminal run: {0}"), "qwen"),
        command=("qwen",),
        environment=pairs,
    )
