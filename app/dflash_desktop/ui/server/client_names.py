"""Programs that call, as people know them. The ids are those of the cards and of the server's events."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

_NAMES = {
    "cline": "Cline",
    "claude_code": "Claude Code",
    "codex": "Codex CLI",
    "opencode": "OpenCode",
    "roo_code": "Roo Code",
    "continue": "Continue",
    "qwen_code": "Qwen Code",
    "zed": "Zed",
    "open_webui": "Open WebUI",
    "copilot": "VS Code Copilot Chat",
    "droid": "Factory Droid",
    "hermes": "Hermes Agent",
    "goose": "Goose",
}


def client_name(client_id: str, user_agent: str = "") -> str:
    """A name for people; for a program that nobody knows, what it calls itself."""
    known = _NAMES.get(client_id)
    if known is not None:
        return known
    if client_id == "lm_studio":
        return QCoreApplication.translate("clients", "LM Studio's SDK")
    called = user_agent.split(" ", 1)[0].split("/", 1)[0].strip()
    return called[:40] if called else QCoreApplication.translate("clients", "Another program")
