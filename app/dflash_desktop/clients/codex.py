"""Codex CLI: a profile file and a model catalogue of our own beside its settings."""

from __future__ import annotations

import json
from pathlib import Path

from dflash_desktop.base.phrase import QT_TRANSLATE_NOOP, phrase
from dflash_desktop.clients.card import Card, Snippet
from dflash_desktop.clients.edits import WholeFile
from dflash_desktop.clients.endpoint import LM_STUDIO_PORT, Endpoint, Machine
from dflash_desktop.clients.writer import FileEdit

PROFILE = "dflash"


def card(endpoint: Endpoint, machine: Machine) -> Card:
    folder = machine.variable("CODEX_HOME") or machine.home / ".codex"
    catalogue = folder / "dflash-models.json"
    profile = profile_text(endpoint, catalogue)
    run = f"codex --profile {PROFILE}"
    steps = [
        phrase(
            QT_TRANSLATE_NOOP("clients", "Write the profile (two files of our own in Codex's folder), then run: {0}"),
            run,
        )
    ]
    snippets = [
        Snippet(phrase(QT_TRANSLATE_NOOP("clients", "Run")), run, "bash"),
        Snippet(f"{PROFILE}.config.toml", profile, "toml"),
    ]
    if endpoint.port == LM_STUDIO_PORT:
        zero = f"codex --oss --local-provider lmstudio -m {endpoint.model}"
        steps.insert(0, phrase(QT_TRANSLATE_NOOP("clients", "Without any settings: {0}"), zero))
        snippets.insert(0, Snippet(phrase(QT_TRANSLATE_NOOP("clients", "Run without settings")), zero, "bash"))
    return Card(
        client_id="codex",
        name="Codex CLI",
        is_detected=folder.is_dir() or machine.has_program("codex"),
        steps=tuple(steps),
        snippets=tuple(snippets),
        edits=(
            FileEdit(folder / f"{PROFILE}.config.toml", WholeFile(profile)),
            FileEdit(catalogue, WholeFile(catalogue_text(endpoint))),
        ),
        next_step=phrase(QT_TRANSLATE_NOOP("clients", "In a terminal run: {0}"), run),
        command=("codex", "--profile", PROFILE),
        environment=(("DFLASH_API_KEY", endpoint.key),) if endpoint.key else (),
    )


def profile_text(endpoint: Endpoint, catalogue: Path) -> str:
    lines = [
        f"model = {_toml(endpoint.model)}",
        f'model_provider = "{PROFILE}"',
        f"model_context_window = {endpoint.context_tokens}",
        f"model_catalog_json = {_toml(str(catalogue))}",
        'web_search = "disabled"',
        "",
        f"[model_providers.{PROFILE}]",
        'name = "DFlash"',
        f"base_url = {_toml(endpoint.base_v1)}",
        'wire_api = "responses"',
        "stream_idle_timeout_ms = 1800000",
    ]
    if endpoint.key:
        lines.append('env_key = "DFLASH_API_KEY"')
    return "\n".join(lines) + "\n"


def catalogue_text(endpoint: Endpoint) -> str:
    model = {
        "slug": endpoint.model,
        "display_name": "DFlash local",
        "context_window": endpoint.context_tokens,
        "shell_type": "default",
        "visibility": "list",
        "supported_in_api": True,
        "priority": 0,
        "truncation_policy": {"mode": "bytes", "limit": 10000},
        "input_modalities": ["text"],
        "base_instructions": "",
        "support_verbosity": False,
        "default_verbosity": None,
        "supports_parallel_tool_calls": False,
        "supports_reasoning_summaries": False,
        "supported_reasoning_levels": [],
        "experimental_supported_tools": [],
    }
    return json.dumps({"models": [model]}, indent=2) + "\n"


def _toml(text: str) -> str:
    """A basic string of TOML; JSON's escapes are a part of TOML's."""
    return json.dumps(text, ensure_ascii=False)
