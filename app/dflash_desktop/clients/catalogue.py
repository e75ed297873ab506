"""All cards in the order in which they are shown: clients that are here first."""

from __future__ import annotations

from collections.abc import Callable

from dflash_desktop.clients import (
    by_hand,
    claude_code,
    cline,
    codex,
    continue_dev,
    droid,
    opencode,
    qwen_code,
    zed,
)
from dflash_desktop.clients.card import Card
from dflash_desktop.clients.endpoint import Endpoint, Machine

_MAKERS: tuple[Callable[[Endpoint, Machine], Card], ...] = (
    cline.card,
    claude_code.card,
    codex.card,
    opencode.card,
    by_hand.roo_code_card,
    continue_dev.card,
    qwen_code.card,
    zed.card,
    by_hand.open_webui_card,
    by_hand.lm_studio_card,
    droid.copilot_card,
    droid.droid_card,
    by_hand.hermes_card,
    by_hand.goose_card,
    by_hand.any_sdk_card,
)


def all_cards(endpoint: Endpoint, machine: Machine) -> list[Card]:
    cards = [make(endpoint, machine) for make in _MAKERS]
    return sorted(cards, key=lambda card: not card.is_detected)
