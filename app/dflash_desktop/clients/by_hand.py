"""Clients whose settings lie where we do not write: steps and texts to copy."""

from __future__ import annotations

from dflash_desktop.base.phrase import QT_TRANSLATE_NOOP, phrase
from dflash_desktop.clients.card import Card, Snippet
from dflash_desktop.clients.endpoint import LM_STUDIO_PORT, Endpoint, Machine


def roo_code_card(endpoint: Endpoint, machine: Machine) -> Card:
    extensions = machine.home / ".vscode" / "extensions"
    is_here = extensions.is_dir() and any(extensions.glob("rooveterinaryinc.roo-cline-*"))
    return Card(
        client_id="roo_code",
        name="Roo Code",
        is_detected=is_here,
        steps=(
            phrase(QT_TRANSLATE_NOOP("clients", "In Roo Code's settings choose the API Provider 'OpenAI Compatible'.")),
            phrase(
                QT_TRANSLATE_NOOP("clients", "Base URL {0}, API Key {1}, Model {2}."),
                endpoint.base_v1,
                endpoint.key_text,
                endpoint.model,
            ),
            phrase(
                QT_TRANSLATE_NOOP(
                    "clients",
                    "Context Window Size {0}, Max Output Tokens -1, streaming on, images and prompt caching off.",
                ),
                endpoint.context_tokens,
            ),
            phrase(
                QT_TRANSLATE_NOOP(
                    "clients",
                    "Roo Code's provider 'LM Studio' works too, with Base URL {0}: it lists the models by itself, "
                    "but sends no key.",
                ),
                endpoint.base,
            ),
            phrase(
                QT_TRANSLATE_NOOP(
                    "clients",
                    "Set 'API request timeout' to 0: a long prompt takes longer than ten minutes on slow machines.",
                )
            ),
        ),
        snippets=(
            Snippet(phrase(QT_TRANSLATE_NOOP("clients", "Base URL")), endpoint.base_v1),
            Snippet(phrase(QT_TRANSLATE_NOOP("clients", "API Key")), endpoint.key_text),
            Snippet(phrase(QT_TRANSLATE_NOOP("clients", "Model")), endpoint.model),
        ),
        next_step=phrase(QT_TRANSLATE_NOOP("clients", "Save, then send Roo Code a message.")),
    )


def open_webui_card(endpoint: Endpoint, machine: Machine) -> Card:
    docker = endpoint.base_v1.replace(endpoint.host, "host.docker.internal")
    variables = (
        f"OPENAI_API_BASE_URL={docker}\nOPENAI_API_KEY={endpoint.key_text}\nDEFAULT_MODELS={endpoint.model}\n"
        "AIOHTTP_CLIENT_TIMEOUT=\nENABLE_PERSISTENT_CONFIG=False"
    )
    return Card(
        client_id="open_webui",
        name="Open WebUI",
        is_detected=machine.has_program("open-webui"),
        steps=(
            phrase(
                QT_TRANSLATE_NOOP(
                    "clients", "Admin Settings > Connections > OpenAI: add a connection of the type Chat Completions."
                )
            ),
            phrase(
                QT_TRANSLATE_NOOP("clients", "URL {0} (from inside Docker: {1}), key {2}."),
                endpoint.base_v1,
                docker,
                endpoint.key_text,
            ),
            phrase(
                QT_TRANSLATE_NOOP(
                    "clients",
                    "In a container on Linux the server must listen on the network, and the container needs the host "
                    "gateway.",
                )
            ),
            phrase(
                QT_TRANSLATE_NOOP(
                    "clients",
                    "Switch title, tag and follow-up generation off, or give them another model: they take the one "
                    "engine.",
                )
            ),
        ),
        snippets=(
            Snippet("URL", endpoint.base_v1),
            Snippet(phrase(QT_TRANSLATE_NOOP("clients", "Variables")), variables, "bash"),
        ),
        next_step=phrase(QT_TRANSLATE_NOOP("clients", "Reload Open WebUI and choose the model.")),
    )


