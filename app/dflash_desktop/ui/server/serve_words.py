"""The state of the server in words, and the colour that goes with them."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from dflash_desktop.server.events import ServerFailed
from dflash_desktop.ui.engine.pair_state import PairState, Phase
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.server.serving import ServePhase, Serving

translate = QCoreApplication.translate
AGENT_CONTEXT = 64_000
"""Some agents refuse to start below this context (Hermes says so; Cline compacts all the time)."""


def check_words(name: str) -> str:
    """A short name of a check of the self-test."""
    short = {
        "Health": translate("checks", "Health"),
        "IPv6": translate("checks", "IPv6"),
        "LM Studio model list": translate("checks", "LM Studio"),
        "LM Studio SDK": translate("checks", "LM Studio SDK"),
        "OpenAI model list": translate("checks", "OpenAI list"),
        "OpenAI chat with a tool, streamed": translate("checks", "OpenAI chat"),
        "Anthropic message": translate("checks", "Anthropic"),
        "OpenAI response (Codex warm-up)": translate("checks", "Responses"),
        "Ollama model list": translate("checks", "Ollama"),
        "Web page rules": translate("checks", "Web pages"),
    }
    return short.get(name, name)


def state_words(serving: Serving, pair_state: PairState) -> str:
    """One or two words, for the big line."""
    match serving.phase:
        case ServePhase.OFF:
            return translate("serve", "Off")
        case ServePhase.STARTING:
            return translate("serve", "Starting")
        case ServePhase.NO_MODEL if pair_state.phase is Phase.LOADING:
            return translate("serve", "Waiting for the model")
        case ServePhase.NO_MODEL:
            return translate("serve", "No model loaded")
        case ServePhase.TESTING:
            return translate("serve", "Testing")
        case ServePhase.SERVING:
            return translate("serve", "Serving")
        case ServePhase.TEST_FAILED:
            return translate("serve", "A check failed")
        case ServePhase.STOPPING:
            return translate("serve", "Closing")
        case ServePhase.FAILED:
            return translate("serve", "Not serving")


def sentence(serving: Serving, pair_state: PairState) -> str:
    """What the socket does, why, and what that means for clients."""
    match serving.phase:
        case ServePhase.OFF:
            return translate("serve", "Nothing listens. Other programs cannot reach the model.")
        case ServePhase.STARTING:
            return translate("serve", "Opening port {0}.").format(serving.settings.port)
        case ServePhase.NO_MODEL if pair_state.phase is Phase.LOADING:
            share = pair_state.loading_share()
            done = numbers.percent(share) if share is not None else numbers.DASH
            return translate("serve", "Listening on port {0}. The model is loading: {1}.").format(serving.port, done)
        case ServePhase.NO_MODEL:
            return translate("serve", "Listening on port {0}. Clients are told that no model is loaded.").format(
                serving.port
            )
        case ServePhase.TESTING:
            return translate("serve", "Listening on port {0}. Trying out each dialect over the socket.").format(
                serving.port
            )
        case ServePhase.SERVING:
            pair = pair_state.pair
            context = numbers.tokens(pair.context_tokens) if pair is not None else numbers.DASH
            return translate("serve", "{0} answers on port {1} with a context of {2}.").format(
                pair_state.title(), serving.port, context
            )
        case ServePhase.TEST_FAILED:
            bad = next((line for line in serving.checks if not line.passed), None)
            if bad is None:
                return translate("serve", "Listening on port {0}, but the self-test gave no result.").format(
                    serving.port
                )
            return translate("serve", "Listening on port {0}, but {1} failed: {2}").format(
                serving.port, check_words(bad.name), bad.reason
            )
        case ServePhase.STOPPING:
            return translate("serve", "Ending what runs and closing the port.")
        case ServePhase.FAILED:
            return failure_words(serving.failure) if serving.failure is not None else ""


def failure_words(failure: ServerFailed) -> str:
    """Why the socket is not open; a taken port names the program that holds it."""
    if failure.owner is None:
        return failure.message
    return translate("serve", "Port {0} is in use by {1}.").format(failure.port, str(failure.owner))


def tone(phase: ServePhase) -> str:
    """The palette's colour of a state; green only after the self-test."""
    match phase:
        case ServePhase.SERVING:
            return "good"
        case ServePhase.FAILED | ServePhase.TEST_FAILED:
            return "bad"
        case ServePhase.OFF:
            return "outline"
        case _:
            return "flash"
