"""The model files that tests use: where they lie and what they are. provenance: models/README.md."""

from __future__ import annotations

from pathlib import Path

MODELS = Path(__file__).parent / "models"

QWEN35_MINI = MODELS / "qwen35-mini-q8_0.gguf"
"""Hybrid target (gated DeltaNet and attention), 21.5 M parameters."""

QWEN35_MINI_DRAFT = MODELS / "qwen35-mini-dflash-q8_0.gguf"
"""The DFlash draft of QWEN35_MINI."""

QWEN35_MINI_DRAFT_HF = MODELS / "qwen35-mini-dflash-hf"
"""The same draft before quantisation, in z-lab's Hugging Face layout (F16)."""

QWEN35_RANDOM_TINY = MODELS / "qwen35-random-tiny"
"""Random F32 weights in both formats, and reference.npz: outputs that transformers computed from them."""
