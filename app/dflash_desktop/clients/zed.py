"""Zed: its LM Studio provider works on port 1234 as it is; other ports need one address."""

from __future__ import annotations

from dflash_desktop.base.phrase import QT_TRANSLATE_NOOP, phrase
from dflash_desktop.clients.card import Card, Snippet
from dflash_desktop.clients.edits import JsonKeys
from dflash_desktop.clients.endpoint import LM_STUDIO_PORT, Endpoint, Machine
from dflash_desktop.clients.writer import FileEdit


def card(endpoint: Endpoint, machine: Machine) -> Card:
    folder = machine.app_data / "Zed" if machine.platform == "win32" else machine.config / "zed"
    edit = JsonKeys({("language_models", "lmstudio", "api_url"): f"{endpoint.base}/api/v0"})
    is_standard = endpoint.port == LM_STUDIO_PORT
    first = (
        phrase(QT_TRANSLATE_NOOP("clients", "Nothing to set: Zed's LM Studio provider looks on port 1234."))
        if is_standard
        else phrase(
            QT_TRANSLATE_NOOP("clients", "Set the address of Zed's LM Studio provider, or write it into settings.json.")
        )
    )
    return Card(
        client_id="zed",
        name="Zed",
        is_detected=folder.is_dir() or machine.has_program("zed", "zeditor"),
        steps=(
            first,
            phrase(QT_TRANSLATE_NOOP("clients", "In the agent panel choose LM Studio, then {0}."), endpoint.model),
        ),
        snippets=(Snippet("settings.json", edit.apply(None), "json"),),
        edits=(FileEdit(folder / "settings.json", edit),),
        next_step=phrase(QT_TRANSLATE_NOOP("clients", "Open Zed's agent panel and choose the model under LM Studio.")),
    )
