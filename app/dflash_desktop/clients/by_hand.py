"""Clients whose settings lie where we do not write: steps and texts to copy (client-apis.md 13.2, 13.6, 13.8, 13.9)."""

from __future__ import annotations

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
            "In Roo Code's settings choose the API Provider 'OpenAI Compatible'.",
            f"Base URL {endpoint.base_v1}, API Key {endpoint.key_text}, Model {endpoint.model}.",
            (
                f"Context Window Size {endpoint.context_tokens}, Max Output Tokens -1, streaming on, images and prompt "
                "caching off."
            ),
            "Set 'API request timeout' to 0: a long prompt takes longer than ten minutes on slow machines.",
        ),
        snippets=(
            Snippet("Base URL", endpoint.base_v1),
            Snippet("API Key", endpoint.key_text),
            Snippet("Model", endpoint.model),
        ),
        next_step="Save, then send Roo Code a message.",
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
            "Admin Settings > Connections > OpenAI: add a connection of the type Chat Completions.",
            f"URL {endpoint.base_v1} (from inside Docker: {docker}), key {endpoint.key_text}.",
            "In a container on Linux the server must listen on the network, and the container needs the host gateway.",
            "Switch title, tag and follow-up generation off, or give them another model: they take the one engine.",
        ),
        snippets=(Snippet("URL", endpoint.base_v1), Snippet("Variables", variables, "bash")),
        next_step="Reload Open WebUI and choose the model.",
    )


def lm_studio_card(endpoint: Endpoint, machine: Machine) -> Card:
    is_here = (machine.home / ".lmstudio").is_dir() or (machine.home / ".lmstudio-home-pointer").is_file()
    steps = [
        (
            "LM Studio cannot use other servers in its chat without a plugin. What this does: every program that "
            "expects LM Studio gets DFlash instead."
        ),
    ]
    if endpoint.port == LM_STUDIO_PORT:
        steps.append("Such a program needs no setting: choose its LM Studio preset.")
    else:
        steps.append(f"Such a program needs the address {endpoint.base} (or {endpoint.base_v1}): we are not on 1234.")
    return Card(
        client_id="lm_studio",
        name="Tools with an LM Studio preset",
        is_detected=is_here,
        steps=tuple(steps),
        snippets=(
            Snippet("Base URL", endpoint.base_v1),
            Snippet("Key", endpoint.key_text),
            Snippet("Model", endpoint.model),
        ),
        next_step="Choose the LM Studio preset in the program.",
    )


def hermes_card(endpoint: Endpoint, machine: Machine) -> Card:
    text = (
        "hermes config set model.provider lmstudio\n"
        f"hermes config set model.base_url {endpoint.base_v1}\n"
        f"hermes config set model.default {endpoint.model}\n"
        f"hermes config set LM_API_KEY {endpoint.key_text}"
    )
    steps = ["Paste the lines into a terminal."]
    if endpoint.context_tokens < 64000:
        steps.append(
            f"Hermes wants 64000 tokens of context; {endpoint.context_tokens} are loaded. Load the model with more."
        )
    return Card(
        client_id="hermes",
        name="Hermes Agent",
        is_detected=machine.has_program("hermes"),
        steps=tuple(steps),
        snippets=(Snippet("Terminal", text, "bash"),),
        next_step="In a terminal run: hermes",
    )


def goose_card(endpoint: Endpoint, machine: Machine) -> Card:
    return Card(
        client_id="goose",
        name="Goose",
        is_detected=machine.has_program("goose"),
        steps=("Choose the provider LM Studio, with this address in the environment.",),
        snippets=(Snippet("bash, zsh", f"export LMSTUDIO_HOST={endpoint.base}\ngoose configure", "bash"),),
        next_step="In a terminal run: goose session",
        environment=(("LMSTUDIO_HOST", endpoint.base),),
    )


def any_sdk_card(endpoint: Endpoint, machine: Machine) -> Card:
    del machine
    return Card(
        client_id="other",
        name="Any other program",
        is_detected=True,
        steps=("Wherever a program asks for an OpenAI, Anthropic, LM Studio or Ollama address, give it ours.",),
        snippets=(
            Snippet("OpenAI", endpoint.base_v1),
            Snippet("Anthropic, LM Studio, Ollama", endpoint.base),
            Snippet("Key", endpoint.key_text),
            Snippet("Model", endpoint.model),
        ),
    )
