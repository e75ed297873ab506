"""Where a draft computes: beside its target unless a person names another GPU."""

from __future__ import annotations

import pytest

from dflash_desktop.base.errors import BadInput
from dflash_desktop.engine.devices import Device, choose_draft_device


def device(index: int, name: str, kind: str = "gpu") -> Device:
    return Device(index, name, f"id of {name}", kind, name[:4], name, 8 << 30, 8 << 30)  # type: ignore[arg-type]


CARDS = [device(0, "CUDA0"), device(1, "CUDA1"), device(2, "CPU", "cpu")]


@pytest.mark.parametrize("wanted", [None, "", "CUDA0", "id of CUDA0"])
def test_beside_its_target_unless_asked(wanted: str | None) -> None:
    assert choose_draft_device(CARDS, CARDS[0], wanted) is CARDS[0]


def test_on_another_card_when_asked() -> None:
    assert choose_draft_device(CARDS, CARDS[0], "cuda1") is CARDS[1]
    assert choose_draft_device(CARDS, CARDS[2], "CUDA1") is CARDS[1]  # a target on the CPU


def test_a_card_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(BadInput, match=r"no device 'CUDA7'\. Present: CUDA0, CUDA1, CPU"):
        choose_draft_device(CARDS, CARDS[0], "CUDA7")


def test_the_processor_is_refused_beside_a_card() -> None:
    with pytest.raises(BadInput, match="longer than it saves CUDA0"):
        choose_draft_device(CARDS, CARDS[0], "CPU")
    assert choose_draft_device(CARDS, CARDS[2], "CPU") is CARDS[2]
