"""Factory Droid and VS Code's Copilot Chat: one entry in a JSON list each."""

from __future__ import annotations

import json

from dflash_desktop.base.phrase import QT_TRANSLATE_NOOP, phrase
from dflash_desktop.clients.card import Card, Snippet
from dflash_desktop.clients.edits import JsonEntry
from dflash_desktop.clients.endpoint import Endpoint, Machine
from dflash_desktop.clients.writer import FileEdit


def droid_card(endpoint: Endpoint, machine: Machine) -> Card:
    folder = machine.home / ".factory"
    entry = {
        "model": endpoint.model,
        "displayName": "DFlash local",
        "baseUrl": endpoint.base_v1,
        "apiKey": endpoint.key_text,
        "provider": "generic-chat-completion-api",
        "maxOutputTokens": endpoint.output_tokens,
        "supportsImages": False,
    }
    return Card(
        client_id="droid",
        name="Factory Droid",
        is_detected=folder.is_dir() or machine.has_program("droid"),
        steps=(
            phrase(
                QT_TRANSLATE_NOOP(
                    "clients", "Add the model to customModels in Droid's settings.json, or write it there."
                )
            ),
        ),
        snippets=(Snippet("settings.json", json.dumps({"customModels": [entry]}, indent=2), "json"),),
        edits=(
            FileEdit(
                folder / "settings.json",
                JsonEntry(("customModels",), "displayName", entry),
                is_private=bool(endpoint.key),
            ),
        ),
        next_step=phrase(
            QT_TRANSLATE_NOOP("clients", "In a terminal run: droid, then choose 'DFlash local' with /model.")
        ),
    )


def copilot_card(endpoint: Endpoint, machine: Machine) -> Card:
    folder = machine.app_data / "Code" / "User"
    entry = {"vendor": "ollama", "name": "DFlash", "url": endpoint.base}
    return Card(
        client_id="copilot",
        name="VS Code Copilot Chat",
        is_detected=folder.is_dir(),
        steps=(
            phrase(
                QT_TRANSLATE_NOOP(
                    "clients", "In the chat's model list choose 'Manage Models', then the Ollama provider."
                )
            ),
            phrase(QT_TRANSLATE_NOOP("clients", "Its address is {0}."), endpoint.base),
        ),
        snippets=(Snippet("chatLanguageModels.json", json.dumps([entry], indent=2), "json"),),
        edits=(FileEdit(folder / "chatLanguageModels.json", JsonEntry((), "name", entry)),) if folder.is_dir() else (),
        next_step=phrase(QT_TRANSLATE_NOOP("clients", "Choose the model in the chat's model list.")),
    )
