"""Cline: version 4 of the extension and the CLI keep their settings in plain files."""

from __future__ import annotations

import time

from dflash_desktop.base.phrase import QT_TRANSLATE_NOOP, phrase
from dflash_desktop.clients.card import Card, Snippet
from dflash_desktop.clients.edits import JsonKeys
from dflash_desktop.clients.endpoint import LM_STUDIO_PORT, Endpoint, Machine
from dflash_desktop.clients.writer import FileEdit


def card(endpoint: Endpoint, machine: Machine) -> Card:
    folder = machine.variable("CLINE_DIR")
    data = machine.variable("CLINE_DATA_DIR") or (folder or machine.home / ".cline") / "data"
    is_here = data.is_dir() or machine.has_program("cline")
    is_standard = endpoint.port == LM_STUDIO_PORT and endpoint.host in {"127.0.0.1", "localhost"}
    address = (
        phrase(QT_TRANSLATE_NOOP("clients", "Nothing to type: Cline looks on port 1234 by itself."))
        if is_standard
        else phrase(
            QT_TRANSLATE_NOOP("clients", "Tick 'Use custom base URL' and enter {0} (without /v1)."), endpoint.base
        )
    )
    if is_standard:
        command = f"cline auth --provider lmstudio --apikey {endpoint.key_text} --modelid {endpoint.model}"
    else:
        command = (
            f"cline auth --provider openai-compatible --apikey {endpoint.key_text} --modelid {endpoint.model} "
            f"--baseurl {endpoint.base_v1}"
        )
    return Card(
        client_id="cline",
        name="Cline",
        is_detected=is_here,
        steps=(
            phrase(QT_TRANSLATE_NOOP("clients", "In Cline's settings choose the API Provider 'LM Studio'.")),
            address,
            phrase(
                QT_TRANSLATE_NOOP(
                    "clients",
                    "Choose the model {0}. Context Window must show {1}; "
                    "if it shows 0, Cline did not reach the server.",
                ),
                endpoint.model,
                endpoint.context_tokens,
            ),
            phrase(QT_TRANSLATE_NOOP("clients", "Recommended: Features > Use compact prompt.")),
        ),
        snippets=(
            Snippet(phrase(QT_TRANSLATE_NOOP("clients", "Command line")), command, "bash"),
            Snippet(phrase(QT_TRANSLATE_NOOP("clients", "Base URL")), endpoint.base),
            Snippet(phrase(QT_TRANSLATE_NOOP("clients", "Model")), endpoint.model),
        ),
        edits=(
            FileEdit(data / "settings" / "providers.json", JsonKeys(_providers(endpoint)), is_private=True),
            FileEdit(data / "globalState.json", JsonKeys(_state(endpoint))),
        )
        if data.is_dir()
        else (),
        warning=phrase(
            QT_TRANSLATE_NOOP(
                "clients",
                "A running editor holds its settings in memory and may write them back: close it first, or run "
                "'Reload Window' afterwards. Cline 3 keeps its settings inside the editor: follow the steps there.",
            )
        ),
        next_step=phrase(QT_TRANSLATE_NOOP("clients", "Run 'Reload Window' in the editor, then send Cline a message.")),
    )


def _providers(endpoint: Endpoint) -> dict[tuple[str, ...], object]:
    settings = {"provider": "lmstudio", "model": endpoint.model, "baseUrl": endpoint.base_v1}
    entry = {
        "settings": settings,
        "updatedAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "tokenSource": "manual",
    }
    return {
        ("version",): 1,
        ("lastUsedProvider",): "lmstudio",
        ("providers", "lmstudio"): entry,
    }


def _state(endpoint: Endpoint) -> dict[tuple[str, ...], object]:
    return {
        ("actModeApiProvider",): "lmstudio",
        ("planModeApiProvider",): "lmstudio",
        ("actModeLmStudioModelId",): endpoint.model,
        ("planModeLmStudioModelId",): endpoint.model,
        ("lmStudioBaseUrl",): endpoint.base,
        ("welcomeViewCompleted",): True,
    }
