"""Distances between what the engine gives and what an oracle gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]


def relative(found: Array, expected: Array) -> float:
    """The largest difference over the largest value; infinite when something is no number."""
    assert found.shape == expected.shape, (found.shape, expected.shape)
    if not np.isfinite(found).all():
        return float("inf")
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def log_softmax(logits: Array) -> Array:
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    out: Array = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return out


def divergence(found: Array, expected: Array) -> Array:
    """KL(expected || found) of each row, in nats."""
    p, q = log_softmax(expected), log_softmax(found)
    out: Array = (np.exp(p) * (p - q)).sum(axis=-1)
    return out


def cosine(found: Array, expected: Array) -> float:
    """The smallest cosine between rows."""
    norms = np.linalg.norm(found, axis=-1) * np.linalg.norm(expected, axis=-1)
    return float(((found * expected).sum(axis=-1) / norms).min())


def top_gap(logits: Array) -> Array:
    """Between the two likeliest tokens of each row."""
    best = np.partition(logits, -2, axis=-1)[..., -2:]
    out: Array = best[..., 1] - best[..., 0]
    return out
