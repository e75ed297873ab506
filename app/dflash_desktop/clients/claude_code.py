"""Claude Code: environment variables, for one terminal or under `env` in its settings."""

from __future__ import annotations

from dflash_desktop.base.phrase import QT_TRANSLATE_NOOP, phrase
from dflash_desktop.clients.card import Card, Snippet
from dflash_desktop.clients.edits import JsonKeys
from dflash_desktop.clients.endpoint import Endpoint, Machine
from dflash_desktop.clients.writer import FileEdit


def card(endpoint: Endpoint, machine: Machine) -> Card:
    folder = machine.variable("CLAUDE_CONFIG_DIR") or machine.home / ".claude"
    pairs = environment(endpoint)
    run = f"claude --model {endpoint.model}"
    bash = "\n".join(f"export {name}={value}" for name, value in pairs.items())
    fish = "\n".join(f"set -gx {name} '{value}'" for name, value in pairs.items())
    shell = "\n".join(f'$env:{name} = "{value}"' for name, value in pairs.items())
    keys: dict[tuple[str, ...], object] = {("env", name): value for name, value in pairs.items()}
    return Card(
        client_id="claude_code",
        name="Claude Code",
        is_detected=folder.is_dir() or machine.has_program("claude"),
        steps=(
            phrase(
                QT_TRANSLATE_NOOP(
                    "clients", "For one terminal: paste the lines for your shell, then start Claude Code."
                )
            ),
            phrase(QT_TRANSLATE_NOOP("clients", "For always: write the variables into your user settings.")),
        ),
        snippets=(
            Snippet("bash, zsh", f"{bash}\n{run}", "bash"),
            Snippet("fish", f"{fish}\n{run}", "fish"),
            Snippet("PowerShell", f"{shell}\n{run}", "powershell"),
        ),
        edits=(FileEdit(folder / "settings.json", JsonKeys(keys), is_private=bool(endpoint.key)),),
        next_step=phrase(QT_TRANSLATE_NOOP("clients", "In a terminal run: {0}"), run),
        command=("claude", "--model", endpoint.model),
        environment=tuple(pairs.items()),
    )


def environment(endpoint: Endpoint) -> dict[str, str]:
    """ANTHROPIC_API_KEY stays empty: both keys set makes Claude Code warn. No `/v1`: it adds that itself."""
    return {
        "ANTHROPIC_BASE_URL": endpoint.base,
        "ANTHROPIC_AUTH_TOKEN": endpoint.key_text,
        "ANTHROPIC_API_KEY": "",
        "ANTHROPIC_DEFAULT_OPUS_MODEL": endpoint.model,
        "ANTHROPIC_DEFAULT_SONNET_MODEL": endpoint.model,
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": endpoint.model,
        "CLAUDE_CODE_SUBAGENT_MODEL": endpoint.model,
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
        "CLAUDE_CODE_AUTO_COMPACT_WINDOW": str(endpoint.context_tokens),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
        "API_TIMEOUT_MS": "3000000",
    }