def lm_studio_card(endpoint: Endpoint, machine: Machine) -> Card:
    is_here = (machine.home / ".lmstudio").is_dir() or (machine.home / ".lmstudio-home-pointer").is_file()
    steps = [
        phrase(
            QT_TRANSLATE_NOOP(
                "clients",
                "LM Studio cannot use other servers in its chat without a plugin. What this does: every program that "
                "expects LM Studio gets DFlash instead.",
            )
        ),
    ]
    if endpoint.port == LM_STUDIO_PORT:
        steps.append(
            phrase(QT_TRANSLATE_NOOP("clients", "Such a program needs no setting: choose its LM Studio preset."))
        )
    else:
        steps.append(
            phrase(
                QT_TRANSLATE_NOOP("clients", "Such a program needs the address {0} (or {1}): we are not on 1234."),
                endpoint.base,
                endpoint.base_v1,
            )
        )
    return Card(
        client_id="lm_studio",
        name=phrase(QT_TRANSLATE_NOOP("clients", "Tools with an LM Studio preset")),
        is_detected=is_here,
        steps=tuple(steps),
        snippets=(
            Snippet(phrase(QT_TRANSLATE_NOOP("clients", "Base URL")), endpoint.base_v1),
            Snippet(phrase(QT_TRANSLATE_NOOP("clients", "Key")), endpoint.key_text),
            Snippet(phrase(QT_TRANSLATE_NOOP("clients", "Model")), endpoint.model),
        ),
        next_step=phrase(QT_TRANSLATE_NOOP("clients", "Choose the LM Studio preset in the program.")),
    )


def hermes_card(endpoint: Endpoint, machine: Machine) -> Card:
    text = (
        "hermes config set model.provider lmstudio\n"
        f"hermes config set model.base_url {endpoint.base_v1}\n"
        f"hermes config set model.default {endpoint.model}\n"
        f"hermes config set LM_API_KEY {endpoint.key_text}"
    )
    steps = [phrase(QT_TRANSLATE_NOOP("clients", "Paste the lines into a terminal."))]
    if endpoint.context_tokens < 64000:
        steps.append(
            phrase(
                QT_TRANSLATE_NOOP(
                    "clients", "Hermes wants 64000 tokens of context; {0} are loaded. Load the model with more."
                ),
                endpoint.context_tokens,
            )
        )
    return Card(
        client_id="hermes",
        name="Hermes Agent",
        is_detected=machine.has_program("hermes"),
        steps=tuple(steps),
        snippets=(Snippet(phrase(QT_TRANSLATE_NOOP("clients", "Terminal")), text, "bash"),),
        next_step=phrase(QT_TRANSLATE_NOOP("clients", "In a terminal run: {0}"), "hermes"),
    )


def goose_card(endpoint: Endpoint, machine: Machine) -> Card:
    return Card(
        client_id="goose",
        name="Goose",
        is_detected=machine.has_program("goose"),
        steps=(
            phrase(
                QT_TRANSLATE_NOOP("clients", "Choose the provider LM Studio, with this address in the environment.")
            ),
        ),
        snippets=(Snippet("bash, zsh", f"export LMSTUDIO_HOST={endpoint.base}\ngoose configure", "bash"),),
        next_step=phrase(QT_TRANSLATE_NOOP("clients", "In a terminal run: {0}"), "goose session"),
        environment=(("LMSTUDIO_HOST", endpoint.base),),
    )


def any_sdk_card(endpoint: Endpoint, machine: Machine) -> Card:
    del machine
    return Card(
        client_id="other",
        name=phrase(QT_TRANSLATE_NOOP("clients", "Any other program")),
        is_detected=True,
        steps=(
            phrase(
                QT_TRANSLATE_NOOP(
                    "clients",
                    "Wherever a program asks for an OpenAI, Anthropic, LM Studio or Ollama address, give it ours.",
                )
            ),
        ),
        snippets=(
            Snippet("OpenAI", endpoint.base_v1),
            Snippet("Anthropic, LM Studio, Ollama", endpoint.base),
            Snippet(phrase(QT_TRANSLATE_NOOP("clients", "Key")), endpoint.key_text),
            Snippet(phrase(QT_TRANSLATE_NOOP("clients", "Model")), endpoint.model),
        ),
    )
