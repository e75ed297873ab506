"""The catalogue that is shipped, what it proposes for a device, and what becomes of an unsound one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dflash_desktop.base.errors import AppError
from dflash_desktop.hub.catalogue import GIB, read_catalogue, read_device_speeds
from dflash_desktop.hub.fit import DeviceFacts, estimate, recommend, verdict_of
from dflash_desktop.hub.models_folder import ModelsFolder
from dflash_desktop.hub.wanted import WantedFile

SHIPPED = Path(__file__).parents[2] / "resources" / "catalogue"
CATALOGUE = read_catalogue(SHIPPED)
SPEEDS = read_device_speeds(SHIPPED)


def card(name: str, total_gib: float, free_gib: float | None = None) -> DeviceFacts:
    total = int(total_gib * GIB)
    return DeviceFacts(name, False, total, int((free_gib or total_gib * 0.93) * GIB))


def test_the_shipped_catalogue_holds_the_pairs_for_small_cards_and_large_ones() -> None:
    ids = {pair.id for pair in CATALOGUE.pairs}
    assert {"qwen3.6-27b", "qwen3.5-9b", "qwen3.5-4b", "qwen3-8b", "qwen3-4b", "llama-3.1-8b"} <= ids
    assert [pair.rank for pair in CATALOGUE.pairs] == sorted((pair.rank for pair in CATALOGUE.pairs), reverse=True)


def test_every_file_of_the_catalogue_has_a_place_on_the_disk(tmp_path: Path) -> None:
    folder = ModelsFolder(tmp_path)
    for pair in CATALOGUE.pairs:
        for model in (*pair.targets, *pair.drafts, *pair.scorers):
            for name in model.files:
                folder.destination(WantedFile(repo_id=model.repo_id, revision="main", name=name, n_bytes=1))
            assert model.approx_bytes > 10**8
            is_safetensors = model.files[0].endswith(".safetensors")
            assert not is_safetensors or "config.json" in model.files


@pytest.mark.parametrize(
    ("device", "pair_id", "target"),
    [
        (card("NVIDIA GeForce RTX 4090", 23.99), "qwen3.6-27b", "Q4_K_M"),
        (card("AMD Radeon RX 7900 XTX", 24, 23.3), "qwen3.6-27b", "Q4_K_M"),
        (card("NVIDIA GeForce RTX 5090", 31.8), "qwen3.6-27b", "UD-Q5_K_XL"),
        (card("NVIDIA GeForce RTX 4060 Ti", 15.99), "qwen3.5-9b", "Q8_0"),
        (card("NVIDIA GeForce RTX 3060", 12), "qwen3.5-9b", "Q4_K_M"),
        (card("NVIDIA GeForce RTX 4060", 7.99), "qwen3.5-4b", "Q4_K_M"),
        (card("NVIDIA GeForce GTX 1660", 5.99), "qwen3.5-4b", "Q4_K_M"),
        (card("an unknown card", 24), "qwen3.6-27b", "Q4_K_M"),
    ],
)
def test_each_card_gets_the_best_pair_that_fits(device: DeviceFacts, pair_id: str, target: str) -> None:
    best = recommend(CATALOGUE, device, SPEEDS)[0]
    assert (best.pair.id, best.proposal.target) == (pair_id, target)
    assert best.fit.verdict == "fits"
    assert best.fit.needed_bytes < device.free_bytes
    assert best.fit.is_estimate


def test_a_full_card_gets_a_smaller_proposal_or_the_truth() -> None:
    busy = recommend(CATALOGUE, card("NVIDIA GeForce RTX 4090", 24, 10), SPEEDS)
    assert busy[0].pair.id != "qwen3.6-27b"
    assert next(one for one in busy if one.pair.id == "qwen3.6-27b").fit.verdict == "too_large"
    tiny = recommend(CATALOGUE, card("NVIDIA GeForce GT 1030", 2), SPEEDS)
    assert {one.fit.verdict for one in tiny} == {"too_large"}
    assert tiny[0].n_bytes == min(one.n_bytes for one in tiny)
    assert {one.expected_tps for one in tiny} == {None}


def test_a_processor_gets_a_small_model_without_a_draft_and_no_invented_speed() -> None:
    best = recommend(CATALOGUE, DeviceFacts("AMD Ryzen 9 7950X", True, 64 * GIB, 50 * GIB), SPEEDS)[0]
    assert best.pair.id == "qwen3.5-4b"
    assert not best.has_draft
    assert best.n_bytes == best.pair.target(best.proposal.target).approx_bytes
    assert best.expected_tps is None


def test_a_device_without_known_memory_is_not_judged() -> None:
    fit = estimate(CATALOGUE.pairs[0], CATALOGUE.pairs[0].settings[0], DeviceFacts("?", False, 0, 0))
    assert fit.verdict == "unknown"


@pytest.mark.parametrize(
    ("needed", "free", "verdict"), [(90, 100, "fits"), (96, 100, "tight"), (101, 100, "too_large")]
)
def test_one_scale_for_all_verdicts(needed: int, free: int, verdict: str) -> None:
    assert verdict_of(needed, free) == verdict


def test_speeds_are_those_that_were_measured_and_unknown_devices_have_none() -> None:
    target = CATALOGUE.pairs[0].target("Q4_K_M").approx_bytes
    plain = SPEEDS.expected_tps("NVIDIA GeForce RTX 4090", target, has_draft=False)
    drafted = SPEEDS.expected_tps("AMD Radeon RX 7900 XTX", target, has_draft=True)
    assert plain is not None and abs(plain - 32) < 4
    assert drafted is not None and abs(drafted - 86) < 12
    assert SPEEDS.expected_tps("Matrox Millennium", target, has_draft=True) is None


def test_the_longest_name_counts() -> None:
    assert SPEEDS.bytes_per_s("NVIDIA GeForce RTX 4070 Ti SUPER") == 672e9
    assert SPEEDS.bytes_per_s("NVIDIA GeForce RTX 4070 Ti") == 504e9


def damaged(change: Any) -> bytes:
    value = json.loads((SHIPPED / "pairs.json").read_bytes())
    change(value)
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        damaged(lambda value: value.update(version=2)),
        damaged(lambda value: value["pairs"].append(value["pairs"][0])),
        damaged(lambda value: value["pairs"][0].update(surprise=1)),
        damaged(lambda value: value["pairs"][0].pop("targets")),
        damaged(lambda value: value["pairs"][0].update(targets=[])),
        damaged(lambda value: value["pairs"][0]["settings"][0].update(target="Q3_K_S")),
        damaged(lambda value: value["pairs"][0]["settings"][0].update(draft="Q3_K_S")),
        damaged(lambda value: value["pairs"][0]["settings"][0].update(kv="q3_0")),
        damaged(lambda value: value["pairs"][0]["settings"][0].update(context_tokens=10**9)),
        damaged(lambda value: value["pairs"][0]["settings"].reverse()),
        damaged(lambda value: value["pairs"][0].update(kv_bytes_per_token="many")),
    ],
)
def test_an_unsound_catalogue_is_refused_with_the_file_and_the_reason(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "pairs.json").write_bytes(content)
    with pytest.raises(AppError, match=r"pairs\.json"):
        read_catalogue(tmp_path)
